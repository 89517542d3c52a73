// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/plan.h"

#include "core/nearest.h"
#include "core/walltime.h"
#include "runs/chain.h"
#include "runs/gpu_models.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

using std::chrono::minutes;
using Partitions = std::vector<Partition>;

constexpr std::size_t k_longest_name = 200;

bool holds(const Partition& queue, minutes walltime)
{
    return !queue.max_time || walltime <= *queue.max_time;
}

/// Order of preference: smaller limits first, the default queue before its equals.
bool goes_before(const Partition& a, const Partition& b)
{
    const minutes limit_a = a.max_time.value_or(minutes::max());
    const minutes limit_b = b.max_time.value_or(minutes::max());
    return limit_a != limit_b ? limit_a < limit_b : a.is_default && !b.is_default;
}

std::string limit_text(const Partition& queue)
{
    return queue.max_time ? to_text(*queue.max_time) : "no limit";
}

/// The smallest queue that is up and holds `walltime`, or none.
const Partition* smallest_for(const Partitions& partitions, minutes walltime)
{
    const Partition* best = nullptr;
    for (const Partition& queue : partitions) {
        if (queue.up && holds(queue, walltime) && (best == nullptr || goes_before(queue, *best))) {
            best = &queue;
        }
    }
    return best;
}

const Partition* longest_of(const Partitions& partitions)
{
    const Partition* best = nullptr;
    for (const Partition& queue : partitions) {
        if (queue.up && (best == nullptr || goes_before(*best, queue))) {
            best = &queue;
        }
    }
    return best;
}

Error no_queue_is_up()
{
    return fail(Error::Kind::denied, "no queue of this cluster is up; try again later");
}

Error beyond_every_queue(const Partitions& partitions, minutes walltime)
{
    const Partition* longest = longest_of(partitions);
    if (longest == nullptr) {
        return no_queue_is_up();
    }
    return fail(Error::Kind::denied,
                fmt::format("no queue takes {}: the longest is {} with {}", to_text(walltime),
                            longest->name, limit_text(*longest)));
}

Error beyond_this_queue(const Partitions& partitions, const Partition& queue, minutes walltime)
{
    const Partition* other = smallest_for(partitions, walltime);
    if (other == nullptr) {
        return beyond_every_queue(partitions, walltime);
    }
    return fail(Error::Kind::denied,
                fmt::format("queue {} takes at most {}; {} takes {}: -p {}", queue.name,
                            limit_text(queue), other->name, to_text(walltime), other->name));
}

bool has_nodes(const Partition& queue, int nodes)
{
    return !queue.most_nodes || nodes <= *queue.most_nodes;
}

/// Slurm would let the job wait for nodes that there are not.
Error too_many_nodes(const Partitions& partitions, const Partition& queue, int nodes)
{
    const auto most = std::max_element(
        partitions.begin(), partitions.end(), [](const Partition& a, const Partition& b) {
            return a.most_nodes.value_or(0) < b.most_nodes.value_or(0);
        });
    const std::string best = has_nodes(*most, nodes)
                                 ? fmt::format("{0} has them: -p {0}", most->name)
                                 : fmt::format("no queue has more than {}", *most->most_nodes);
    return fail(Error::Kind::denied,
                fmt::format("-N {}: a job in queue {} can have {} node{}; {}", nodes, queue.name,
                            *queue.most_nodes, *queue.most_nodes == 1 ? "" : "s", best));
}

Result<const Partition*> queue_named(const Partitions& partitions, const std::string& name)
{
    std::vector<std::string> names;
    for (const Partition& queue : partitions) {
        if (queue.name == name) {
            return &queue;
        }
        names.push_back(queue.name);
    }
    return fail(Error::Kind::missing,
                fmt::format("no queue '{}'{}; there are: {}", name, did_you_mean(name, names),
                            fmt::join(names, ", ")));
}

Result<const Partition*> default_queue(const Partitions& partitions)
{
    for (const Partition& queue : partitions) {
        if (queue.is_default && queue.up) {
            return &queue;
        }
    }
    if (const Partition* smallest = smallest_for(partitions, minutes{1})) {
        return smallest;
    }
    return no_queue_is_up();
}

