// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/plan.h"

#include "core/walltime.h"
#include "runs/chain.h"
#include "runs/gpu_models.h"
#include "runs/queue_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq {
namespace {

using std::chrono::minutes;
using Partitions = std::vector<Partition>;

constexpr std::size_t k_longest_name = 200;

/// How a program cooperates with gpuq, according to its text.
struct Knowledge {
    bool saves = false;   ///< saves to, or resumes from, the paths that gpuq sets
    bool listens = false; ///< checks on its own whether its link is about to end
};

Knowledge knowledge_of(const std::vector<std::string>& program, const Surroundings& surroundings)
{
    constexpr std::string_view k_module[] = {"import gpuq", "from gpuq"};
    constexpr std::string_view k_listens[] = {"GPUQ_STOP_FILE", "GPUQ_DEADLINE"};
    constexpr std::string_view k_saves[] = {"GPUQ_CHECKPOINT_DIR", "GPUQ_RESUME_FROM"};
    Knowledge known;
    for (const std::string& word : program) {
        const std::string path = word.starts_with('/') ? word : surroundings.work_dir + "/" + word;
        const std::string text = surroundings.text ? surroundings.text(path) : "";
        const auto has = [&](std::string_view part) {
            return text.find(part) != std::string::npos;
        };
        const auto any = [&](const auto& parts) {
            return std::any_of(std::begin(parts), std::end(parts), has);
        };
        known.listens = known.listens || any(k_module) || any(k_listens);
        known.saves = known.saves || any(k_module) || any(k_saves);
    }
    return known;
}

bool may_be_chained(const AskedFor& asked, const Knowledge& known)
{
    return asked.checkpoint || asked.from_scratch || known.saves;
}

/// The requested value if the policy allows it; the policy's own limit if no value was requested.
template <typename T>
Result<std::optional<T>> within(const std::optional<T>& asked, const std::optional<T>& most,
                                const Partition& queue, const std::string& refusal)
{
    if (asked && most && *asked > *most) {
        return fail(Error::Kind::denied,
                    fmt::format("{} in queue {} (its policy)", refusal, queue.name));
    }
    return asked ? asked : most;
}

/// The queue in which a run without `-t` continues until it is finished (plan.h), or null.
const Partition* open_ended(const AskedFor& asked, const Partition& first,
                            const Partitions& partitions, const Surroundings& surroundings,
                            bool chainable)
{
    const Partition* const goes_on = longest_with_chains(partitions, surroundings);
    const bool possible = !asked.walltime && !asked.queue && chainable && !asked.pty &&
                          asked.input != Input::pipe && first.ruled && goes_on != nullptr;
    return possible && chain_limits(surroundings, *goes_on) != nullptr && goes_on->max_time
               ? goes_on
               : nullptr;
}

/// The total time limit of an open-ended run.
minutes time_of_all_links(minutes first, const Partition& goes_on, const ChainLimits& limits)
{
    constexpr int k_links = 30; // if the policy sets no number
    const minutes link = std::min(limits.link.value_or(*goes_on.max_time), *goes_on.max_time);
    return first + (limits.links.value_or(k_links) - 1) * link;
}

/// The chain of a run, if it needs or requests one.
Result<std::optional<Chain>> choose_chain(const AskedFor& asked, const Partition& queue,
                                          minutes walltime, const Knowledge& known,
                                          const Surroundings& surroundings)
{
    if (holds(queue, walltime) && !asked.wants_chain()) {
        return std::optional<Chain>{};
    }
    if (!may_be_chained(asked, known)) {
        return fail(
            Error::Kind::usage,
            "the program shows no sign of saving checkpoints, without which each link would start "
            "from the beginning: give their location (--checkpoint 'out/*.pt'), use gpuq.py in it "
            "(man gpuq-chain), or allow this with --restart-from-scratch");
    }
    if (asked.pty) {
        return fail(Error::Kind::usage, "a program on a terminal can't continue in another job: "
                                        "omit --pty, or the options for a chain");
    }
    if (asked.input == Input::pipe) {
        return fail(Error::Kind::usage, "a run of several links can't be fed from a pipe: its "
                                        "later links have no input; add </dev/null");
    }
    if (asked.link && queue.max_time && *asked.link > *queue.max_time) {
        return fail(Error::Kind::denied, fmt::format("--link: queue {} takes at most {}",
                                                     queue.name, to_text(*queue.max_time)));
    }
    Chain chain;
    const ChainLimits* found = chain_limits(surroundings, queue);
    const ChainLimits limits = found == nullptr ? ChainLimits{} : *found;
    const minutes longest =
        std::min({walltime, queue.max_time.value_or(walltime), limits.link.value_or(walltime)});
    if (asked.link && limits.link && *asked.link > *limits.link) {
        return fail(Error::Kind::denied, fmt::format("--link: at most {} in queue {} (its policy)",
                                                     to_text(*limits.link), queue.name));
    }
    chain.link = std::min<std::chrono::seconds>(asked.link.value_or(longest), walltime);
    TRY_ASSIGN(chain.max_links,
               within(asked.max_links, limits.links, queue,
                      fmt::format("--max-links: at most {}", limits.links.value_or(0))));
    TRY_ASSIGN(chain.gpu_time,
               within(asked.gpu_time, limits.gpu_time, queue,
                      fmt::format("--gpu-hours: at most {}",
                                  limits.gpu_time.value_or(minutes{0}).count() / 60)));
    chain.checkpoint = asked.checkpoint.value_or("");
    chain.resume_args = asked.resume_args;
    chain.valid = asked.valid;
    chain.notice = asked.notice.value_or(Notice::automatic);
    chain.aware = known.listens;
    chain.from_scratch = asked.from_scratch;
    chain.until = asked.until;
    return std::optional{chain};
}

/// How to handle a link whose ticket does not last. A policy that demands `hold` or `fail` saves
/// GPU time: a run can't override it with `run`.
Result<WhenShort> choose_when_short(const AskedFor& asked, const Partition& queue,
                                    const std::optional<Chain>& chain,
                                    const Surroundings& surroundings)
{
    const ChainLimits* limits = chain ? chain_limits(surroundings, queue) : nullptr;
    const bool spares =
        limits != nullptr && limits->when_short && *limits->when_short != WhenShort::run;
    if (spares && asked.when_short == WhenShort::run) {
        return fail(Error::Kind::denied,
                    fmt::format("--credentials: hold or fail in queue {} (its policy); a program "
                                "that needs no ticket is started without: KRB5CCNAME=MEMORY: "
                                "gpuq run ...",
                                queue.name));
    }
    const WhenShort unless_asked =
        limits != nullptr ? limits->when_short.value_or(WhenShort::hold) : WhenShort::hold;
    return asked.when_short.value_or(unless_asked);
}

Result<minutes> choose_walltime(const AskedFor& asked, const Partition& queue)
{
    if (asked.walltime) {
        return *asked.walltime;
    }
    if (queue.default_time || queue.max_time) {
        return queue.default_time ? *queue.default_time : *queue.max_time;
    }
    return fail(Error::Kind::usage,
                fmt::format("queue {} has no default time; give a time limit: -t 2h", queue.name));
}

/// Sets the GPUs and tasks of each node; values that were not requested are derived from the
/// others.
Result<void> choose_tasks(const AskedFor& asked, Request& request)
{
    request.tasks_per_node = asked.tasks_per_node;
    request.gpus_per_task = asked.gpus_per_task;
    if (asked.gpus_per_task) {
        const int each = *asked.gpus_per_task;
        if (!asked.gpus) {
            request.gpus.count = each * asked.tasks_per_node.value_or(1);
        }
        request.tasks_per_node =
            asked.tasks_per_node.value_or(std::max(request.gpus.count / each, 1));
        if (const int all = *request.tasks_per_node * each; all > request.gpus.count) {
            return fail(Error::Kind::usage,
                        fmt::format("--gpus-per-task: {} with {} each need {} GPUs on each node, "
                                    "-g asks for {}",
                                    *request.tasks_per_node == 1
                                        ? "1 task"
                                        : fmt::format("{} tasks", *request.tasks_per_node),
                                    each, all, request.gpus.count));
        }
    }
    if (request.cpus && *request.cpus % tasks_on_node(request) != 0) {
        return fail(Error::Kind::usage,
                    fmt::format("-c: {} cores on each node can't be shared evenly by {} tasks",
                                *request.cpus, tasks_on_node(request)));
    }
    return {};
}

std::string absolute(const std::string& work_dir, const std::string& path)
{
    return path.starts_with('/') ? path : work_dir + "/" + path;
}

/// The program as it will be executed (plan.h).
std::vector<std::string> resolved(const AskedFor& asked, const Surroundings& surroundings)
{
    using File = Surroundings::File;
    std::vector<std::string> words = asked.program;
    const std::string& program = words.front();
    const bool bare = program.find('/') == std::string::npos;
    const File file = surroundings.file(absolute(surroundings.work_dir, program));
    if ((file == File::plain || file == File::unreadable) && program.ends_with(".py")) {
        // Python takes a script name that begins with a dash for an option.
        words.front() = program.starts_with('-') ? "./" + program : program;
        words.insert(words.begin(), "python3");
    } else if (file == File::executable && bare) {
        words.front() = "./" + program;
    }
    return words;
}

/// At most `size` bytes, without splitting a character.
std::string cut(std::string text, std::size_t size)
{
    if (text.size() <= size) {
        return text;
    }
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80) {
        --size;
    }
    text.resize(size);
    return text;
}

