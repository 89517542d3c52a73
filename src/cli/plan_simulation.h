// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/simulation.h"
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

/// What a policy that is to be applied would make of jobs, beside the one in force.
struct PlanSimulation {
    std::string trace; ///< the workload's name
    LeftOut left_out;  ///< of it
    std::string file;  ///< the new policy's
    /// The policy in force, or a plain queue when there is none that can be simulated; the new one.
    std::vector<Simulated> all;
    std::vector<RefusedRun> newly_refused; ///< by the new one alone
};

/// Asks the controller's files for the policy in force. Errors as workload_in and simulated_under.
Result<PlanSimulation> simulate_plan(Invocation& invocation, Admin& admin,
                                     const govern::Candidate& wanted);

/// What the table does not say: runs that are newly refused, and promises that are broken. Pure.
std::string consequences_text(const PlanSimulation& simulation);
report::Json plan_simulation_json(const PlanSimulation& simulation);

} // namespace gpuq::cli
