// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/profile.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What to ask for, or to look at, the next time. Pure.
namespace gpuq::telemetry {

/// What a run was given, as far as anybody knows.
struct Given {
    int nodes = 1;
    int gpus = 0;                  ///< on all nodes
    std::optional<int> cpus;       ///< for each node, asked for by number
    std::optional<double> ram_gib; ///< the same
};

/// One sentence with its evidence.
struct ProfileAdvice {
    std::string_view code; ///< stable
    std::string text;
    bool operator==(const ProfileAdvice&) const = default;
};

/// Advice is only given about what was known for so long, and for this share of the run's time:
/// the second for what is said of all the time (`at most`).
constexpr double k_advice_seconds = 60;
constexpr double k_advice_share = 0.5;
constexpr double k_advice_share_at_most = 0.9;

/// Out of values that are known alone: where too little is, nothing. `total`: of all the run's GPU
/// time.
std::vector<ProfileAdvice> advice_of(const Profile& profile, const GpuTime& total,
                                     const Given& given);

/// All codes there are, in the order of the rules.
std::span<const std::string_view> advice_codes();

} // namespace gpuq::telemetry
