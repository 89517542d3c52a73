// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/time_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// Slurm checks time limits twice a minute; a TERM this close to the limit is due to the limit.
constexpr auto k_tolerance = 5s;

} // namespace

TimeLimit::TimeLimit(Deadline deadline, std::optional<Time> link_end,
                     std::chrono::minutes requested, Steady first_query)
    : m_deadline(deadline)
    , m_link_end(link_end)
    , m_requested(requested)
    , m_query_at(first_query)
{
}

bool TimeLimit::is_reached(Time now) const
{
    return now >= m_deadline.at() - k_tolerance;
}

Termination TimeLimit::reached() const
{
    const bool changed = m_walltime && *m_walltime != m_requested;
    return {Cause::time_limit, changed ? fmt::format("{} min", m_walltime->count()) : ""};
}

void TimeLimit::take_walltime(const JobNews& news)
{
    m_walltime = news.walltime ? news.walltime : m_walltime;
}

void TimeLimit::take_end(const JobNews& news)
{
    if (news.ends_at) {
        m_deadline.correct(m_link_end ? std::min(*news.ends_at, *m_link_end) : *news.ends_at);
    }
}

void TimeLimit::take_preemption(const JobNews& news)
{
    m_may_get_grace = news.may_get_grace ? news.may_get_grace : m_may_get_grace;
    if (m_may_get_grace == false) {
        m_query_at = Steady::max();
    }
}

bool TimeLimit::query_is_due(Steady now, std::optional<std::chrono::milliseconds> period)
{
    if (now < m_query_at) {
        return false;
    }
    m_query_at = period ? now + *period : Steady::max();
    return true;
}

std::optional<std::string> TimeLimit::warning(Time now)
{
    m_asked_to_warn = false;
    return m_deadline.warning(now);
}

} // namespace gpuq::supervisor
