// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/submission.h"

#include "core/number.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gpuq::policy {
namespace {

constexpr std::uint64_t k_most = 999'999'999;

bool begins_with_digit(std::string_view text)
{
    return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

/// `2`, `2k`: Slurm's counts may have a suffix (srun(1), --gres).
int count_of(std::string_view text)
{
    std::uint64_t factor = 1;
    if (!text.empty() && (text.back() == 'k' || text.back() == 'K')) {
        factor = 1024;
        text.remove_suffix(1);
    }
    const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= '0' && c <= '9';
    });
    if (!is_number) {
        return 0;
    }
    const std::uint64_t count = whole_number(text).value_or(k_most);
    return static_cast<int>(std::min(k_most, std::min(count, k_most) * factor));
}

std::string_view without_prefix(std::string_view item)
{
    return item.starts_with("gres:") || item.starts_with("gres/") ? item.substr(5) : item;
}

std::optional<GpuCount> gpus_in_item(std::string_view item)
{
    item = without_prefix(item);
    const auto parts = split(item, ":=");
    if (parts.front() != "gpu") {
        return std::nullopt;
    }
    if (parts.size() == 1) {
        return GpuCount{"", 1};
    }
    if (parts.size() == 2) {
        return begins_with_digit(parts[1]) ? GpuCount{"", count_of(parts[1])}
                                           : GpuCount{std::string(parts[1]), 1};
    }
    return GpuCount{std::string(parts[1]), parts.size() == 3 ? count_of(parts[2]) : 0};
}

/// Unset and 0 are equivalent.
std::uint64_t at_least_one(const std::optional<std::uint32_t>& number)
{
    return std::max(1U, number.value_or(1));
}

std::uint64_t sum(const std::vector<GpuCount>& gpus)
{
    std::uint64_t total = 0;
    for (const GpuCount& count : gpus) {
        total += static_cast<std::uint64_t>(count.count);
    }
    return total;
}

std::uint64_t divided_up(std::uint64_t number, std::uint64_t by)
{
    return (number + by - 1) / by;
}

/// The minimum number of nodes that Slurm can allocate, regardless of GPUs.
std::uint64_t fewest_nodes(const Submission& job)
{
    const bool tasks_per_node = job.ntasks_per_node.value_or(0) > 0;
    return std::max(at_least_one(job.min_nodes),
                    tasks_per_node ? divided_up(job.num_tasks.value_or(0), *job.ntasks_per_node)
                                   : 0);
}

std::uint64_t tasks_of(const Submission& job)
{
    return job.num_tasks.value_or(0) > 0
               ? *job.num_tasks
               : at_least_one(job.min_nodes) * at_least_one(job.ntasks_per_node);
}

/// The CPUs that each node must have: --ntasks-per-node=3 requires three tasks' even with -n 2.
std::uint64_t cpus_per_node(const Submission& job)
{
    const std::uint64_t of_tasks =
        std::uint64_t{job.ntasks_per_node.value_or(0)} * at_least_one(job.cpus_per_task);
    return std::min(k_most, std::max(of_tasks, std::uint64_t{job.pn_min_cpus.value_or(0)}));
}

/// The number of nodes for which memory and CPUs per node are allocated.
std::uint64_t nodes_of(const Submission& job, const GpuTotals& gpus, std::uint64_t most_nodes)
{
    const std::uint64_t fewest = fewest_nodes(job);
    if (gpus.per_node > 0) {
        return std::max(fewest, divided_up(std::min(gpus.total, k_most), gpus.per_node));
    }
    const std::uint64_t most = job.max_nodes.value_or(0) > 0 ? *job.max_nodes : gpus.total;
    return std::max(fewest, std::min({most, gpus.total, most_nodes}));
}