std::string default_name(const std::string& program)
{
    const std::size_t slash = program.find_last_not_of('/');
    const std::string path = program.substr(0, slash == std::string::npos ? 0 : slash + 1);
    std::string name = path.substr(path.find_last_of('/') + 1);
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '_');
    const bool taken = name == "last" || name.find_first_not_of("0123456789") == std::string::npos;
    return cut(taken ? "run-" + name : name, k_longest_name);
}

Result<std::vector<std::pair<std::string, std::string>>>
resolved_env(const AskedFor& asked, const Surroundings& surroundings)
{
    std::vector<std::pair<std::string, std::string>> env;
    for (const auto& [name, value] : asked.env) {
        const auto found = value ? value : surroundings.variable(name);
        if (!found) {
            return fail(Error::Kind::usage,
                        fmt::format("--env {0}: {0} is not set here; write --env {0}=VALUE", name));
        }
        env.emplace_back(name, *found);
    }
    return env;
}

} // namespace

Result<Chain> chain_to_resume(const Request& request, const std::vector<Partition>& partitions,
                              const Surroundings& surroundings)
{
    const auto found = std::find_if(partitions.begin(), partitions.end(),
                                    [&](const auto& one) { return one.name == request.queue; });
    AskedFor asked;
    asked.pty = request.pty;
    asked.input = request.input;
    asked.notice = Notice::automatic; // makes it a chain, however short
    TRY_ASSIGN(const auto chain,
               choose_chain(asked, found == partitions.end() ? Partition{} : *found,
                            request.walltime, knowledge_of(request.program, surroundings),
                            surroundings));
    return *chain;
}

