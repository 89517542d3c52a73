// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/verb.h"
#include "sim/curves.h"
#include "sim/measure.h"
#include "sim/scenario.h"
#include "sim/targets.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gpuq::cli {

/// Jobs of a trace that can not be simulated.
struct LeftOut {
    std::size_t without_gpus = 0;
    std::size_t never_started = 0;
};

/// The jobs that --trace or --from-accounting names; one at least.
struct Workload {
    std::string name; ///< the file, or `accounting of the last 14 days`
    sim::Trace trace;
    sim::People people;

    sim::Seconds span() const; ///< from the first submission to the last
    LeftOut left_out() const { return {trace.without_gpus, trace.never_started}; }
};

/// Whether any are named.
bool names_jobs(const Options& options);

/// `usage` unless exactly one is named, for what it holds, and for a trace without any job to
/// simulate; `missing` when accounting has no job
/// that could be simulated, `unreachable` when it does not answer.
Result<Workload> workload_in(Invocation& invocation);

/// What became of a workload, under one policy or another.
struct Simulated {
    std::string name; ///< the policy's file, or `plain queue`
    sim::Measures measures;
    std::map<std::size_t, std::string> refused; ///< index in the trace, and why
    sim::Curves curves;
    std::vector<sim::BrokenTarget> broken; ///< promises of the policy
};

/// `usage` when the policy does not say enough to be simulated.
Result<Simulated> simulated_under(const policy::Rules& rules, const std::string& name,
                                  const Workload& workload);

/// The nodes of `rules` as one plain queue.
Result<Simulated> simulated_plain(const policy::Rules& rules, const Workload& workload);

} // namespace gpuq::cli
