// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// What is kept of ended runs. Unset: no such limit.
struct Retention {
    std::optional<std::chrono::seconds> age;  ///< since the end
    std::optional<std::uint64_t> total_bytes; ///< of all runs together

    bool operator==(const Retention&) const = default;
};

/// `30d`, `5G` or `30d, 5G`: a length of time (core/walltime.h), an amount of disk with its unit in
/// capitals, or both. `usage` with the reason for anything else.
Result<Retention> parse_retention(std::string_view text);

/// For people: `30 days, 5 GiB`.
std::string to_text(const Retention& retention);

} // namespace gpuq