/// What a program's text says of how it works with gpuq.
struct Knowledge {
    bool saves = false;   ///< it saves where gpuq tells it to, or resumes from there
    bool listens = false; ///< it looks itself whether its link ends
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

Error without_checkpoints(Error error)
{
    error.text += "; a program that saves checkpoints can go on beyond that: say where it saves "
                  "them (--checkpoint 'out/*.pt'), see man gpuq-chain";
    return error;
}

Result<const Partition*> choose_queue(const AskedFor& asked, const Partitions& partitions,
                                      bool chainable)
{
    const bool chained = asked.wants_chain();
    if (asked.queue) {
        TRY_ASSIGN(const Partition* queue, queue_named(partitions, *asked.queue));
        if (asked.walltime && !holds(*queue, *asked.walltime) && !chainable) {
            const bool in_vain = smallest_for(partitions, *asked.walltime) == nullptr &&
                                 longest_of(partitions) != nullptr;
            const Error error = beyond_this_queue(partitions, *queue, *asked.walltime);
            return in_vain ? without_checkpoints(error) : error;
        }
        return queue;
    }
    if (!asked.walltime) {
        return default_queue(partitions);
    }
    const minutes link = asked.link ? std::chrono::ceil<minutes>(*asked.link) : *asked.walltime;
    if (const Partition* queue = smallest_for(partitions, chained ? link : *asked.walltime)) {
        return queue;
    }
    if (chainable && longest_of(partitions) != nullptr) {
        return longest_of(partitions);
    }
    const Error error = beyond_every_queue(partitions, *asked.walltime);
    return longest_of(partitions) == nullptr ? error : without_checkpoints(error);
}

/// What is asked of Slurm as a queue. Of a policy's queues, all that would hold the run, the
/// smallest first: who may use which is the policy's to say, and the first that takes it gets it.
std::string queue_text(const AskedFor& asked, const Partitions& partitions, const Partition& queue)
{
    if (asked.queue || !queue.ruled) {
        return queue.name;
    }
    std::vector<const Partition*> fitting;
    for (const Partition& other : partitions) {
        if (other.ruled && other.up && !goes_before(other, queue)) {
            fitting.push_back(&other);
        }
    }
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const Partition* a, const Partition* b) { return goes_before(*a, *b); });
    std::vector<std::string> names;
    for (const Partition* other : fitting) {
        names.push_back(other->name);
    }
    return fmt::format("{}", fmt::join(names, ","));
}

/// The chain of a run, where it needs one or asks for one.
Result<std::optional<Chain>> choose_chain(const AskedFor& asked, const Partition& queue,
                                          minutes walltime, const Knowledge& known)
{
    if (holds(queue, walltime) && !asked.wants_chain()) {
        return std::optional<Chain>{};
    }
    if (!may_be_chained(asked, known)) {
        return fail(Error::Kind::usage,
                    "nothing tells that the program saves checkpoints, without which its links "
                    "would all begin from the start: say where it saves them (--checkpoint "
                    "'out/*.pt'), use gpuq.py in it (man gpuq-chain), or allow just that with "
                    "--restart-from-scratch");
    }
    if (asked.pty) {
        return fail(Error::Kind::usage, "a program on a terminal can't go on in another job: "
                                        "leave out --pty, or what makes it a chain");
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
    const minutes longest = std::min(walltime, queue.max_time.value_or(walltime));
    chain.link = std::min<std::chrono::seconds>(asked.link.value_or(longest), walltime);
    chain.checkpoint = asked.checkpoint.value_or("");
    chain.resume_args = asked.resume_args;
    chain.valid = asked.valid;
    chain.notice = asked.notice.value_or(Notice::automatic);
    chain.aware = known.listens;
    chain.from_scratch = asked.from_scratch;
    chain.max_links = asked.max_links;
    chain.gpu_time = asked.gpu_time;
    chain.until = asked.until;
    return std::optional{chain};
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
                fmt::format("queue {} has no default time; say how long: -t 2h", queue.name));
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
    if (file == File::plain && program.ends_with(".py")) {
        // Python takes a script whose name begins with a dash for an option.
        words.front() = program.starts_with('-') ? "./" + program : program;
        words.insert(words.begin(), "python3");
    } else if (file == File::executable && bare) {
        words.front() = "./" + program;
    }
    return words;
}

