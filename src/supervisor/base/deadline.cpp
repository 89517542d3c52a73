// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/deadline.h"

#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <strings.h>

namespace gpuq::supervisor {
namespace {

using std::chrono::minutes;

constexpr minutes k_leads[] = {minutes{15}, minutes{5}, minutes{1}};

} // namespace

Deadline::Deadline(Time started, minutes walltime, std::optional<Time> end_by_slurm)
    : m_at(end_by_slurm.value_or(started + walltime))
    , m_walltime(walltime)
{
}

void Deadline::correct(Time at)
{
    if (at >= m_at + minutes{1}) {
        m_last = minutes::max();
    }
    m_at = at;
}

std::optional<Time> Deadline::next_warning() const
{
    for (const minutes lead : k_leads) {
        if (lead < m_last && lead < m_walltime) {
            return m_at - lead;
        }
    }
    return std::nullopt;
}

std::optional<std::string> Deadline::warning(Time now)
{
    std::optional<minutes> due;
    for (const minutes lead : k_leads) {
        if (lead < m_last && lead < m_walltime && now >= m_at - lead) {
            due = lead;
        }
    }
    if (!due) {
        return std::nullopt;
    }
    m_last = *due;
    return *due == minutes{1} ? "1 minute left" : fmt::format("{} minutes left", due->count());
}

std::chrono::seconds kill_wait_in(std::string_view slurm_conf)
{
    constexpr std::string_view k_name = "KillWait";
    std::chrono::seconds wait{30};
    while (!slurm_conf.empty()) {
        const std::size_t end = std::min(slurm_conf.find('\n'), slurm_conf.size());
        const std::string_view line = trimmed(slurm_conf.substr(0, end));
        slurm_conf.remove_prefix(std::min(end + 1, slurm_conf.size()));
        const std::size_t equals = line.find('=');
        const std::string_view name = trimmed(line.substr(0, equals));
        if (equals == std::string_view::npos || name.size() != k_name.size() ||
            ::strncasecmp(name.data(), k_name.data(), k_name.size()) != 0) {
            continue;
        }
        const std::string_view value = trimmed(line.substr(equals + 1));
        int seconds = 0;
        const auto read = std::from_chars(value.data(), value.data() + value.size(), seconds);
        if (read.ec == std::errc() && seconds >= 0) {
            wait = std::chrono::seconds{seconds};
        }
    }
    return wait;
}

} // namespace gpuq::supervisor
