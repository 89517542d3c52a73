// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/limits.h"

#include "sim/at.h"

namespace gpuq::sim {

Limits::Limits(const Machine& machine, std::size_t users, std::size_t accounts)
    : m_machine(&machine)
    , m_uses(machine.qos.size())
{
    for (Use& use : m_uses) {
        use.users.resize(users);
        use.accounts.resize(accounts);
    }
}

std::array<const Qos*, 2> Limits::order(const Claim& claim, int partition) const
{
    std::array<const Qos*, 2> result{};
    const std::optional<int>& first = m_machine->partitions[at(partition)].qos;
    if (first) {
        result[0] = &m_machine->qos[at(*first)];
    }
    if (claim.qos && claim.qos != first) {
        result[1] = &m_machine->qos[at(*claim.qos)];
    }
    return result;
}

const Limits::Use& Limits::use_of(const Qos& qos) const
{
    return m_uses[static_cast<std::size_t>(&qos - m_machine->qos.data())];
}

bool Limits::may_submit(const Claim& claim, int partition) const
{
    const auto both = order(claim, partition);
    const auto within = [&](auto limit, auto submitted) {
        for (const Qos* qos : both) {
            if (qos && qos->*limit) {
                return submitted(use_of(*qos)) < *(qos->*limit);
            }
        }
        return true;
    };
    return within(&Qos::submitted_per_user,
                  [&](const Use& use) { return use.users[at(claim.user)].submitted; }) &&
           within(&Qos::submitted_per_account,
                  [&](const Use& use) { return use.accounts[at(claim.account)].submitted; }) &&
           within(&Qos::group_submitted, [](const Use& use) { return use.all.submitted; });
}

bool Limits::may_start(const Claim& claim, int partition, Seconds now) const
{
    const auto both = order(claim, partition);
    if (!both[0] && !both[1]) {
        return true;
    }
    // The first QOS that sets a limit determines it.
    const auto within = [&](auto limit, auto used_with_job) {
        for (const Qos* qos : both) {
            if (qos && qos->*limit) {
                return used_with_job(use_of(*qos)) <= *(qos->*limit);
            }
        }
        return true;
    };
    const auto of_user = [&](const Use& use) -> const Count& { return use.users[at(claim.user)]; };
    const auto of_account = [&](const Use& use) -> const Count& {
        return use.accounts[at(claim.account)];
    };
    const auto minutes_ahead = [&](const Count& count) {
        const std::int64_t running = count.gpus_times_end - count.gpus * now.count();
        return (running + claim.gpus * claim.limit.count()) / 60;
    };
    return may_ever_start(claim, partition) &&
           within(&Qos::gpus_per_user,
                  [&](const Use& use) { return of_user(use).gpus + claim.gpus; }) &&
           within(&Qos::jobs_per_user, [&](const Use& use) { return of_user(use).jobs + 1; }) &&
           within(&Qos::gpus_per_account,
                  [&](const Use& use) { return of_account(use).gpus + claim.gpus; }) &&
           within(&Qos::jobs_per_account,
                  [&](const Use& use) { return of_account(use).jobs + 1; }) &&
           within(&Qos::group_gpus, [&](const Use& use) { return use.all.gpus + claim.gpus; }) &&
           within(&Qos::shares_per_user,
                  [&](const Use& use) { return of_user(use).shares + claim.shares; }) &&
           within(&Qos::shares_per_account,
                  [&](const Use& use) { return of_account(use).shares + claim.shares; }) &&
           within(&Qos::group_shares,
                  [&](const Use& use) { return use.all.shares + claim.shares; }) &&
           within(&Qos::group_jobs, [&](const Use& use) { return use.all.jobs + 1; }) &&
           within(&Qos::gpu_minutes_per_user,
                  [&](const Use& use) { return minutes_ahead(of_user(use)); }) &&
           within(&Qos::gpu_minutes_per_account,
                  [&](const Use& use) { return minutes_ahead(of_account(use)); }) &&
           within(&Qos::group_gpu_minutes, [&](const Use& use) { return minutes_ahead(use.all); });
}

bool Limits::may_ever_start(const Claim& claim, int partition) const
{
    const auto both = order(claim, partition);
    const auto within = [&](auto limit, auto wanted) {
        for (const Qos* qos : both) {
            if (qos && qos->*limit) {
                return wanted <= *(qos->*limit);
            }
        }
        return true;
    };
    const std::int64_t minutes = claim.gpus * claim.limit.count() / 60;
    return within(&Qos::gpus_per_job, claim.gpus) && within(&Qos::max_time, claim.limit) &&
           within(&Qos::gpus_per_user, claim.gpus) && within(&Qos::group_gpus, claim.gpus) &&
           within(&Qos::gpus_per_account, claim.gpus) &&
           within(&Qos::shares_per_job, claim.shares) &&
           within(&Qos::shares_per_user, claim.shares) &&
           within(&Qos::shares_per_account, claim.shares) &&
           within(&Qos::group_shares, claim.shares) &&
           within(&Qos::gpu_minutes_per_user, minutes) &&
           within(&Qos::gpu_minutes_per_account, minutes) &&
           within(&Qos::group_gpu_minutes, minutes);
}

template <typename Change>
void Limits::change(const Claim& claim, int partition, Change apply)
{
    for (const Qos* qos : order(claim, partition)) {
        if (qos) {
            Use& use = m_uses[static_cast<std::size_t>(qos - m_machine->qos.data())];
            apply(use.all);
            apply(use.users[at(claim.user)]);
            apply(use.accounts[at(claim.account)]);
        }
    }
}

void Limits::submitted(const Claim& claim, int partition)
{
    change(claim, partition, [](Count& count) { ++count.submitted; });
}

void Limits::left(const Claim& claim, int partition)
{
    change(claim, partition, [](Count& count) { --count.submitted; });
}

void Limits::started(const Claim& claim, int partition, Seconds now)
{
    change(claim, partition, [&](Count& count) {
        count.gpus += claim.gpus;
        count.shares += claim.shares;
        ++count.jobs;
        count.gpus_times_end += claim.gpus * (now + claim.limit).count();
    });
}

void Limits::ended(const Claim& claim, int partition, Seconds start)
{
    change(claim, partition, [&](Count& count) {
        count.gpus -= claim.gpus;
        count.shares -= claim.shares;
        --count.jobs;
        count.gpus_times_end -= claim.gpus * (start + claim.limit).count();
    });
}

} // namespace gpuq::sim
