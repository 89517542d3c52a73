// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/accounted.h"

#include "core/percentile.h"
#include "sim/trace_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gpuq::sim {
namespace {

struct Group {
    std::vector<Seconds> waits;
    std::size_t waiting = 0;

    void add(const AccountedWait& one)
    {
        waits.push_back(one.wait);
        waiting += one.started ? 0 : 1;
    }
};

/// The jobs of one queue.
struct QueueGroup {
    Group all;
    std::map<std::string, Group> models;
    std::set<std::string> users;

    void add(const AccountedWait& one)
    {
        all.add(one);
        models[one.model].add(one);
        if (!one.user.empty()) {
            users.insert(one.user);
        }
    }
};

struct Span {
    Seconds since{0};
    Seconds now{0};
};

/// Evaluates one line, which may add a wait to `found`.
Result<void> take(const Line& line, const Columns& columns, const Fields& row, const Span& span,
                  AccountedWaits& found)
{
    TraceJob job;
    job.gpus = 0;
    read_sacct_tres(columns.in(row, "ReqTRES"), job);
    read_sacct_tres(columns.in(row, "AllocTRES"), job);
    TRY_ASSIGN(const auto submit, sacct_moment(line, columns.in(row, "Submit")));
    TRY_ASSIGN(const auto eligible, sacct_moment(line, columns.in(row, "Eligible")));
    TRY_ASSIGN(const auto start, sacct_moment(line, columns.in(row, "Start")));
    const bool has_none = job.gpus == 0 && job.shares == 0;
    if (has_none || !submit || !eligible || *submit < span.since) {
        return {};
    }
    const Seconds since = std::max(*submit, *eligible);
    // A job cancelled while it was pending has a start time, too, but never had resources.
    const bool started = start && !columns.in(row, "AllocTRES").empty();
    const std::string_view state = columns.in(row, "State");
    const bool waits = !started && state == "PENDING" && since <= span.now;
    // Slurm records an immediate request that it refused as FAILED: it never waited.
    found.withdrawn += !started && state.starts_with("CANCELLED") ? 1 : 0;
    if (started || waits) {
        const std::string_view partition = columns.in(row, "Partition");
        found.waits.push_back({std::string(partition.substr(0, partition.find(','))), job.model,
                               std::max(Seconds{0}, (started ? *start : span.now) - since), started,
                               std::string(columns.in(row, "User"))});
    }
    return {};
}

WaitFigures figures_of(Group group)
{
    std::sort(group.waits.begin(), group.waits.end());
    return {group.waits.size(), group.waiting, known_percentile(group.waits, 50),
            known_percentile(group.waits, 95), known_percentile(group.waits, 100)};
}

QueueWaits waits_of(const std::string& name, QueueGroup group)
{
    QueueWaits waits{name, figures_of(std::move(group.all)), {}, {}, group.users.size()};
    for (auto& [model, jobs] : group.models) {
        waits.models.emplace_back(model, figures_of(std::move(jobs)));
    }
    return waits;
}

std::vector<KeptTarget> kept(const policy::WaitTarget& targets, const WaitFigures& figures)
{
    std::vector<KeptTarget> kept;
    const auto hold = [&](int percent, const policy::Maybe<policy::minutes>& target,
                          const std::optional<Seconds>& wait) {
        if (target) {
            kept.push_back({percent, target->value, wait, target->line});
        }
    };
    hold(50, targets.p50, figures.p50);
    hold(95, targets.p95, figures.p95);
    hold(100, targets.max, figures.max);
    return kept;
}

} // namespace

Result<AccountedWaits> parse_waits(std::string_view text, const std::string& name, Time now,
                                   Time since)
{
    AccountedWaits found;
    std::optional<Columns> columns;
    const Span span{std::chrono::floor<Seconds>(since.time_since_epoch()),
                    std::chrono::floor<Seconds>(now.time_since_epoch())};
    TRY(each_line(text, name, [&](const Line& line, std::string_view column_names) -> Result<void> {
        const Fields row = split(column_names, '|');
        if (!columns) {
            columns.emplace(row);
            for (const char* needed : {"JobID", "Submit", "Eligible", "Start", "State", "Partition",
                                       "ReqTRES", "AllocTRES"}) {
                if (!columns->has(needed)) {
                    return line.wrong(fmt::format("the header has no {}", needed));
                }
            }
            return {};
        }
        if (row.size() != columns->size()) {
            return line.wrong(
                fmt::format("{} fields; the header has {}", row.size(), columns->size()));
        }
        const bool is_step = columns->in(row, "JobID").find('.') != std::string_view::npos;
        return is_step ? Result<void>() : take(line, *columns, row, span, found);
    }));
    return found;
}

std::vector<QueueWaits> waits_by_queue(const policy::Rules& rules,
                                       const std::vector<AccountedWait>& waits)
{
    std::map<const policy::Queue*, QueueGroup> groups;
    for (const AccountedWait& one : waits) {
        if (const auto* where = rules.of_partition(one.partition)) {
            groups[where->queue].add(one);
        }
    }
    std::vector<QueueWaits> queues;
    for (const policy::Queue& queue : rules.policy().queues) {
        queues.push_back(waits_of(queue.name, std::move(groups[&queue])));
        queues.back().targets = kept(queue.wait, queues.back().all);
    }
    return queues;
}

std::vector<QueueWaits> waits_by_partition(const std::vector<AccountedWait>& waits)
{
    std::map<std::string, QueueGroup> groups;
    for (const AccountedWait& one : waits) {
        groups[one.partition].add(one);
    }
    std::vector<QueueWaits> partitions;
    for (auto& [partition, group] : groups) {
        partitions.push_back(waits_of(partition, std::move(group)));
    }
    return partitions;
}

} // namespace gpuq::sim
