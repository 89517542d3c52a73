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

/// A policy and a trace as the simulator takes them.
namespace gpuq::sim {

/// How people state the time of a run that is as short as `short_run`, and of a longer one.
enum class Declared {
    honestly, ///< everybody asks for what they need, to the next ten minutes
    rarely,   ///< of the short ones 1.4 % do, as at UB-HPC; nobody else states any time
};

/// What people do.
struct People {
    Declared declared = Declared::honestly;
    /// Of the runs longer than `short_run` that fit one job, so many go on from a checkpoint when
    /// they have to leave; the others begin again. Longer ones always go on.
    int checkpointed_percent = 0;
};

/// What is to be simulated.
struct Scenario {
    Machine machine;
    std::vector<Job> jobs;
    std::vector<std::size_t> of_trace; ///< of each job, its index in the trace
    /// By the policy, and so left out: index in the trace, and its words.
    std::map<std::size_t, std::string> refused;
};

/// The trace under a policy: its pools, partitions and limits, every run routed by what `decide`
/// says to its user and account. A run that no queue takes as a whole goes on in link after link in
/// the longest queue with a `chain` that its user may use, and is refused where there is none. One
/// that states no time goes on there when the time that it got is over, or is killed then.
/// In a trace without users, limits of a user bind nobody: whom they would is not known. Without
/// accounts its partitions stand for them.
/// `usage` for pools that do not say which nodes and GPUs they have.
Result<Scenario> under_policy(const policy::Rules& rules, const Trace& trace, const People& people);

/// The same nodes as one plain queue of two days, first come, first served with backfill; what is
/// longer goes on in links, as centres have their users do by hand.
Result<Scenario> as_plain_queue(const policy::Rules& rules, const Trace& trace,
                                const People& people);

} // namespace gpuq::sim
