// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/repeat.h"

#include "core/quote.h"
#include "core/walltime.h"

#include <algorithm>

namespace gpuq {
namespace {

template <typename T, typename U>
void keep(std::optional<T>& given, const U& recorded)
{
    if (!given) {
        given = recorded;
    }
}

template <typename T>
void keep(std::vector<T>& given, const std::vector<T>& recorded)
{
    if (given.empty()) {
        given = recorded;
    }
}

/// GPUs and ranks of a node. With --gpus-per-task, either of them follows from the other.
void repeat_tasks(RunParameters& given, const Request& recorded)
{
    const GpuRequest& gpus = recorded.gpus;
    const bool follow = recorded.gpus_per_task && !gpus.model && !gpus.min_memory_mib &&
                        gpus.count == *recorded.gpus_per_task * tasks_on_node(recorded);
    const bool other_gpus = given.gpus || given.gpus_per_task;
    const bool other_tasks = given.tasks_per_node.has_value();
    if (!follow || !other_gpus) {
        keep(given.tasks_per_node, recorded.tasks_per_node);
    }
    if (!follow || !other_tasks) {
        keep(given.gpus, gpus);
    }
    keep(given.gpus_per_task, recorded.gpus_per_task);
}

/// Without -t and -p, a policy has started it in one queue to continue in another.
bool is_open_ended(const Request& recorded)
{
    return recorded.chain && recorded.chain->first.count() > 0;
}

/// A list of queues is the policy's, not the user's.
bool has_own_queue(const Request& recorded)
{
    return !is_open_ended(recorded) && recorded.queue.find(',') == std::string::npos;
}

void repeat_chain(RunParameters& given, const Request& recorded, Time now)
{
    if (!recorded.chain) {
        return;
    }
    const Chain& chain = *recorded.chain;
    const bool same_queue = !given.queue && (has_own_queue(recorded) || !given.walltime);
    if (same_queue && chain.link < recorded.walltime) {
        keep(given.chain.link, chain.link);
    }
    if (!chain.checkpoint.empty()) {
        keep(given.chain.checkpoint, chain.checkpoint);
    }
    keep(given.chain.resume_args, chain.resume_args);
    keep(given.chain.valid, chain.valid);
    keep(given.chain.notice, chain.notice); // always set: one link that is a chain remains one
    given.chain.from_scratch = given.chain.from_scratch || chain.from_scratch;
    keep(given.chain.max_links, chain.max_links);
    keep(given.chain.gpu_time, chain.gpu_time);
    if (chain.until && *chain.until > now) {
        keep(given.chain.until, chain.until);
    }
}

void repeat_environment(RunParameters& given, const Request& recorded)
{
    const auto is_given = [&](const std::string& name) {
        return std::any_of(given.env.begin(), given.env.end(),
                           [&](const auto& pair) { return pair.first == name; });
    };
    std::vector<std::pair<std::string, std::optional<std::string>>> env;
    for (const auto& [name, value] : recorded.setup.env) {
        if (!is_given(name)) {
            env.emplace_back(name, value);
        }
    }
    given.env.insert(given.env.begin(), env.begin(), env.end());
    keep(given.sources, recorded.setup.sources);
    keep(given.modules, recorded.setup.modules);
    if (!given.conda && !given.venv) {
        given.conda = recorded.setup.conda;
        given.venv = recorded.setup.venv;
    }
    keep(given.container, recorded.setup.container);
}

} // namespace

RunParameters repeated(RunParameters given, const Request& recorded, Time now)
{
    repeat_chain(given, recorded, now);
    repeat_tasks(given, recorded);
    repeat_environment(given, recorded);
    if (!is_open_ended(recorded)) {
        keep(given.walltime, recorded.walltime);
    }
    if (has_own_queue(recorded)) {
        keep(given.queue, recorded.queue);
    }
    keep(given.cpus, recorded.cpus);
    keep(given.memory_mib, recorded.memory_mib);
    keep(given.nodes, recorded.nodes);
    keep(given.name, recorded.name);
    keep(given.account, recorded.account);
    keep(given.qos, recorded.qos);
    keep(given.slurm_options, recorded.slurm_options);
    return given;
}

std::map<std::string, std::string> options_kept(const Request& recorded, Time now)
{
    const RunParameters kept = repeated({}, recorded, now);
    std::map<std::string, std::string> options{{"--chdir", recorded.work_dir}};
    const auto add = [&](const char* option, const std::optional<std::string>& value) {
        if (value) {
            options.emplace(option, *value);
        }
    };
    add("--gpus", kept.gpus ? std::optional(to_text(*kept.gpus)) : std::nullopt);
    add("--time", kept.walltime ? std::optional(to_text(*kept.walltime)) : std::nullopt);
    add("--queue", kept.queue);
    add("--name", kept.name);
    add("--venv", kept.venv);
    add("--conda", kept.conda);
    return options;
}

std::string again_text(const Request& request)
{
    return shell_command(request.program);
}

} // namespace gpuq
