// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq::credentials {

/// What may be told of a bearer token (RFC 6750) to anybody: nothing in here is secret. Only of a
/// JSON web token (RFC 7519) is more known than that it is there; its signature is not looked at.
struct Token {
    std::optional<Time> issued;  ///< `nbf`, else `iat`
    std::optional<Time> expires; ///< `exp`
    bool operator==(const Token&) const = default;
};

/// A file larger than this is no token.
constexpr std::size_t k_largest_token = 64 << 10;

/// The token in a file or a variable, without the blanks around it (WLCG Bearer Token Discovery,
/// step 1 to 4). `missing`: nothing but blanks; `usage`: no token.
Result<std::string> token_text(std::string_view text);
/// Of what `token_text` has given.
Token token_facts(std::string_view token);

/// That `one` lasts longer than `other`. What does not say how long is as good as any.
bool is_better(const Token& one, const Token& other);

/// When to ask for the next one: at half of its life; ten minutes after it was `got` where it does
/// not tell.
Time refreshed_at(const Token& token, Time got);

} // namespace gpuq::credentials
