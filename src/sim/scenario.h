// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/decide.h"
#include "sim/job.h"
#include "sim/machine.h"
#include "sim/trace.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

/// Converts a policy and a trace to the simulator's input.
namespace gpuq::sim {

/// How users state the time limit of a short run (up to two hours), and of a longer one, if the
/// trace has none.
enum class Declared {
    honestly, ///< all users state the time they need, rounded up to ten minutes
    rarely,   ///< for 1.4 % of the short runs, as at UB-HPC; never for others
};

/// The behaviour of users.
struct UserModel {
    Declared declared = Declared::honestly;
    /// Percentage of the runs that are longer than two hours, fit into one job, and continue from a
    /// checkpoint if they have to leave; the others start again. Runs that do not fit into one job
    /// always continue.
    int checkpointed_percent = 0;
};

/// The input of a simulation.
struct Scenario {
    Machine machine;
    std::vector<Job> jobs;
    std::vector<std::size_t> of_trace; ///< for each job, its index in the trace
    /// Runs that the policy refuses, and which are left out: index in the trace, and the message.
    std::map<std::size_t, std::string> refused;
};

/// The trace under a policy: its pools, partitions and limits, with every run routed by the verdict
/// of `decide` for its user and account. A run that no queue accepts as a whole continues in link
/// after link in the longest queue with a `chain` that its user may use, and is refused if there is
/// none. A run without a stated time limit continues in such a queue when its default time is over;
/// if there is none, it is killed.
/// In a trace without users, limits per user do not apply: it is unknown which jobs they would
/// affect. Without accounts, partitions are used as accounts.
/// `usage` for pools that do not specify their nodes and GPUs.
Result<Scenario> under_policy(const policy::Rules& rules, const Trace& trace,
                              const UserModel& user_model);

/// The same nodes as one plain queue of two days, first come, first served with backfill; longer
/// runs continue in links, as users of computing centres do by hand.
Result<Scenario> as_plain_queue(const policy::Rules& rules, const Trace& trace,
                                const UserModel& user_model);

} // namespace gpuq::sim