/// CPUs of a job that states only its total number of GPUs, in the most uneven layout on the fewest
/// nodes possible. `each`: CPUs that come with a GPU.
std::uint64_t cpus_when_uneven(const Submission& job, std::uint64_t gpus, std::uint64_t each,
                               std::uint64_t gpus_per_node)
{
    const std::uint64_t nodes =
        std::min(k_most, std::max(fewest_nodes(job), divided_up(gpus, gpus_per_node)));
    const std::uint64_t fullest = gpus < nodes ? 1 : std::min(gpus - (nodes - 1), gpus_per_node);
    // With --ntasks-per-node=1, 22.05 gives the first node a core more than comes with its GPUs.
    const bool is_first_fuller =
        nodes > 1 && job.ntasks_per_node == 1U && gpus < nodes * gpus_per_node;
    return std::min(k_most, nodes * fullest * std::min(each, k_most) + (is_first_fuller ? 1 : 0));
}

/// The threads of each core that the job uses. With --ntasks-per-core=1, CPUs that are not those of
/// a task (--mincpus, --cpus-per-gpu, the default with each GPU) take a core each.
std::uint64_t threads_used(const Submission& job, std::uint64_t threads)
{
    const std::uint64_t each = job.threads_per_core.value_or(k_unlimited);
    const std::uint64_t tasks = job.ntasks_per_core.value_or(0);
    const std::uint64_t of_tasks =
        tasks > 0 ? tasks * at_least_one(job.cpus_per_task) : std::uint64_t{k_unlimited};
    return std::max<std::uint64_t>(1, std::min({threads, each, of_tasks}));
}

/// The number of whole cores for `cpus` that are distributed evenly over `nodes`.
std::uint64_t cores_of(const Submission& job, std::uint64_t cpus, std::uint64_t tasks,
                       std::uint64_t nodes, std::uint64_t threads)
{
    const std::uint64_t used = threads_used(job, threads);
    const std::uint64_t fuller = cpus % nodes;
    const std::uint64_t spread = fuller * divided_up(cpus / nodes + 1, used) +
                                 (nodes - fuller) * divided_up(cpus / nodes, used);
    const bool limited = job.ntasks_per_core.value_or(0) > 0;
    return std::max(spread, limited ? divided_up(tasks, *job.ntasks_per_core) : 0);
}

/// The same syntax as for other names in the policy.
bool is_model(std::string_view text)
{
    return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '-' || c == '_';
           });
}

} // namespace

void ask_for(Submission& job, std::optional<int> cpus, std::optional<std::uint64_t> memory_mib)
{
    if (cpus) {
        job.cpus_per_task = static_cast<std::uint32_t>(*cpus);
        job.pn_min_cpus = job.cpus_per_task;
        job.min_cpus = static_cast<std::uint32_t>(at_least_one(job.min_nodes)) * *job.cpus_per_task;
    }
    if (memory_mib) {
        job.min_mem_per_node =
            static_cast<std::uint32_t>(std::min(*memory_mib, std::uint64_t{k_unlimited} - 2));
    }
}

bool has_shares(std::string_view tres)
{
    const auto items = split(tres, ",");
    return std::any_of(items.begin(), items.end(), [](std::string_view item) {
        const auto parts = split(without_prefix(item), ":=");
        return parts.front() == "shard" || parts.front() == "mps";
    });
}

namespace {

/// The number of shards in a TRES string; 0 if an item of it is in another form, or mps.
std::uint64_t shards_in(std::string_view tres)
{
    std::uint64_t total = 0;
    for (const std::string_view item : split(tres, ",")) {
        const auto parts = split(without_prefix(item), ":=");
        if (parts.front() != "shard") {
            if (parts.front() == "mps") {
                return 0;
            }
            continue;
        }
        const int count = parts.size() == 1 ? 1 : parts.size() == 2 ? count_of(parts[1]) : 0;
        if (count == 0) {
            return 0;
        }
        total += static_cast<std::uint64_t>(count);
    }
    return total;
}

} // namespace

std::vector<GpuCount> gpus_in_tres(std::string_view tres)
{
    std::vector<GpuCount> gpus;
    for (const std::string_view item : split(tres, ",")) {
        if (auto count = gpus_in_item(item)) {
            gpus.push_back(*std::move(count));
        }
    }
    return gpus;
}

