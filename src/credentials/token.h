// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq::credentials {

/// The public properties of a bearer token (RFC 6750): nothing in here is secret. Only a JSON Web
/// Token (RFC 7519) has any; its signature is not verified.
struct Token {
    std::optional<Time> issued;  ///< `nbf`, else `iat`
    std::optional<Time> expires; ///< `exp`
    bool operator==(const Token&) const = default;
};

/// A larger file is not a token.
constexpr std::size_t k_largest_token = 64 << 10;

/// Extracts the token from the content of a file or variable, without surrounding blanks (WLCG
/// Bearer Token Discovery, steps 1 to 4). `missing` if there are only blanks; `usage` if it is not
/// a token.
Result<std::string> token_text(std::string_view text);
/// Takes a result of `token_text`.
Token token_facts(std::string_view token);

/// True if `one` expires later than `other`, or if either has no expiry time.
bool is_better(const Token& one, const Token& other);

/// When to request the next token: at half of its lifetime, or ten minutes after `got` if it has no
/// expiry time.
Time refreshed_at(const Token& token, Time got);

} // namespace gpuq::credentials
