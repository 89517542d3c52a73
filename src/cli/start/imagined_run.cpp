// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/imagined_run.h"

#include "cli/policy_ops/in_force.h"
#include "cli/queries/site_context.h"
#include "cli/start/run_options.h"
#include "runs/plan.h"
#include "runs/queues/eligibility.h"
#include "runs/queues/forecast.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/queues.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gpuq::cli {
namespace {

constexpr std::array<std::string_view, 8> k_sizes{"time",  "gpus",    "cpus",  "mem",
                                                  "nodes", "account", "queue", "qos"};

/// Any program: the plan depends only on the options.
const std::vector<std::string> k_program{"true"};

Result<Plan> plan_of(Services& services, RunParameters parameters, const Inventory& inventory)
{
    TRY_ASSIGN(SiteContext here, site_context(services));
    here.nodes = inventory.nodes;
    const auto gpus =
        parameters.queue ? std::nullopt : std::optional(parameters.gpus.value_or(GpuRequest{}));
    take_policy(here, services, inventory.partitions, parameters.account, gpus);
    auto planned = plan(parameters, inventory.partitions, here);
    if (!planned && planned.error().kind == Error::Kind::usage) {
        parameters.chain.from_scratch = true; // a chain, of a program that saves checkpoints
        if (auto chain = plan(parameters, inventory.partitions, here)) {
            return chain;
        }
    }
    return planned;
}

/// The queue's share per GPU, as Slurm takes it.
const Partition* first_queue(const std::string& queues, const std::vector<Partition>& partitions)
{
    const auto found = std::find_if(partitions.begin(), partitions.end(), [&](const auto& queue) {
        return names_queue(queues, queue.name);
    });
    return found == partitions.end() ? nullptr : &*found;
}

Job job_of(const JobSpec& spec, const std::vector<Partition>& partitions)
{
    const Partition* const queue = first_queue(spec.partition, partitions);
    const int gpus = spec.gpus_per_node;
    const int cores = queue == nullptr ? 0 : queue->cpus_per_gpu.value_or(0) * gpus;
    const std::uint64_t memory =
        queue == nullptr ? 0
                         : queue->memory_mib_per_gpu.value_or(0) * static_cast<std::uint64_t>(gpus);
    Job job;
    job.uid = ::getuid();
    job.partition = spec.partition;
    job.walltime = spec.walltime;
    job.size.nodes = spec.nodes;
    job.size.cpus = spec.nodes * spec.cpus_per_node.value_or(std::max(cores, spec.tasks_per_node));
    job.size.memory_mib =
        static_cast<std::uint64_t>(spec.nodes) * spec.memory_mib_per_node.value_or(memory);
    job.size.share = spec.share;
    if (gpus > 0 && !spec.share) {
        job.size.gpus = {{spec.gpu_model.value_or(""), gpus * spec.nodes}};
        job.gpus = gpus * spec.nodes;
    }
    return job;
}

/// The jobs in line for some of the nodes that the job may use.
int jobs_before(const Job& job, const AllJobs& all, const Inventory& inventory)
{
    const std::vector<std::size_t> mine = usable_nodes(job, inventory);
    std::map<std::tuple<std::string, std::string, std::string>, bool> known;
    const auto wants_mine = [&](const Job& other) {
        const auto [entry, is_new] = known.try_emplace(
            {other.partition, other.size.only_nodes, other.size.excluded_nodes}, false);
        if (is_new) {
            const std::vector<std::size_t> nodes = usable_nodes(other, inventory);
            entry->second = std::find_first_of(nodes.begin(), nodes.end(), mine.begin(),
                                               mine.end()) != nodes.end();
        }
        return entry->second;
    };
    return static_cast<int>(std::count_if(all.jobs.begin(), all.jobs.end(), [&](const Job& other) {
        return could_start(other) && wants_mine(other);
    }));
}

bool is_one_ruled(const std::vector<Partition>& partitions)
{
    return std::any_of(partitions.begin(), partitions.end(),
                       [](const Partition& queue) { return queue.ruled; });
}

} // namespace

std::span<const Option> size_option_table()
{
    static const std::vector<Option> table = [] {
        std::vector<Option> rows;
        for (const Option& row : run_option_table()) {
            if (std::count(k_sizes.begin(), k_sizes.end(), row.name) > 0) {
                rows.push_back(row);
            }
        }
        return rows;
    }();
    return table;
}

Result<RequestForecast> forecast_run(Services& services, const Options& options,
                                     const Inventory& inventory, const AllJobs& all,
                                     const RunTimes& times, Time now)
{
    TRY_ASSIGN(const RunOptions given, run_options(options, k_program));
    TRY_ASSIGN(const Plan planned, plan_of(services, given.parameters, inventory));
    RequestForecast request;
    request.summary = planned.summary;
    request.job = job_of(planned.spec, inventory.partitions);
    request.forecast = forecast_start(request.job, all, inventory, times, now);
    if (is_one_ruled(inventory.partitions)) {
        request.forecast =
            within_hours(services, request.job.partition, std::move(request.forecast));
    }
    request.ahead = jobs_before(request.job, all, inventory);
    request.observed = times.ended();
    return request;
}

} // namespace gpuq::cli
