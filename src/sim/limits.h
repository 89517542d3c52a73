// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <array>
#include <optional>
#include <vector>

namespace gpuq::sim {

/// What a job counts against its QOS.
struct Claim {
    int gpus = 0;
    Seconds limit{0};
    int user = 0; ///< small numbers, for tables
    int account = 0;
    std::optional<int> qos; ///< the job's own
};

/// What runs and waits under each QOS, and what still may. A partition's QOS comes first and hides
/// the same limit of the job's own.
class Limits {
public:
    Limits(const Machine& machine, std::size_t users, std::size_t accounts);

    /// Whether one more job may be submitted.
    bool may_submit(const Claim& claim, int partition) const;
    void submitted(const Claim& claim, int partition);
    void left(const Claim& claim, int partition);

    /// Whether it may start in `partition`.
    bool may_start(const Claim& claim, int partition, Seconds now) const;
    /// Whether it could if nothing else ran.
    bool may_ever_start(const Claim& claim, int partition) const;
    void started(const Claim& claim, int partition, Seconds now);
    void ended(const Claim& claim, int partition, Seconds start);

    bool has_any(int partition, const Claim& claim) const;

private:
    struct Count {
        int gpus = 0;
        int jobs = 0;
        int submitted = 0;
    };
    struct Use {
        Count all;
        std::vector<Count> users;
        std::vector<int> account_gpus;
        /// Of the running jobs: the sum of GPUs, and of GPUs times the moment of the limit.
        std::int64_t gpus_times_end = 0;
    };
    /// The partition's QOS, then the job's, as far as they are and differ.
    std::array<const Qos*, 2> order(const Claim& claim, int partition) const;
    const Use& use_of(const Qos& qos) const;
    template <typename Change>
    void change(const Claim& claim, int partition, Change apply);

    const Machine* m_machine;
    std::vector<Use> m_uses;
};

} // namespace gpuq::sim
