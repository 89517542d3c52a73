// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/idle_keeper.h"

#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {

using telemetry::IdleVerdict;

IdleKeeper::IdleKeeper(std::string partition, const telemetry::IdleRule& rule, bool measured)
    : m_partition(std::move(partition))
    , m_rule(rule)
    , m_watch(rule, measured)
{
}

void IdleKeeper::input(std::uint64_t taken, Steady at)
{
    if (taken != m_taken) {
        m_taken = taken;
        m_typed = at;
    }
}

IdleVerdict IdleKeeper::add(const SampledActivity& sampled)
{
    const auto of_samples = [&](Steady at) {
        return std::chrono::floor<std::chrono::milliseconds>(at - sampled.began);
    };
    if (m_began) {
        m_watch.began(of_samples(*m_began));
    }
    if (m_typed) {
        m_watch.typed(of_samples(*m_typed));
    }
    if (m_printed) {
        m_watch.printed(of_samples(*m_printed));
    }
    return m_watch.add(sampled.activity);
}

std::optional<IdleVerdict> IdleKeeper::read()
{
    std::optional<IdleVerdict> verdict;
    SampledActivity sampled;
    ssize_t size = 0;
    while (m_activities &&
           (size = ::read(m_activities.get(), &sampled, sizeof sampled)) == sizeof sampled) {
        verdict = add(sampled);
    }
    if (m_activities && size == 0) {
        m_activities.reset(); // the sampler has ended: no more data
    }
    return verdict;
}

IdleFinding IdleKeeper::finding(IdleFinding::State state, const IdleVerdict& verdict, Time at) const
{
    return {state, at, m_partition, m_rule, verdict.left, verdict.evidence};
}

} // namespace gpuq::supervisor
