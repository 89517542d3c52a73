// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/time_limit.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// Slurm checks time limits twice a minute; a TERM this close to the limit is due to the limit.
constexpr auto k_tolerance = 5s;

} // namespace

TimeLimit::TimeLimit(Deadline deadline, std::optional<LinkEnd> link, std::chrono::minutes requested,
                     Steady first_query)
    : m_deadline(deadline)
    , m_link(link)
    , m_requested(requested)
    , m_query_at(first_query)
{
}

std::uint64_t TimeLimit::unix_time() const
{
    const auto time = std::chrono::floor<std::chrono::seconds>(at()).time_since_epoch();
    return static_cast<std::uint64_t>(time.count());
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
    if (!news.ends_at) {
        return;
    }
    if (m_link) {
        const Time before = m_link->of_job.value_or(*news.ends_at - m_raised_by);
        const bool is_later = *news.ends_at > before + k_tolerance;
        m_link->at += is_later ? *news.ends_at - before : Time::duration{0};
        m_link->of_job = std::max(before, *news.ends_at);
    }
    m_deadline.correct(m_link ? std::min(*news.ends_at, m_link->at) : *news.ends_at);
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
    if (std::exchange(m_is_outdated, false)) {
        return true;
    }
    if (now < m_query_at) {
        return false;
    }
    m_query_at = period ? now + *period : Steady::max();
    return true;
}

void TimeLimit::set_raised(std::chrono::minutes more)
{
    m_is_outdated = true;
    m_raised_by += more;
}

std::optional<std::string> TimeLimit::warning(Time now)
{
    m_asked_to_warn = false;
    return m_deadline.warning(now);
}

std::chrono::minutes extension_in(std::string_view text)
{
    constexpr std::uint64_t k_most = 60 * 24 * 366;
    const auto more = whole_number(trimmed(cut(text, ' ').second));
    return std::chrono::minutes(more && *more <= k_most ? *more : 0);
}

} // namespace gpuq::supervisor
