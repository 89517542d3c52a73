// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/plan.h"

#include "core/comment.h"
#include "core/key.h"
#include "core/walltime.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/chain.h"
#include "runs/preflight.h"
#include "runs/queue_choice.h"
#include "runs/queues/gpu_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq {
namespace {

using std::chrono::minutes;
using Partitions = std::vector<Partition>;

constexpr std::size_t k_longest_name = 200;

/// How a program cooperates with gpuq, according to its text.
struct CheckpointSupport {
    bool saves = false;   ///< saves to, or resumes from, the paths that gpuq sets
    bool listens = false; ///< checks on its own whether its link is about to end
};

CheckpointSupport checkpoint_support_of(const std::vector<std::string>& program,
                                        const SiteContext& site_context)
{
    constexpr std::string_view k_module[] = {"import gpuq", "from gpuq"};
    constexpr std::string_view k_listens[] = {"GPUQ_STOP_FILE", "GPUQ_DEADLINE"};
    constexpr std::string_view k_saves[] = {"GPUQ_CHECKPOINT_DIR", "GPUQ_RESUME_FROM"};
    CheckpointSupport known;
    for (const std::string& word : program) {
        const std::string path = word.starts_with('/') ? word : site_context.work_dir + "/" + word;
        const std::string text = site_context.text ? site_context.text(path) : "";
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

bool may_be_chained(const RunParameters& parameters, const CheckpointSupport& known)
{
    return parameters.chain.checkpoint || parameters.chain.from_scratch || known.saves;
}

/// The requested value if the policy allows it; the policy's own limit if no value was requested.
template <typename T>
Result<std::optional<T>> within(const std::optional<T>& parameters, const std::optional<T>& most,
                                const Partition& queue, const std::string& refusal)
{
    if (parameters && most && *parameters > *most) {
        return fail(Error::Kind::denied,
                    fmt::format("{} in queue {} (its policy)", refusal, queue.name));
    }
    return parameters ? parameters : most;
}

/// The queue in which a run without `-t` continues until it is finished (plan.h), or null.
const Partition* open_ended(const RunParameters& parameters, const Partition& first,
                            const Partitions& partitions, const SiteContext& site_context,
                            bool chainable)
{
    const Partition* const continues = longest_with_chains(partitions, site_context);
    const bool possible = !parameters.walltime && !parameters.queue && chainable &&
                          !parameters.pty && parameters.input != Input::pipe && first.ruled &&
                          continues != nullptr;
    return possible && chain_limits(site_context, *continues) != nullptr && continues->max_time
               ? continues
               : nullptr;
}

/// The total time limit of an open-ended run.
minutes time_of_all_links(minutes first, const Partition& continues, const ChainLimits& limits)
{
    constexpr int k_links = 30; // if the policy sets no number
    const minutes link = std::min(limits.link.value_or(*continues.max_time), *continues.max_time);
    return first + (limits.links.value_or(k_links) - 1) * link;
}

/// The chain of a run, if it needs or requests one.
Result<std::optional<Chain>> choose_chain(const RunParameters& parameters, const Partition& queue,
                                          minutes walltime, const CheckpointSupport& known,
                                          const SiteContext& site_context)
{
    if (holds(queue, walltime) && !parameters.chain.are_given()) {
        return std::optional<Chain>{};
    }
    if (!may_be_chained(parameters, known)) {
        return fail(
            Error::Kind::usage,
            "the program shows no sign of saving checkpoints, without which each link would start "
            "from the beginning: give their location (--checkpoint 'out/*.pt'), use gpuq.py in it "
            "(man gpuq-chain), or allow this with --restart-from-scratch");
    }
    if (parameters.pty) {
        return fail(Error::Kind::usage, "a program on a terminal can't continue in another job: "
                                        "omit --pty, or the options for a chain");
    }
    if (parameters.input == Input::pipe) {
        return fail(Error::Kind::usage, "a run of several links can't be fed from a pipe: its "
                                        "later links have no input; add </dev/null");
    }
    if (parameters.chain.link && queue.max_time && *parameters.chain.link > *queue.max_time) {
        return fail(Error::Kind::denied, fmt::format("--link: queue {} takes at most {}",
                                                     queue.name, to_text(*queue.max_time)));
    }
    Chain chain;
    const ChainLimits* found = chain_limits(site_context, queue);
    const ChainLimits limits = found == nullptr ? ChainLimits{} : *found;
    const minutes longest =
        std::min({walltime, queue.max_time.value_or(walltime), limits.link.value_or(walltime)});
    if (parameters.chain.link && limits.link && *parameters.chain.link > *limits.link) {
        return fail(Error::Kind::denied, fmt::format("--link: at most {} in queue {} (its policy)",
                                                     to_text(*limits.link), queue.name));
    }
    chain.link = std::min<std::chrono::seconds>(parameters.chain.link.value_or(longest), walltime);
    TRY_ASSIGN(chain.max_links,
               within(parameters.chain.max_links, limits.links, queue,
                      fmt::format("--max-links: at most {}", limits.links.value_or(0))));
    TRY_ASSIGN(chain.gpu_time,
               within(parameters.chain.gpu_time, limits.gpu_time, queue,
                      fmt::format("--gpu-hours: at most {}",
                                  limits.gpu_time.value_or(minutes{0}).count() / 60)));
    chain.checkpoint = parameters.chain.checkpoint.value_or("");
    chain.resume_args = parameters.chain.resume_args;
    chain.valid = parameters.chain.valid;
    chain.notice = parameters.chain.notice.value_or(Notice::automatic);
    chain.aware = known.listens;
    chain.from_scratch = parameters.chain.from_scratch;
    chain.until = parameters.chain.until;
    return std::optional{chain};
}

/// How to handle a link whose ticket does not last. A policy that demands `hold` or `fail` saves
/// GPU time: a run can't override it with `run`.
Result<WhenShort> choose_when_short(const RunParameters& parameters, const Partition& queue,
                                    const std::optional<Chain>& chain,
                                    const SiteContext& site_context)
{
    const ChainLimits* limits = chain ? chain_limits(site_context, queue) : nullptr;
    const bool spares =
        limits != nullptr && limits->when_short && *limits->when_short != WhenShort::run;
    if (spares && parameters.chain.when_short == WhenShort::run) {
        return fail(Error::Kind::denied,
                    fmt::format("--credentials: hold or fail in queue {} (its policy); a program "
                                "that needs no ticket is started without: KRB5CCNAME=MEMORY: "
                                "gpuq run ...",
                                queue.name));
    }
    const WhenShort unless_asked =
        limits != nullptr ? limits->when_short.value_or(WhenShort::hold) : WhenShort::hold;
    return parameters.chain.when_short.value_or(unless_asked);
}

Result<minutes> choose_walltime(const RunParameters& parameters, const Partition& queue)
{
    if (parameters.walltime) {
        return *parameters.walltime;
    }
    if (queue.default_time || queue.max_time) {
        return queue.default_time ? *queue.default_time : *queue.max_time;
    }
    return fail(Error::Kind::usage,
                fmt::format("queue {} has no default time; give a time limit: -t 2h", queue.name));
}

/// Sets the GPUs and tasks of each node; values that were not requested are derived from the
/// others.
Result<void> choose_tasks(const RunParameters& parameters, Request& request)
{
    if (request.gpus.share && (request.nodes > 1 || parameters.gpus_per_task)) {
        return fail(Error::Kind::usage,
                    fmt::format("-g {}: a share is of one GPU on one node; omit {}",
                                to_text(request.gpus),
                                request.nodes > 1 ? "-N" : "--gpus-per-task"));
    }
    request.tasks_per_node = parameters.tasks_per_node;
    request.gpus_per_task = parameters.gpus_per_task;
    if (parameters.gpus_per_task) {
        const int each = *parameters.gpus_per_task;
        if (!parameters.gpus) {
            request.gpus.count = each * parameters.tasks_per_node.value_or(1);
        }
        request.tasks_per_node =
            parameters.tasks_per_node.value_or(std::max(request.gpus.count / each, 1));
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
std::vector<std::string> resolved(const RunParameters& parameters, const SiteContext& site_context)
{
    using File = SiteContext::File;
    std::vector<std::string> arguments = parameters.program;
    const std::string& program = arguments.front();
    const bool bare = program.find('/') == std::string::npos;
    const std::string path = absolute(site_context.work_dir, program);
    const File file = site_context.file(path);
    const bool is_python = program.ends_with(".py") &&
                           (file == File::plain || file == File::unreadable ||
                            (file == File::executable && lacks_interpreter(path, site_context)));
    if (is_python) {
        // Python takes a script name that begins with a dash for an option.
        arguments.front() = program.starts_with('-') ? "./" + program : program;
        arguments.insert(arguments.begin(), "python3");
    } else if (file == File::executable && bare) {
        arguments.front() = "./" + program;
    }
    return arguments;
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
resolved_env(const RunParameters& parameters, const SiteContext& site_context)
{
    std::vector<std::pair<std::string, std::string>> env;
    for (const auto& [name, value] : parameters.env) {
        const auto found = value ? value : site_context.variable(name);
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
                              const SiteContext& site_context)
{
    const auto found = std::find_if(partitions.begin(), partitions.end(),
                                    [&](const auto& one) { return one.name == request.queue; });
    RunParameters parameters;
    parameters.pty = request.pty;
    parameters.input = request.input;
    parameters.chain.notice = Notice::automatic; // makes it a chain, however short
    TRY_ASSIGN(const auto chain,
               choose_chain(parameters, found == partitions.end() ? Partition{} : *found,
                            request.walltime, checkpoint_support_of(request.program, site_context),
                            site_context));
    return *chain;
}

std::string submitted_comment(const Run& run, LinkNumber link)
{
    return fmt::format("{}{}", job_comment(run.key, link),
                       run.request.sweep ? k_worker_suffix : "");
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
    spec.share = request.gpus.share;
    spec.cpus_per_node = request.cpus;
    spec.memory_mib_per_node = request.memory_mib;
    if (const auto& share =
            request.gpus.share) { // Slurm's defaults are those of a job without GPUs
        spec.cpus_per_node = spec.cpus_per_node ? spec.cpus_per_node : share->cpus;
        spec.memory_mib_per_node =
            spec.memory_mib_per_node ? spec.memory_mib_per_node : share->memory_mib;
    }
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
    if (const auto& share = spec.share) {
        const std::string of = share->per_gpu ? fmt::format(" of {}", *share->per_gpu) : "";
        const bool several = share->per_gpu.value_or(share->parts) != 1;
        return fmt::format("{}{} {} of a GPU", share->parts, of,
                           share->kind == GpuShare::Kind::mps ? "mps"
                           : several                          ? "shards"
                                                              : "shard");
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

std::string summary_of(const RunParameters& parameters, const Request& request, const JobSpec& spec,
                       const Partition& queue)
{
    const std::string gpus = gpus_text(spec);
    const bool open_ended = request.chain && request.chain->first.count() > 0;
    const std::string time =
        open_ended ? length_text(request.chain->first) : to_text(request.walltime);
    std::vector<std::string> defaults;
    if (!parameters.gpus && !parameters.gpus_per_task) {
        defaults.push_back(gpus);
    }
    if (!parameters.walltime) {
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
    return fmt::format("{}{}{} for {} in {} {}{}{}{}", gpus, nodes, tasks, time,
                       several && !parameters.queue ? "the first available of" : "queue",
                       spec.partition, links_text(request), tail,
                       queue.up  ? ""
                       : several ? "; it waits until one of these queues is up"
                                 : "; it waits until the queue is up");
}

/// The first link of a chain may have less time than its length. `usage`: none.
Result<void> limit_to_budget(const Request& request, Time now, JobSpec& spec)
{
    if (!request.chain) {
        return {};
    }
    if (const auto why = why_no_link(request, {}, now)) {
        return fail(Error::Kind::usage, fmt::format("it would not start: {}", *why));
    }
    spec.walltime = std::clamp(std::chrono::ceil<minutes>(next_length(request, {}, now)),
                               minutes{1}, spec.walltime);
    return {};
}

/// The GPU model for `-g 16G+`.
Result<std::string> model_for(const GpuRequest& gpus, const std::vector<std::string>& queues,
                              const Partition& first, const SiteContext& site_context)
{
    TRY_ASSIGN(auto model, model_among(gpus, queues, site_context.gpus));
    return model ? Result<std::string>(*std::move(model))
                 : model_with_memory(gpus, first.name, offered_gpus(first, site_context.nodes));
}

} // namespace

bool needs_nodes(const RunParameters& parameters)
{
    const auto& gpus = parameters.gpus;
    return gpus && (gpus->min_memory_mib || gpus->share || gpus->mig);
}

Result<Plan> plan(const RunParameters& parameters, const Partitions& partitions,
                  const SiteContext& site_context)
{
    const std::vector<std::string> program = resolved(parameters, site_context);
    const CheckpointSupport known = checkpoint_support_of(program, site_context);
    TRY_ASSIGN(
        const Partition* queue,
        choose_queue(parameters, partitions, may_be_chained(parameters, known), site_context));
    const bool chosen_by_policy = queue->ruled && !parameters.queue;
    if (const int nodes = parameters.nodes.value_or(1);
        !has_nodes(*queue, nodes) && !chosen_by_policy) {
        return too_many_nodes(partitions, *queue, nodes);
    }
    Request request;
    TRY_ASSIGN(request.walltime, choose_walltime(parameters, *queue));
    const Partition* const continues =
        open_ended(parameters, *queue, partitions, site_context, may_be_chained(parameters, known));
    if (continues != nullptr) {
        const minutes first = request.walltime;
        request.walltime =
            time_of_all_links(first, *continues, *chain_limits(site_context, *continues));
        TRY_ASSIGN(request.chain,
                   choose_chain(parameters, *continues, request.walltime, known, site_context));
        if (request.chain) {
            request.chain->first = std::min<std::chrono::seconds>(first, request.chain->link);
        }
    } else {
        TRY_ASSIGN(request.chain,
                   choose_chain(parameters, *queue, request.walltime, known, site_context));
    }
    TRY_ASSIGN(const WhenShort when_short,
               choose_when_short(parameters, continues != nullptr ? *continues : *queue,
                                 request.chain, site_context));
    TRY_ASSIGN(request.setup.env, resolved_env(parameters, site_context));
    request.program = program;
    request.name = parameters.name ? *parameters.name : default_name(parameters.program.front());
    request.work_dir = site_context.work_dir;
    const std::vector<std::string> queues =
        queue_names(parameters, partitions, *queue, site_context);
    request.queue = fmt::format("{}", fmt::join(queues, ","));
    request.gpus = parameters.gpus.value_or(GpuRequest{});
    request.nodes = parameters.nodes.value_or(1);
    request.cpus = parameters.cpus;
    request.memory_mib = parameters.memory_mib;
    TRY(choose_tasks(parameters, request));
    request.account = parameters.account;
    request.qos = parameters.qos;
    request.after = parameters.after;
    request.input = parameters.input;
    request.pty = parameters.pty;
    for (const std::string& file : parameters.sources) {
        request.setup.sources.push_back(absolute(site_context.work_dir, file));
    }
    if (parameters.venv) {
        request.setup.venv = absolute(site_context.work_dir, *parameters.venv);
    }
    request.setup.modules = parameters.modules;
    request.setup.conda = parameters.conda;
    request.setup.container = parameters.container;
    request.setup.container_command =
        parameters.container ? site_context.container_command : std::vector<std::string>{};
    request.slurm_options = parameters.slurm_options;
    request.network = site_context.network;

    std::optional<std::string> model = request.gpus.model;
    if (request.gpus.min_memory_mib) {
        TRY_ASSIGN(model, model_for(request.gpus, queues, *queue, site_context));
    }
    if (request.gpus.mig) {
        TRY_ASSIGN(model, model_with_profile(request.gpus, queue->name,
                                             offered_gpus(*queue, site_context.nodes)));
        request.gpus.model = model;
    }
    if (request.gpus.share) {
        TRY_ASSIGN(request.gpus.share,
                   share_of_a_gpu(*request.gpus.share, queues, partitions, site_context.nodes));
    }
    if (request.chain) { // later links get the same model, without another query of the nodes
        request.gpus.model = model;
        request.gpus.min_memory_mib.reset();
    }
    JobSpec spec = job_spec(request);
    spec.gpu_model = model;
    TRY(limit_to_budget(request, site_context.now, spec));
    return Plan{request, spec, summary_of(parameters, request, spec, *queue), when_short};
}

} // namespace gpuq
