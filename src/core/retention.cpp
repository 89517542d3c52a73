// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/retention.h"

#include "core/size.h"
#include "core/strings.h"
#include "core/walltime.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

constexpr std::uint64_t k_bytes_per_mib = 1ULL << 20U;

Error no_retention(std::string_view text, std::string_view reason)
{
    return fail(Error::Kind::usage, fmt::format("invalid retention '{}': {}", text, reason));
}

Result<void> take(std::string_view word, std::string_view text, Retention& retention)
{
    const bool has_size = word.find_first_of("KMGT") != std::string_view::npos;
    if (word.find_first_not_of("0123456789") == std::string_view::npos) {
        return no_retention(text, "write it like 30d, 5G");
    }
    if (has_size ? retention.total_bytes.has_value() : retention.age.has_value()) {
        return no_retention(text, fmt::format("'{}' is a second {}", word,
                                              has_size ? "amount of disk" : "length of time"));
    }
    if (has_size) {
        TRY_ASSIGN(const std::uint64_t mib, parse_memory_mib(word));
        retention.total_bytes = mib * k_bytes_per_mib;
    } else {
        TRY_ASSIGN(retention.age, parse_duration(word));
    }
    return {};
}

} // namespace

Result<Retention> parse_retention(std::string_view text)
{
    Retention retention;
    std::string_view rest = text;
    while (true) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        TRY(take(trimmed(rest.substr(0, comma)), text, retention));
        if (comma == rest.size()) {
            return retention;
        }
        rest.remove_prefix(comma + 1);
    }
}

std::string to_text(const Retention& retention)
{
    std::string text;
    if (retention.age) {
        text = to_text(std::chrono::ceil<std::chrono::minutes>(*retention.age));
    }
    if (retention.total_bytes) {
        text += (text.empty() ? "" : ", ") + bytes_text(*retention.total_bytes);
    }
    return text;
}

} // namespace gpuq
