// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// Limits on the data kept from ended runs. Unset means no limit.
struct Retention {
    std::optional<std::chrono::seconds> age;  ///< since the run ended
    std::optional<std::uint64_t> total_bytes; ///< of all runs together

    bool operator==(const Retention&) const = default;
};

/// Parses `30d`, `5G` or `30d, 5G`: a duration (core/walltime.h), a disk size with its unit in
/// capitals, or both. `usage` with the reason for anything else.
Result<Retention> parse_retention(std::string_view text);

/// For display: `30 days, 5 GiB`.
std::string to_text(const Retention& retention);

} // namespace gpuq
