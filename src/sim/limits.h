// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <array>
#include <optional>
#include <vector>

namespace gpuq::sim {

/// The amounts by which a job counts against its QOS.
struct Claim {
    int gpus = 0;
    int shares = 0; ///< of one GPU; counted apart
    Seconds limit{0};
    int user = 0; ///< small numbers, used as indexes
    int account = 0;
    std::optional<int> qos; ///< the job's own
};

/// The running and pending jobs under each QOS, and whether more are allowed. A limit of the
/// partition's QOS overrides the same limit of the job's own.
class Limits {
public:
    Limits(const Machine& machine, std::size_t users, std::size_t accounts);

    /// Whether one more job may be submitted.
    bool may_submit(const Claim& claim, int partition) const;
    void submitted(const Claim& claim, int partition);
    void left(const Claim& claim, int partition);

    /// Whether the job may start in `partition` now.
    bool may_start(const Claim& claim, int partition, Seconds now) const;
    /// Whether it could start if no other job ran.
    bool may_ever_start(const Claim& claim, int partition) const;
    void started(const Claim& claim, int partition, Seconds now);
    void ended(const Claim& claim, int partition, Seconds start);

private:
    struct Count {
        int gpus = 0;
        int shares = 0;
        int jobs = 0;
        int submitted = 0;
        /// For the running jobs: the sum of GPUs times the end of the time limit.
        std::int64_t gpus_times_end = 0;
    };
    struct Use {
        Count all;
        std::vector<Count> users;
        std::vector<Count> accounts;
    };
    /// The partition's QOS, then the job's if it is a different one; null if unset.
    std::array<const Qos*, 2> order(const Claim& claim, int partition) const;
    const Use& use_of(const Qos& qos) const;
    /// Changes the counts of all, of the claim's user and of its account.
    template <typename Change>
    void change(const Claim& claim, int partition, Change apply);

    const Machine* m_machine;
    std::vector<Use> m_uses;
};

} // namespace gpuq::sim
