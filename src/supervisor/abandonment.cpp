// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/abandonment.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_query_period = 60s;
/// Less CPU time than this does not count as work: a prompt, an editor, a clock.
constexpr int k_work_percent = 2;

std::string in_minutes(std::chrono::milliseconds time)
{
    return fmt::format("{} minutes", std::chrono::round<std::chrono::minutes>(time).count());
}

} // namespace

std::optional<std::string> Abandonment::check(const ShellActivity& activity)
{
    const auto passed = m_checked_at ? activity.now - *m_checked_at : Clock::duration(0);
    const bool works = (activity.cpu_time - m_cpu_time) * 100 > passed * k_work_percent;
    m_checked_at = activity.now;
    m_cpu_time = activity.cpu_time;
    m_claimed = m_claimed || activity.was_attached;
    if (activity.attached || m_attached || (m_claimed && works)) {
        m_since = activity.now;
    } else if (m_claimed) {
        m_since = std::max(m_since, activity.last_output);
    }
    m_attached = activity.attached;
    if (activity.now < m_since + limit()) {
        return std::nullopt;
    }
    return m_claimed
               ? fmt::format("the shell was unattended and idle for {}", in_minutes(m_limits.idle))
               : fmt::format("no client attached to the shell within {}",
                             in_minutes(m_limits.unclaimed));
}

Abandonment::Clock::time_point Abandonment::next_check() const
{
    return m_checked_at
               ? std::min<Clock::time_point>(*m_checked_at + k_query_period, m_since + limit())
               : m_since;
}

} // namespace gpuq::supervisor
