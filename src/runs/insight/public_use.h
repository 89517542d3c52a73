// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/gpu_hours.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// GPU-hours for the public. Pure.
namespace gpuq {

/// The use of GPUs by at least so many users that it is not that of a single one.
struct PublicUse {
    std::optional<std::string> name; ///< unset: several that have too few users
    std::int64_t gpu_seconds = 0;
    std::int64_t busy = 0;
    std::int64_t idle = 0;

    std::int64_t unknown() const { return gpu_seconds - busy - idle; }
    bool operator==(const PublicUse&) const = default;
};

/// Rows in descending order of GPU time, and last that of the others: names with fewer than
/// `least_users` users, and as many further ones, the smallest first, as that row needs to have
/// enough users itself. The rows add up to all use, so that no difference shows a name that was
/// left out. nullopt if all users together are too few.
std::optional<std::vector<PublicUse>> public_use(const std::vector<UseRecord>& records, UseBy by,
                                                 std::size_t least_users);

} // namespace gpuq