/// At most `size` bytes, whole characters.
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

JobSpec job_spec(const Request& request)
{
    JobSpec spec;
    spec.name = request.name;
    spec.partition = request.queue;
    spec.work_dir = request.work_dir;
    spec.walltime = request.chain
                        ? std::max(minutes{1}, std::chrono::ceil<minutes>(request.chain->link))
                        : request.walltime;
    spec.nodes = request.nodes;
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

/// In minutes where that says it; links of seconds are for trying.
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
    const int links = expected_links(request, {}, Time{});
    return links == 1 ? ", going on after a failed node"
                      : fmt::format(", in {} links of {}", links, length_text(request.chain->link));
}

std::string summary_of(const AskedFor& asked, const Request& request, const JobSpec& spec)
{
    const std::string gpus = gpus_text(spec);
    const std::string time = to_text(request.walltime);
    std::vector<std::string> defaults;
    if (!asked.gpus) {
        defaults.push_back(gpus);
    }
    if (!asked.walltime) {
        defaults.push_back(time);
    }
    const std::string nodes =
        spec.nodes == 1 ? "" : fmt::format(" on each of {} nodes", spec.nodes);
    const std::string tail =
        defaults.empty() ? "" : fmt::format(" (default: {})", fmt::join(defaults, ", "));
    const bool several = spec.partition.find(',') != std::string::npos;
    return fmt::format("{}{} for {} in {} {}{}{}", gpus, nodes, time,
                       several && !asked.queue ? "the first that takes it of" : "queue",
                       spec.partition, links_text(request), tail);
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
               choose_queue(asked, partitions, may_be_chained(asked, known)));
    const bool chosen_by_policy = queue->ruled && !asked.queue;
    if (const int nodes = asked.nodes.value_or(1); !has_nodes(*queue, nodes) && !chosen_by_policy) {
        return too_many_nodes(partitions, *queue, nodes);
    }
    Request request;
    TRY_ASSIGN(request.walltime, choose_walltime(asked, *queue));
    TRY_ASSIGN(request.chain, choose_chain(asked, *queue, request.walltime, known));
    TRY_ASSIGN(request.env, resolved_env(asked, surroundings));
    request.program = program;
    request.name = asked.name ? *asked.name : default_name(asked.program.front());
    request.work_dir = surroundings.work_dir;
    request.queue = queue_text(asked, partitions, *queue);
    request.gpus = asked.gpus.value_or(GpuRequest{});
    request.nodes = asked.nodes.value_or(1);
    request.cpus = asked.cpus;
    request.memory_mib = asked.memory_mib;
    request.account = asked.account;
    request.qos = asked.qos;
    request.after = asked.after;
    request.input = asked.input;
    request.pty = asked.pty;
    request.modules = asked.modules;
    request.conda = asked.conda;
    request.container = asked.container;
    request.container_command =
        asked.container ? surroundings.container_command : std::vector<std::string>{};
    request.slurm_options = asked.slurm_options;

    std::optional<std::string> model = request.gpus.model;
    if (request.gpus.min_memory_mib) {
        TRY_ASSIGN(model, model_with_memory(request.gpus, *queue, surroundings.nodes));
    }
    if (request.chain) { // later links get the same, without another look at the nodes
        request.gpus.model = model;
        request.gpus.min_memory_mib.reset();
    }
    JobSpec spec = job_spec(request);
    spec.gpu_model = model;
    return Plan{request, spec, summary_of(asked, request, spec)};
}

Result<void> check_walltime(const Partitions& partitions, const std::string& name, minutes walltime)
{
    for (const Partition& queue : partitions) {
        if (queue.name == name && !holds(queue, walltime)) {
            return beyond_this_queue(partitions, queue, walltime);
        }
    }
    return {};
}

} // namespace gpuq