JobSpec job_spec(const Request& request)
{
    JobSpec spec;
    spec.name = request.name;
    spec.partition = request.queue;
    spec.work_dir = request.work_dir;
    spec.walltime = request.chain ? std::max(minutes{1}, std::chrono::ceil<minutes>(length_of(
                                                             *request.chain, LinkNumber{1})))
                                  : request.walltime;
    spec.nodes = request.nodes;
    spec.tasks_per_node = tasks_on_node(request);
    spec.gpus_per_node = request.gpus.count;
    spec.gpu_model = request.gpus.model;
    spec.cpus_per_node = request.cpus;
    spec.memory_mib_per_node = request.memory_mib;
    spec.account = request.account;
    spec.qos = request.qos;
    spec.after_ok = request.after;
    spec.by_sbatch = request.slurm_options.has_value();
    return spec;
}

namespace {

std::string gpus_text(const JobSpec& spec)
{
    if (spec.gpus_per_node == 0) {
        return "no GPU";
    }
    const std::string model = spec.gpu_model ? *spec.gpu_model + " " : "";
    return fmt::format("{} {}{}", spec.gpus_per_node, model,
                       spec.gpus_per_node == 1 ? "GPU" : "GPUs");
}

/// In whole minutes if possible; links of seconds are used for testing.
std::string length_text(std::chrono::seconds length)
{
    return length % minutes{1} == std::chrono::seconds{0}
               ? to_text(std::chrono::duration_cast<minutes>(length))
               : fmt::format("{} s", length.count());
}

std::string links_text(const Request& request)
{
    if (!request.chain) {
        return "";
    }
    const int links = expected_links(request, {}, Time{}).value_or(0);
    if (request.chain->first.count() > 0) {
        return fmt::format(", then until it is done in links of {}",
                           length_text(request.chain->link));
    }
    return links == 1 ? ", continuing after a failed node"
                      : fmt::format(", in {} links of {}", links, length_text(request.chain->link));
}

std::string summary_of(const AskedFor& asked, const Request& request, const JobSpec& spec)
{
    const std::string gpus = gpus_text(spec);
    const bool open_ended = request.chain && request.chain->first.count() > 0;
    const std::string time =
        open_ended ? length_text(request.chain->first) : to_text(request.walltime);
    std::vector<std::string> defaults;
    if (!asked.gpus && !asked.gpus_per_task) {
        defaults.push_back(gpus);
    }
    if (!asked.walltime) {
        defaults.push_back(time);
    }
    const std::string nodes =
        spec.nodes == 1 ? "" : fmt::format(" on each of {} nodes", spec.nodes);
    const std::string tail =
        defaults.empty() ? "" : fmt::format(" (default: {})", fmt::join(defaults, ", "));
    const std::string tasks = request.tasks_per_node
                                  ? fmt::format(", {} {} per node", *request.tasks_per_node,
                                                *request.tasks_per_node == 1 ? "task" : "tasks")
                                  : "";
    const bool several = spec.partition.find(',') != std::string::npos;
    return fmt::format("{}{}{} for {} in {} {}{}{}", gpus, nodes, tasks, time,
                       several && !asked.queue ? "the first available of" : "queue", spec.partition,
                       links_text(request), tail);
}

/// The GPU model for `-g 16G+`.
Result<std::string> model_for(const GpuRequest& gpus, const std::vector<std::string>& queues,
                              const Partition& first, const Surroundings& surroundings)
{
    TRY_ASSIGN(auto model, model_among(gpus, queues, surroundings.gpus));
    return model ? Result<std::string>(*std::move(model))
                 : model_with_memory(gpus, first.name, offered_gpus(first, surroundings.nodes));
}

} // namespace

