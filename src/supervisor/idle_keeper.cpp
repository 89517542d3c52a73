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

IdleKeeper::Step IdleKeeper::next(bool ends_already)
{
    const auto verdict = read();
    if (!verdict || ends_already) {
        return Step::none;
    }
    m_verdict = *verdict;
    const bool is_time = verdict->state == IdleVerdict::State::release;
    m_may_release = m_may_release && is_time;
    switch (verdict->state) {
    case IdleVerdict::State::release:
        if (m_may_release) {
            return Step::release;
        }
        return std::exchange(m_asked, true) ? Step::none : Step::ask;
    case IdleVerdict::State::warn:
        return m_reported == IdleFinding::State::warned ? Step::none : Step::warn;
    case IdleVerdict::State::exempt:
        return m_reported == IdleFinding::State::exempt ? Step::none : Step::report_exemption;
    case IdleVerdict::State::works:
    case IdleVerdict::State::unknown:
        return m_reported == IdleFinding::State::warned || m_reported == IdleFinding::State::exempt
                   ? Step::report_work
                   : Step::none;
    }
    return Step::none;
}

void IdleKeeper::release_answered(bool may_release)
{
    m_asked = false;
    m_may_release = may_release;
    if (!may_release) {
        m_watch.put_off();
    }
}

IdleFinding IdleKeeper::report(IdleFinding::State state, Time at)
{
    m_reported = state;
    return {state, at, m_partition, m_rule, m_verdict.left, m_verdict.evidence};
}

} // namespace gpuq::supervisor
