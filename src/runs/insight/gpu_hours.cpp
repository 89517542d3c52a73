// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/gpu_hours.h"

#include "core/percentile.h"
#include "ports/accounting.h"
#include "ports/nodes.h"
#include "telemetry/ledger.h"
#include "telemetry/noted_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gpuq {
namespace {

constexpr std::pair<UseBy, std::string_view> k_keywords[] = {{UseBy::user, "user"},
                                                             {UseBy::account, "account"},
                                                             {UseBy::lab, "lab"},
                                                             {UseBy::queue, "queue"},
                                                             {UseBy::model, "model"}};

std::string name_of(const JobUse& use, const std::string& model, UseBy by)
{
    switch (by) {
    case UseBy::user:
        return use.user;
    case UseBy::account:
        return use.account;
    case UseBy::lab:
        return use.lab;
    case UseBy::queue:
        return use.queue;
    case UseBy::model:
        return model;
    }
    return {};
}

/// A job's GPUs by model; GPUs that no model accounts for have an empty model.
std::vector<std::pair<std::string, int>> parts_of(const JobUse& use, bool by_model)
{
    if (!by_model || use.share) {
        return {{"", use.gpus}};
    }
    auto parts = use.models;
    int rest = use.gpus;
    for (const auto& [model, count] : parts) {
        rest -= count;
    }
    if (rest > 0) {
        parts.emplace_back("", rest);
    }
    return parts;
}

std::int64_t whole_seconds(std::chrono::milliseconds time)
{
    return std::chrono::floor<std::chrono::seconds>(time).count();
}

struct Sum {
    std::set<JobId> jobs;
    std::int64_t gpu_seconds = 0;
    GpuTime time;
    std::vector<std::chrono::seconds> waits;
};

UseRow row_of(const std::vector<std::string>& names, Sum sum)
{
    std::sort(sum.waits.begin(), sum.waits.end());
    return {names,
            static_cast<int>(sum.jobs.size()),
            sum.gpu_seconds,
            whole_seconds(sum.time.busy),
            whole_seconds(sum.time.idle),
            known_percentile(sum.waits, 50),
            known_percentile(sum.waits, 95)};
}

/// Shares of all nodes together may be more than one GPU.
std::chrono::milliseconds allocated_to(const JobUse& use, int gpus)
{
    const std::chrono::milliseconds elapsed = use.elapsed;
    if (!use.share) {
        return elapsed * std::max(gpus, 0);
    }
    const int parts = std::max(use.share->parts, 1);
    const int per_gpu = std::max(use.share->per_gpu.value_or(parts), 1);
    return elapsed * parts / per_gpu;
}

} // namespace

std::string_view word(UseBy by)
{
    for (const auto& [value, text] : k_keywords) {
        if (value == by) {
            return text;
        }
    }
    return {};
}

Result<std::vector<UseBy>> parse_use_by(std::string_view typed)
{
    std::vector<UseBy> list;
    while (true) {
        const std::string_view name = typed.substr(0, typed.find(','));
        const auto* const found = std::find_if(std::begin(k_keywords), std::end(k_keywords),
                                               [&](const auto& row) { return row.second == name; });
        if (found == std::end(k_keywords) ||
            std::find(list.begin(), list.end(), found->first) != list.end()) {
            return fail(
                Error::Kind::usage,
                fmt::format(
                    "--by: invalid key '{}'; use user, account, lab, queue or model, each once",
                    name));
        }
        list.push_back(found->first);
        if (name.size() == typed.size()) {
            return list;
        }
        typed.remove_prefix(name.size() + 1);
    }
}

void set_shares_per_gpu(std::vector<UseRecord>& records, const std::vector<Node>& nodes)
{
    for (UseRecord& record : records) {
        auto& share = record.use.share;
        for (const Node& node : nodes) {
            for (const NodeShares& shares : node.shares) {
                if (share && shares.kind == share->kind) {
                    share->per_gpu =
                        std::min(share->per_gpu.value_or(shares.per_gpu), shares.per_gpu);
                }
            }
        }
    }
}

GpuTime gpu_time_of(const UseRecord& record)
{
    const auto noted = record.whole && !record.use.share ? noted_use(record.comment) : std::nullopt;
    return of_allocated(noted.value_or(GpuTime{}), allocated_to(record.use, record.use.gpus));
}

std::vector<UseRow> gpu_hours(const std::vector<UseRecord>& records, const std::vector<UseBy>& by)
{
    const bool by_model = std::find(by.begin(), by.end(), UseBy::model) != by.end();
    std::map<std::vector<std::string>, Sum> sums;
    for (const UseRecord& record : records) {
        const JobUse& use = record.use;
        const auto parts = parts_of(use, by_model);
        for (const auto& [model, count] : parts) {
            std::vector<std::string> names;
            for (const UseBy one : by) {
                names.push_back(name_of(use, model, one));
            }
            Sum& sum = sums[names];
            sum.jobs.insert(use.id);
            sum.gpu_seconds += whole_seconds(allocated_to(use, count));
            sum.time += parts.size() == 1 ? gpu_time_of(record) : GpuTime{};
            if (record.waited) {
                sum.waits.push_back(*record.waited);
            }
        }
    }
    std::vector<UseRow> rows;
    for (auto& [names, sum] : sums) {
        rows.push_back(row_of(names, std::move(sum)));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const UseRow& one, const UseRow& other) {
        return one.gpu_seconds > other.gpu_seconds;
    });
    return rows;
}

} // namespace gpuq
