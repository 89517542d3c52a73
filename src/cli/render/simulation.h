// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "sim/curves.h"
#include "sim/measure.h"
#include "sim/outages.h"
#include "sim/scenario.h"
#include "sim/targets.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// Jobs of a trace that can't be simulated.
struct LeftOut {
    std::size_t without_gpus = 0;
    std::size_t never_started = 0;
    std::size_t other_shares = 0; ///< of GPUs, in a form that is not simulated
};

/// The jobs given by --trace or --from-accounting; at least one.
struct Workload {
    std::string name; ///< the file, or `accounting of the last 14 days`
    sim::Trace trace;
    sim::UserModel user_model;
    std::optional<sim::Failures> failures;

    sim::Seconds span() const; ///< from the first submission to the last
    LeftOut left_out() const
    {
        return {trace.without_gpus, trace.never_started, trace.other_shares};
    }
};

/// Whether one of these options is given.
bool names_jobs(const Options& options);

/// `usage` unless exactly one is given, for invalid content, and for a trace without a job to
/// simulate; `missing` if accounting has no job to simulate, `unreachable` if it does not respond.
Result<Workload> workload_in(Invocation& invocation);

/// The result of simulating a workload under one policy.
struct Simulated {
    std::string name; ///< the policy's file, or `plain queue`
    sim::Measures measures;
    std::map<std::size_t, std::string> refused; ///< index in the trace, and the reason
    sim::Curves curves;
    std::vector<sim::BrokenTarget> broken; ///< missed wait targets of the policy
};

/// `usage` if the policy lacks data that a simulation needs.
Result<Simulated> simulated_under(const policy::Rules& rules, const std::string& name,
                                  const Workload& workload);

/// The assumption about the date of a workload that has none, if the policy has hours; else empty.
/// Pure.
std::string assumed_date(const policy::Policy& policy, const Workload& workload);

/// Simulates the nodes of `rules` as one plain queue.
Result<Simulated> simulated_plain(const policy::Rules& rules, const Workload& workload);

} // namespace gpuq::cli
