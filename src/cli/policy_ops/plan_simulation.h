// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/simulation.h"
#include "govern/candidate.h"
#include "report/json.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// A run of the workload that a policy refuses.
struct RefusedRun {
    sim::TraceJob job;
    std::string why;
};

/// The effect of a new policy on a workload, compared with the policy in force.
struct PlanSimulation {
    std::string trace; ///< name of the workload
    LeftOut left_out;  ///< its jobs that are not simulated
    std::string file;  ///< the new policy's
    /// The policy in force, or a plain queue if there is none that can be simulated; then the new
    /// one.
    std::vector<Simulated> all;
    std::vector<RefusedRun> newly_refused; ///< by the new policy only
};

/// Prints a note if the policy has hours and the jobs have no date.
void note_assumed_date(const Invocation& invocation, const policy::Policy& policy,
                       const Workload& workload);

/// Reads the policy in force through `admin`. Errors as in workload_in and simulated_under.
Result<PlanSimulation> simulate_plan(Invocation& invocation, Admin& admin,
                                     const govern::Candidate& desired);

/// Results that are not in the table: jobs left out, newly refused runs and missed wait targets.
/// Pure.
std::string consequences_text(const PlanSimulation& simulation);
report::Json plan_simulation_json(const PlanSimulation& simulation);

} // namespace gpuq::cli
