// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/deadline.h"
#include "supervisor/base/ending.h"
#include "supervisor/base/helper.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The end of the link, kept in agreement with Slurm, which may change it, and the times at which
/// Slurm is to be queried for it: once at the start and again before each warning, in a chain also
/// regularly if the job may be preempted with a grace period.
class TimeLimit {
public:
    using Steady = std::chrono::steady_clock::time_point;

    /// A link may be shorter than its job. If the limit of the job is raised, the link gets the
    /// same time more.
    struct LinkEnd {
        Time at;
        std::optional<Time> of_job; ///< the latest so far; nullopt: unknown
    };

    /// `link`: of a chain. `requested`: the time limit that the run was started with.
    TimeLimit(Deadline deadline, std::optional<LinkEnd> link, std::chrono::minutes requested,
              Steady first_query);

    Time at() const { return m_deadline.at(); }
    /// The same in seconds since 1970.
    std::uint64_t unix_time() const;
    /// True if a TERM from Slurm at this time is due to the limit.
    bool is_reached(Time now) const;
    /// Why the program is ended at the limit. Includes the time limit only if it differs from the
    /// requested one.
    Termination reached() const;

    void take_walltime(const JobNews& news);
    void take_end(const JobNews& news);
    /// Takes whether the job may be preempted with a grace period. If not, there are no regular
    /// queries.
    void take_preemption(const JobNews& news);
    bool knows_preemption() const { return m_may_get_grace.has_value(); }

    /// True if a query is due; the next one is due after `period`.
    bool query_is_due(Steady now, std::optional<std::chrono::milliseconds> period);
    Steady next_query() const { return m_is_outdated ? Steady::min() : m_query_at; }
    /// Slurm's limit was raised by `more`: a query is due. Only if Slurm was not queried before,
    /// and gives its jobs no SLURM_JOB_END_TIME (before 23.02), its limit at the start follows from
    /// `more`.
    void set_raised(std::chrono::minutes more);

    std::optional<Time> next_warning() const { return m_deadline.next_warning(); }
    /// True once for each warning: Slurm is queried before it is given.
    bool needs_query_to_warn() { return !std::exchange(m_asked_to_warn, true); }
    /// As in Deadline.
    std::optional<std::string> warning(Time now);

private:
    Deadline m_deadline;
    std::optional<LinkEnd> m_link;
    std::chrono::minutes m_requested;
    std::optional<std::chrono::minutes> m_walltime; ///< according to Slurm's last answer
    std::optional<bool> m_may_get_grace;            ///< nullopt: unknown
    Steady m_query_at;
    std::chrono::minutes m_raised_by{0}; ///< before the first answer
    bool m_asked_to_warn = false, m_is_outdated = false;
};

/// The added time in the text of layout::extended_file(); zero for any other text.
std::chrono::minutes extension_in(std::string_view text);

} // namespace gpuq::supervisor