GpuTotals gpu_totals(const Submission& job)
{
    const auto per_job = gpus_in_tres(job.tres.per_job);
    const auto per_node = gpus_in_tres(job.tres.per_node);
    const auto per_task = gpus_in_tres(job.tres.per_task);
    const auto per_socket = gpus_in_tres(job.tres.per_socket);
    const std::uint64_t nodes = fewest_nodes(job);
    const std::uint64_t most_nodes = std::max(nodes, std::uint64_t{job.max_nodes.value_or(0)});
    const std::uint64_t per_gpu = job.ntasks_per_tres.value_or(0);
    const std::uint64_t of_tasks = per_gpu == 0    ? 0
                                   : job.num_tasks ? *job.num_tasks / per_gpu
                                                   : nodes;
    const auto on = [&](std::uint64_t count) {
        const std::uint64_t total =
            std::max({sum(per_job), count * sum(per_node), tasks_of(job) * sum(per_task),
                      count * at_least_one(job.sockets_per_node) * sum(per_socket)});
        return total > 0 ? total : of_tasks;
    };
    GpuTotals asked;
    asked.per_node = sum(per_node);
    asked.shares = has_shares(job.tres.per_job) || has_shares(job.tres.per_node) ||
                   has_shares(job.tres.per_task) || has_shares(job.tres.per_socket);
    asked.total = on(nodes);
    asked.most = on(most_nodes);
    const bool elsewhere = has_shares(job.tres.per_job) || has_shares(job.tres.per_task) ||
                           has_shares(job.tres.per_socket);
    if (!elsewhere && asked.most == 0 && most_nodes == 1) {
        asked.parts = shards_in(job.tres.per_node);
    }
    for (const auto* gpus : {&per_job, &per_node, &per_task, &per_socket}) {
        for (const GpuCount& count : *gpus) {
            const auto found = std::find(asked.models.begin(), asked.models.end(), count.model);
            if (!count.model.empty() && found == asked.models.end()) {
                asked.models.push_back(count.model);
            }
        }
    }
    return asked;
}

JobSize job_size(const Submission& job, const GpuTotals& gpus, std::uint64_t cpus_per_gpu,
                 NodeLayout layout)
{
    const std::uint64_t fewest = std::min(k_most, nodes_of(job, gpus, 1));
    const std::uint64_t nodes = std::min(k_most, nodes_of(job, gpus, layout.most_nodes));
    // Requests per GPU of a job with shares count for a whole GPU.
    const std::uint64_t total =
        std::min(gpus.shares ? std::max<std::uint64_t>(gpus.total, 1) : gpus.total, k_most);
    const std::uint64_t each = sum(gpus_in_tres(job.tres.cpus));
    const std::uint64_t tasks =
        std::max(tasks_of(job), std::min(gpus.total, k_most) * job.ntasks_per_tres.value_or(0));
    const auto threads = static_cast<std::uint64_t>(layout.threads_per_core);
    JobSize asked;
    asked.cpus = std::min(k_most, std::max({std::uint64_t{job.min_cpus.value_or(0)},
                                            tasks * at_least_one(job.cpus_per_task),
                                            nodes * cpus_per_node(job), total * each}));
    const bool unsaid = !job.cpus_per_task && each == 0;
    const bool of_gpus = each > 0 || (unsaid && job.ntasks_per_tres.value_or(0) == 0);
    const bool total_only = gpus.per_node == 0 && sum(gpus_in_tres(job.tres.per_socket)) == 0;
    if (layout.gpus_per_node > 0 && gpus.total > 0 && total_only && of_gpus) {
        asked.cpus = std::max(asked.cpus, cpus_when_uneven(job, total, unsaid ? cpus_per_gpu : each,
                                                           layout.gpus_per_node));
    }
    const std::uint64_t given = unsaid && gpus.total > 0
                                    ? std::max(asked.cpus, std::min(k_most, total * cpus_per_gpu))
                                    : asked.cpus;
    asked.allocated =
        std::min(k_most, threads * cores_of(job, given, std::min(tasks, k_most), fewest, threads));
    asked.memory_mib = std::max({nodes * job.min_mem_per_node.value_or(0),
                                 asked.allocated * job.min_mem_per_cpu.value_or(0),
                                 total * sum(gpus_in_tres(job.tres.mem))});
    asked.all_memory = job.min_mem_per_node == 0U || job.min_mem_per_cpu == 0U;
    asked.whole_nodes =
        job.shared == 0U || job.core_spec.value_or(0) > 0 || job.thread_spec.value_or(0) > 0;
    asked.no_other_user = job.shared.value_or(0) > 1;
    return asked;
}

