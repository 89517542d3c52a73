// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/profile.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Advice on requests and bottlenecks, for a user's next run. Pure.
namespace gpuq::telemetry {

/// The resources that a run was given, as far as known.
struct Given {
    int nodes = 1;
    int gpus = 0;                  ///< on all nodes
    std::optional<int> cpus;       ///< per node, if requested by number
    std::optional<double> ram_gib; ///< likewise
};

/// One sentence that includes its evidence.
struct ProfileAdvice {
    std::string_view code; ///< stable
    std::string text;
    bool operator==(const ProfileAdvice&) const = default;
};

/// Advice is given only if the values are known for at least this long and for this share of the
/// run's time; the second share applies to statements about all of the time (`at most`).
constexpr double k_advice_seconds = 60;
constexpr double k_advice_share = 0.5;
constexpr double k_advice_share_at_most = 0.9;

/// Uses only known values; no advice if too few are known. `total`: the use of all the run's GPU
/// time.
std::vector<ProfileAdvice> advice_of(const Profile& profile, const GpuTime& total,
                                     const Given& given);

/// All existing codes, in the order of the rules.
std::span<const std::string_view> advice_codes();

} // namespace gpuq::telemetry