bool needs_nodes(const AskedFor& asked)
{
    return asked.gpus && asked.gpus->min_memory_mib;
}

Result<Plan> plan(const AskedFor& asked, const Partitions& partitions,
                  const Surroundings& surroundings)
{
    const std::vector<std::string> program = resolved(asked, surroundings);
    const Knowledge known = knowledge_of(program, surroundings);
    TRY_ASSIGN(const Partition* queue,
               choose_queue(asked, partitions, may_be_chained(asked, known), surroundings));
    const bool chosen_by_policy = queue->ruled && !asked.queue;
    if (const int nodes = asked.nodes.value_or(1); !has_nodes(*queue, nodes) && !chosen_by_policy) {
        return too_many_nodes(partitions, *queue, nodes);
    }
    Request request;
    TRY_ASSIGN(request.walltime, choose_walltime(asked, *queue));
    const Partition* const goes_on =
        open_ended(asked, *queue, partitions, surroundings, may_be_chained(asked, known));
    if (goes_on != nullptr) {
        const minutes first = request.walltime;
        request.walltime =
            time_of_all_links(first, *goes_on, *chain_limits(surroundings, *goes_on));
        TRY_ASSIGN(request.chain,
                   choose_chain(asked, *goes_on, request.walltime, known, surroundings));
        if (request.chain) {
            request.chain->first = std::min<std::chrono::seconds>(first, request.chain->link);
        }
    } else {
        TRY_ASSIGN(request.chain,
                   choose_chain(asked, *queue, request.walltime, known, surroundings));
    }
    TRY_ASSIGN(const WhenShort when_short,
               choose_when_short(asked, goes_on != nullptr ? *goes_on : *queue, request.chain,
                                 surroundings));
    TRY_ASSIGN(request.env, resolved_env(asked, surroundings));
    request.program = program;
    request.name = asked.name ? *asked.name : default_name(asked.program.front());
    request.work_dir = surroundings.work_dir;
    const std::vector<std::string> queues = queue_names(asked, partitions, *queue, surroundings);
    request.queue = fmt::format("{}", fmt::join(queues, ","));
    request.gpus = asked.gpus.value_or(GpuRequest{});
    request.nodes = asked.nodes.value_or(1);
    request.cpus = asked.cpus;
    request.memory_mib = asked.memory_mib;
    TRY(choose_tasks(asked, request));
    request.account = asked.account;
    request.qos = asked.qos;
    request.after = asked.after;
    request.input = asked.input;
    request.pty = asked.pty;
    for (const std::string& file : asked.sources) {
        request.sources.push_back(absolute(surroundings.work_dir, file));
    }
    if (asked.venv) {
        request.venv = absolute(surroundings.work_dir, *asked.venv);
    }
    request.modules = asked.modules;
    request.conda = asked.conda;
    request.container = asked.container;
    request.container_command =
        asked.container ? surroundings.container_command : std::vector<std::string>{};
    request.slurm_options = asked.slurm_options;

    std::optional<std::string> model = request.gpus.model;
    if (request.gpus.min_memory_mib) {
        TRY_ASSIGN(model, model_for(request.gpus, queues, *queue, surroundings));
    }
    if (request.chain) { // later links get the same model, without another query of the nodes
        request.gpus.model = model;
        request.gpus.min_memory_mib.reset();
    }
    JobSpec spec = job_spec(request);
    spec.gpu_model = model;
    return Plan{request, spec, summary_of(asked, request, spec), when_short};
}

} // namespace gpuq
