// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/decide.h"
#include "sim/scenario.h"
#include "tune/goal.h"
#include "tune/weeks.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpuq::tune {

/// The runs of a trace that belong together: those that the policy, as it is in the file, takes
/// into a queue, or the short or long ones. They stay together under every changed policy, so that
/// a target can not be met by sending runs elsewhere.
struct Group {
    std::string name;
    std::vector<bool> has; ///< by index in the trace
    std::size_t runs = 0;
    double gpu_hours = 0;
};

/// The groups of a policy: its queues with runs, in its order, then `short` and `long` unless
/// queues have these names. `usage` as sim::under_policy.
Result<std::vector<Group>> groups_of(const policy::Rules& rules, const sim::Trace& trace,
                                     const sim::UserModel& user_model);

/// The waits of the runs of a period.
struct Observed {
    struct Wait {
        std::size_t run = 0; ///< index in the trace
        Seconds submit{0};
        Seconds first{0}; ///< k_never
        Seconds all{0};   ///< over all links
    };
    std::vector<Wait> waits;
    std::size_t unserved = 0; ///< never started, refused, or stopped at their time limit
};

/// Simulates the period under the policy, which may be used by several threads at a time.
Result<Observed> observe(const policy::Rules& rules, const Period& period,
                         const sim::UserModel& user_model);
/// The same for a scenario of the period.
Result<Observed> observe(const sim::Scenario& scenario, const Period& period);

/// The wait that a goal is about, of the runs submitted from `begin` to before `end`; 0 if there
/// are none.
Seconds wait_of(const Goal& goal, const Group& group, const Observed& observed, Seconds begin,
                Seconds end);

} // namespace gpuq::tune
