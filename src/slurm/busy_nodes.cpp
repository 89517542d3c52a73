// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/busy_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace gpuq::slurm {
namespace {

constexpr std::size_t k_named = 5;

bool is_time(std::string_view end)
{
    return !end.empty() && std::isdigit(static_cast<unsigned char>(end.front())) != 0;
}

/// With seconds, so that times can be compared as text.
std::string to_the_second(std::string_view time)
{
    constexpr std::size_t k_to_the_minute = sizeof "2026-12-07T18:00" - 1;
    return std::string(time) + (time.size() == k_to_the_minute ? ":00" : "");
}

std::string text_of(const HoldingJob& job)
{
    return fmt::format("job {} of {} on {} {}", job.id, job.user, job.nodes,
                       is_time(job.end) ? "may run until " + job.end : "has no time limit");
}

} // namespace

std::vector<HoldingJob> holding_past(std::string_view start, std::string_view printed)
{
    const std::string begins = to_the_second(start);
    std::vector<HoldingJob> jobs;
    std::istringstream lines{std::string(printed)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream cells(line);
        HoldingJob job;
        for (std::string* const cell : {&job.id, &job.user, &job.nodes, &job.end}) {
            std::getline(cells, *cell, '|');
        }
        if (!job.end.empty() && (!is_time(job.end) || job.end > begins)) {
            jobs.push_back(std::move(job));
        }
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const HoldingJob& one, const HoldingJob& other) {
        return std::pair(!is_time(one.end), one.end) < std::pair(!is_time(other.end), other.end);
    });
    return jobs;
}

std::string way_out(const std::string& reservation, const std::string& start,
                    const std::vector<HoldingJob>& jobs)
{
    if (jobs.empty()) {
        return fmt::format("the jobs on the nodes of {} have ended meanwhile: apply again",
                           reservation);
    }
    std::vector<std::string> named;
    std::vector<std::string> ids;
    for (const HoldingJob& job : jobs) {
        if (named.size() < k_named) {
            named.push_back(text_of(job));
        }
        ids.push_back(job.id);
    }
    if (jobs.size() > k_named) {
        named.push_back(fmt::format("{} more", jobs.size() - k_named));
    }
    const std::string& last = jobs.back().end;
    return fmt::format(
        "{}, and {} is due to begin at {}: {}end {} with `scancel {}`", fmt::join(named, "; "),
        reservation, start,
        is_time(last) ? fmt::format("apply again after {0}, let it begin at {0}, or ", last) : "",
        jobs.size() == 1 ? "it" : "them", fmt::join(ids, " "));
}

} // namespace gpuq::slurm
