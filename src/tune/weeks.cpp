// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/weeks.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::tune {
namespace {

constexpr int k_unseen_part = 3; ///< one of so many

Period period_of(const sim::Trace& trace, int first, int last)
{
    Period period{first, last, {}, {}};
    period.trace.clock = trace.clock;
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        const Seconds submit = trace.jobs[i].submit;
        if (submit >= period.begin() - k_week && submit < period.end()) {
            period.trace.jobs.push_back(trace.jobs[i]);
            period.indexes.push_back(i);
        }
    }
    return period;
}

bool has_jobs(const Period& period)
{
    return std::any_of(period.trace.jobs.begin(), period.trace.jobs.end(),
                       [&](const sim::TraceJob& job) { return period.contains(job.submit); });
}

} // namespace

std::string Period::text() const
{
    return first == last ? fmt::format("week {}", first)
                         : fmt::format("weeks {} to {}", first, last);
}

Result<Weeks> weeks_of(const sim::Trace& trace, const std::string& name)
{
    const int count =
        trace.jobs.empty() ? 0 : static_cast<int>(trace.jobs.back().submit / k_week) + 1;
    const int unseen = std::max(1, count / k_unseen_part);
    if (count < 2) {
        return fail(Error::Kind::usage,
                    fmt::format("{}: shorter than a week: tune needs at least two, one to search "
                                "in and one to check the result",
                                name));
    }
    Weeks weeks{period_of(trace, 1, count - unseen), period_of(trace, count - unseen + 1, count)};
    if (!has_jobs(weeks.searched) || !has_jobs(weeks.unseen)) {
        return fail(Error::Kind::usage,
                    fmt::format("{}: no jobs in {}", name,
                                (has_jobs(weeks.searched) ? weeks.unseen : weeks.searched).text()));
    }
    return weeks;
}

} // namespace gpuq::tune