std::map<std::string, std::variant<std::string, std::uint32_t>> fields_of(const Submission& job)
{
    std::map<std::string, std::variant<std::string, std::uint32_t>> fields;
    const auto text = [&](const char* name, const std::string& value) {
        if (!value.empty()) {
            fields[name] = value;
        }
    };
    const auto maybe = [&](const char* name, const auto& value) {
        if (value) {
            fields[name] = *value;
        }
    };
    text("user_name", job.user_name);
    text("account", job.account);
    text("comment", job.comment);
    maybe("partition", job.partition);
    maybe("qos", job.qos);
    maybe("reservation", job.reservation);
    maybe("time_limit", job.time_limit);
    maybe("min_nodes", job.min_nodes);
    maybe("max_nodes", job.max_nodes);
    maybe("num_tasks", job.num_tasks);
    maybe("ntasks_per_node", job.ntasks_per_node);
    maybe("sockets_per_node", job.sockets_per_node);
    maybe("ntasks_per_tres", job.ntasks_per_tres);
    maybe("ntasks_per_core", job.ntasks_per_core);
    maybe("threads_per_core", job.threads_per_core);
    maybe("core_spec", job.core_spec);
    maybe("thread_spec", job.thread_spec);
    text("tres_per_job", job.tres.per_job);
    text("tres_per_node", job.tres.per_node);
    text("tres_per_task", job.tres.per_task);
    text("tres_per_socket", job.tres.per_socket);
    maybe("min_cpus", job.min_cpus);
    maybe("cpus_per_task", job.cpus_per_task);
    maybe("pn_min_cpus", job.pn_min_cpus);
    maybe("min_mem_per_node", job.min_mem_per_node);
    maybe("min_mem_per_cpu", job.min_mem_per_cpu);
    text("cpus_per_tres", job.tres.cpus);
    text("mem_per_tres", job.tres.mem);
    maybe("shared", job.shared);
    if (job.tres.bound) {
        fields["bitflags"] = std::uint32_t{16}; // slurm.h, GRES_ENFORCE_BIND
    }
    maybe("het_job_offset", job.het_job_offset);
    if (job.het_job_offset) {
        fields["het_job_id"] = std::uint32_t{1}; // no rule depends on the id
    }
    return fields;
}

Result<std::vector<GpuCount>> parse_gpu_counts(std::string_view text)
{
    std::vector<GpuCount> gpus;
    for (const std::string_view item : split(text, ",")) {
        const auto parts = split(item, ":");
        const bool model = !begins_with_digit(parts.front());
        const std::string_view number = !model ? parts[0] : parts.size() == 2 ? parts[1] : "1";
        const auto count = whole_number(number);
        const bool doubled = std::any_of(gpus.begin(), gpus.end(), [&](const GpuCount& one) {
            return one.model == (model ? parts[0] : "");
        });
        if (doubled || (model && !is_model(parts.front())) || parts.size() > (model ? 2U : 1U) ||
            !count || *count == 0 || *count > 1024) {
            return fail(Error::Kind::usage,
                        fmt::format("'{}' is not a number of GPUs: 4, k80, k80:4", item));
        }
        gpus.push_back({model ? std::string(parts[0]) : "", static_cast<int>(*count)});
    }
    return gpus;
}

} // namespace gpuq::policy
