// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/diagnosis.h"

#include "core/number.h"
#include "core/size.h"
#include "core/strings.h"
#include "core/walltime.h"
#include "ports/accounting.h"
#include "ports/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Level = Finding::Level;
using std::chrono::seconds;

/// A slower response delays every start of a run noticeably.
constexpr auto k_slow = 1000ms;
/// The supervisor needs part of KillWait to save logs after it has ended the program.
constexpr auto k_short_kill_wait = 10s;
/// A heartbeat counts as fresh for 15 s; munge credentials are valid for 300 s.
constexpr auto k_clock_warning = 3s;
constexpr auto k_clock_problem = 10s;
constexpr std::uint64_t k_little_space = 1ULL << 30U;
constexpr std::uint64_t k_no_space = 64ULL << 20U;
constexpr std::uint64_t k_no_files = 100;
constexpr seconds k_batch_delay{3}; ///< Slurm's default

Finding ok(std::string check, std::string text)
{
    return {std::move(check), Level::ok, std::move(text), ""};
}

/// Slurm's releases, oldest first. A client and a server are compatible if the server is not older
/// than the client, and newer by a limited number of releases.
constexpr std::array<std::string_view, 8> k_releases = {"22.05", "23.02", "23.11", "24.05",
                                                        "24.11", "25.05", "25.11", "26.05"};
constexpr std::size_t k_from_24_11 = 4;

std::optional<std::size_t> release_of(std::string_view version)
{
    const auto found = std::find(k_releases.begin(), k_releases.end(), version.substr(0, 5));
    return found == k_releases.end()
               ? std::nullopt
               : std::optional(static_cast<std::size_t>(found - k_releases.begin()));
}

Finding assess_version(const Controller& controller)
{
    const auto server = release_of(controller.version);
    const auto client = release_of(controller.library);
    const std::string both =
        fmt::format("slurmctld {}, gpuq's libslurm {}", controller.version, controller.library);
    if (controller.version.substr(0, 5) == controller.library.substr(0, 5)) {
        return ok("version", both);
    }
    const std::string rebuild = "build gpuq with the cluster's own Slurm";
    if (!server || !client) {
        return {"version", Level::unknown, both + ": not a release that this gpuq knows", rebuild};
    }
    if (*client > *server) {
        return {"version", Level::warning,
                both + ": a client must not be newer than the controller", rebuild};
    }
    const std::size_t reach = *server >= k_from_24_11 ? 3 : 2;
    if (*server - *client >= reach) {
        return {"version", Level::warning, both + ": the oldest client that this controller takes",
                rebuild + " before the controller is upgraded"};
    }
    return ok("version", both);
}

/// The certain part of the difference between another clock, known in whole seconds, and this
/// host's.
seconds skew_of(Time other, const Answered& answered)
{
    const auto early = std::chrono::floor<seconds>(answered.before);
    const auto late = std::chrono::ceil<seconds>(answered.after);
    if (other < early) {
        return std::chrono::floor<seconds>(other - early);
    }
    return other > late ? std::chrono::ceil<seconds>(other - late) : 0s;
}

Finding assess_clock(const std::string& check, const std::string& whose,
                     const std::optional<Time>& now, const Answered& answered)
{
    if (!now) {
        return {check, Level::unknown, fmt::format("{} did not report its time", whose), ""};
    }
    const seconds skew = skew_of(*now, answered);
    const seconds size = std::max(skew, -skew);
    if (size < k_clock_warning) {
        return ok(check, fmt::format("{} and this host agree within {} s", whose,
                                     k_clock_warning.count()));
    }
    return {
        check, size < k_clock_problem ? Level::warning : Level::problem,
        fmt::format("the clock of {} is {} s {} this host's", whose, size.count(),
                    skew.count() > 0 ? "ahead of" : "behind"),
        "both need a time service (chrony, systemd-timesyncd): heartbeats and credentials carry "
        "times"};
}

std::optional<std::int64_t> parameter(const std::string& parameters, std::string_view name)
{
    for (const std::string_view word : fields(parameters, ",")) {
        std::int64_t value = 0;
        if (word.starts_with(name) && word.substr(name.size()).starts_with('=') &&
            std::from_chars(word.data() + name.size() + 1, word.data() + word.size(), value).ec ==
                std::errc()) {
            return value;
        }
    }
    return std::nullopt;
}

bool has_argument(const std::string& parameters, std::string_view name)
{
    const auto items = fields(parameters, ",");
    return std::find(items.begin(), items.end(), name) != items.end();
}

std::vector<Finding> assess_scheduler(const Controller& controller)
{
    const std::string& parameters = controller.scheduler_parameters;
    std::vector<Finding> findings;
    if (has_argument(parameters, "defer")) {
        findings.push_back({"defer", Level::warning,
                            "SchedulerParameters has defer: no GPU is given at once, every run "
                            "goes through the queue",
                            "the cluster's operators can take it out, or use defer_batch, which "
                            "leaves immediate starts alone"});
    } else {
        findings.push_back(ok("defer", "not set: a free GPU is given at once"));
    }
    const seconds delay{parameter(parameters, "batch_sched_delay").value_or(k_batch_delay.count())};
    if (delay > k_batch_delay) {
        findings.push_back(
            {"batch-sched-delay", Level::warning,
             fmt::format("a queued run waits up to {} s even for a free GPU", delay.count()),
             "the cluster's operators can lower batch_sched_delay in "
             "SchedulerParameters"});
    } else {
        findings.push_back(
            ok("batch-sched-delay",
               fmt::format("a queued run is considered within {} s", delay.count())));
    }
    if (const auto most = parameter(parameters, "max_rpc_cnt"); most && *most > 0) {
        findings.push_back(ok("max-rpc-cnt", fmt::format("scheduling pauses while {} requests "
                                                         "are open",
                                                         *most)));
    }
    return findings;
}

std::vector<Finding> assess_limits(const Controller& controller)
{
    std::vector<Finding> findings;
    const auto wait = controller.kill_wait.count();
    if (controller.kill_wait < k_short_kill_wait) {
        findings.push_back({"kill-wait", Level::warning,
                            fmt::format("KillWait is {} s: the time that a program has between "
                                        "TERM and KILL, and its supervisor for the end of the log",
                                        wait),
                            "the cluster's operators can set KillWait=30"});
    } else {
        findings.push_back(ok("kill-wait", fmt::format("{} s between TERM and KILL", wait)));
    }
    const auto limit = controller.inactive_limit.count();
    findings.push_back(
        ok("inactive-limit", limit == 0 ? "none"
                                        : fmt::format("{} s; it does not affect runs, which have "
                                                      "no listener that could stop responding",
                                                      limit)));
    return findings;
}

Finding check_memory(const Controller& controller)
{
    if (!controller.counts_memory) {
        return {"memory-limit", Level::warning,
                "Slurm allocates no memory to jobs: --mem has no effect, and jobs on a node can "
                "take it from each other",
                "the cluster's operators can use SelectTypeParameters=CR_Core_Memory"};
    }
    if (!controller.limits_memory) {
        return {"memory-limit", Level::warning,
                "a job that uses more memory than it requested is not stopped; when a node has "
                "none left, the kernel may kill processes of any job",
                "the cluster's operators can use TaskPlugin=task/cgroup with "
                "ConstrainRAMSpace=yes"};
    }
    return ok("memory-limit", "a job can't use more memory than it requested");
}

Finding check_privacy(const Controller& controller)
{
    const auto& hidden = controller.private_data;
    if (hidden.empty()) {
        return ok("private-data", "nothing is hidden from users");
    }
    const auto hides = [&](const char* name) {
        return std::find(hidden.begin(), hidden.end(), name) != hidden.end();
    };
    const std::string text = fmt::format("PrivateData={}", fmt::join(hidden, ","));
    if (hides("partitions")) {
        return {"private-data", Level::problem,
                text + ": users see no queue, so gpuq starts no runs for them",
                "the cluster's operators can remove partitions from PrivateData"};
    }
    return ok("private-data",
              text + (hides("jobs") ? ": why and free know no jobs of other users" : ""));
}

Finding assess_queue(const Partition& queue)
{
    const std::string name =
        fmt::format("queue {}{}", queue.name, queue.is_default ? " (default)" : "");
    if (!queue.up) {
        return {"queue", Level::warning, name + " takes no jobs or starts none",
                "use another queue"};
    }
    const std::string most =
        queue.max_time ? "at most " + to_text(*queue.max_time) : "no time limit";
    if (!queue.default_time && !queue.max_time) {
        return {"queue", Level::warning, fmt::format("{}: {} and no default time", name, most),
                "set -t: without it a run has no time limit"};
    }
    const std::string usual = queue.default_time ? "otherwise " + to_text(*queue.default_time)
                                                 : "which is also the default";
    return ok("queue", fmt::format("{}: {}, {}", name, most, usual));
}

Finding assess_nodes(const std::vector<Node>& nodes)
{
    int with_gpus = 0;
    int gpus = 0;
    std::vector<std::string> down;
    for (const Node& node : nodes) {
        int here = 0;
        for (const NodeGpus& row : node.gpus) {
            here += row.total;
        }
        if (!node.up) {
            down.push_back(node.name);
        } else if (here > 0) {
            ++with_gpus;
            gpus += here;
        }
    }
    const std::string there =
        fmt::format("{} {} with {} {}", with_gpus, with_gpus == 1 ? "node" : "nodes", gpus,
                    gpus == 1 ? "GPU" : "GPUs");
    if (gpus == 0) {
        return {"nodes", Level::problem, "no node that takes jobs has a GPU",
                "sinfo -R shows why nodes are closed; gres.conf and Gres= declare GPUs to Slurm"};
    }
    constexpr std::size_t k_most = 10;
    if (!down.empty()) {
        const std::size_t all = down.size();
        down.resize(std::min(all, k_most));
        return {"nodes", Level::warning,
                fmt::format("{}; {} closed: {}{}", there, all, fmt::join(down, ", "),
                            all > k_most ? ", ..." : ""),
                "sinfo -R shows why"};
    }
    return ok("nodes", there);
}

Finding assess_submission(const std::vector<Partition>& queues)
{
    for (const Partition& queue : queues) {
        if (!queue.submit_hosts.empty() && queue.submit_hosts != "ALL") {
            return {"nodes-submit", Level::warning,
                    fmt::format("queue {} takes jobs only from {} (AllocNodes)", queue.name,
                                queue.submit_hosts),
                    "a run that continues in another job needs its nodes to be among them"};
        }
    }
    return {"nodes-submit", Level::unknown,
            "no queue forbids its nodes to submit; whether the site's plugins and network allow it "
            "is not known",
            "gpuq doctor --nodes asks a node"};
}

Finding assess_space(const std::string& path, const DirectoryFacts& facts)
{
    const std::string left = fmt::format("{} of {} left below {}", bytes_text(facts.free_bytes),
                                         bytes_text(facts.total_bytes), path);
    const std::string remedy = "gpuq clean removes old runs; state_dir sets another directory";
    if (facts.quota) {
        const auto& quota = *facts.quota;
        const std::uint64_t rest =
            quota.limit_bytes - std::min(quota.used_bytes, quota.limit_bytes);
        const std::string text = fmt::format("{} of your quota of {} left", bytes_text(rest),
                                             bytes_text(quota.limit_bytes));
        if (rest < k_little_space) {
            return {"space", rest < k_no_space ? Level::problem : Level::warning, text, remedy};
        }
    }
    if (facts.free_files && *facts.free_files < k_no_files) {
        return {"space", Level::problem,
                fmt::format("room for {} more files below {}", *facts.free_files, path), remedy};
    }
    if (facts.free_bytes < k_little_space) {
        return {"space", facts.free_bytes < k_no_space ? Level::problem : Level::warning, left,
                remedy};
    }
    const bool blind = !facts.quota && facts.reach != DirectoryFacts::Reach::local &&
                       facts.reach != DirectoryFacts::Reach::memory;
    return ok("space", left + (blind ? "; your quota on it is not known" : ""));
}

Finding assess_reach(const std::string& path, const DirectoryFacts& facts)
{
    using Reach = DirectoryFacts::Reach;
    const std::string how = "gpuq doctor --nodes asks a node";
    switch (facts.reach) {
    case Reach::network:
        return {"nodes-see-folder", Level::unknown,
                fmt::format("{} is on {}, which nodes can mount", path, facts.file_system), how};
    case Reach::memory:
        return {"nodes-see-folder", Level::warning,
                fmt::format("{} is on {}: local to this machine, and lost when it restarts", path,
                            facts.file_system),
                "set state_dir to a directory that all nodes share, unless this machine is the "
                "only node"};
    case Reach::local:
        return {"nodes-see-folder", Level::unknown,
                fmt::format("{} is on {}: nodes see it only when they are this machine", path,
                            facts.file_system),
                how + "; state_dir sets another directory"};
    case Reach::unknown:
        break;
    }
    return {"nodes-see-folder", Level::unknown,
            fmt::format("{} is on {}: not known whether nodes mount it", path, facts.file_system),
            how};
}

Finding assess_owner(const std::string& path, const DirectoryFacts& facts, std::uint32_t uid)
{
    constexpr std::uint32_t k_write_for_others = 0022;
    constexpr std::uint32_t k_anything_for_others = 0077;
    if (!facts.exists) {
        return facts.writable
                   ? ok("state-folder", path + " is created by the first run")
                   : Finding{"state-folder", Level::problem,
                             path + " does not exist and can't be created",
                             "choose another directory with state_dir or GPUQ_STATE_DIR"};
    }
    if (facts.owner != uid) {
        return {"state-folder", Level::problem,
                fmt::format("{} belongs to user {}, not to you", path, facts.owner),
                "choose another directory with state_dir or GPUQ_STATE_DIR"};
    }
    if (!facts.writable) {
        return {"state-folder", Level::problem, path + " can't be written",
                "chmod 700 it, or choose another directory with state_dir"};
    }
    const std::string mode = fmt::format("{} has mode {:04o}", path, facts.mode);
    if ((facts.mode & k_write_for_others) != 0) {
        return {"state-folder", Level::problem, mode + ": other users can write to it",
                "chmod 700 it"};
    }
    if ((facts.mode & k_anything_for_others) != 0) {
        return {"state-folder", Level::warning, mode + ": other users can read it", "chmod 700 it"};
    }
    return ok("state-folder", mode);
}

} // namespace

std::string_view word(Level level)
{
    switch (level) {
    case Level::ok:
        return "ok";
    case Level::warning:
        return "warning";
    case Level::problem:
        return "problem";
    case Level::unknown:
        return "unknown";
    }
    return "unknown";
}

std::vector<Finding> assess_controller(const Controller& controller, const Answered& answered)
{
    const auto took = answered.took.count();
    std::vector<Finding> findings;
    const std::string text = fmt::format("cluster {} answered in {} ms", answered.cluster, took);
    if (answered.took > k_slow) {
        findings.push_back({"slurm", Level::warning, text + ", which is slow",
                            "sdiag shows the number of requests of each user"});
    } else {
        findings.push_back(ok("slurm", text));
    }
    findings.push_back(assess_version(controller));
    findings.push_back(assess_clock("clock", "slurmctld's host", controller.now, answered));
    for (auto& part : {assess_scheduler(controller), assess_limits(controller)}) {
        findings.insert(findings.end(), part.begin(), part.end());
    }
    findings.push_back(check_memory(controller));
    findings.push_back(check_privacy(controller));
    return findings;
}

std::vector<Finding> assess_silence(const Error& error)
{
    std::vector<Finding> findings = {
        {"slurm", Level::problem, error.text,
         error.kind == Error::Kind::unreachable
             ? "scontrol ping shows which controller is down; your runs continue meanwhile"
             : "SLURM_CONF names the configuration; gpuq cluster up starts your own Slurm"}};
    for (const char* check : {"version", "clock", "defer", "batch-sched-delay", "kill-wait",
                              "inactive-limit", "memory-limit", "private-data"}) {
        findings.push_back({check, Level::unknown, "Slurm did not answer", ""});
    }
    return findings;
}

std::vector<Finding> assess_queues(const std::vector<Partition>& queues,
                                   const std::vector<Node>& nodes)
{
    std::vector<Finding> findings;
    for (const Partition& queue : queues) {
        findings.push_back(assess_queue(queue));
    }
    if (queues.empty()) {
        findings.push_back({"queue", Level::problem, "Slurm shows you no queue",
                            "ask the cluster's operators for access to one"});
    }
    findings.push_back(assess_nodes(nodes));
    findings.push_back(assess_submission(queues));
    return findings;
}

Finding assess_accounting(bool configured, const Result<PastJob>& asked,
                          const std::optional<std::string>& failure)
{
    const bool answers = asked || asked.error().kind == Error::Kind::missing;
    if (failure && !answers) {
        return {
            "accounting", Level::warning, fmt::format("the cluster runs without it: {}", *failure),
            "fix that, then run `gpuq cluster up`; until then gpuq usage and policies do not work"};
    }
    if (!configured) {
        return {
            "accounting", Level::warning,
            "this Slurm keeps none: the end of a run that Slurm has forgotten can't be determined",
            "the cluster's operators can set up slurmdbd"};
    }
    if (answers) {
        return ok("accounting", "slurmdbd answers");
    }
    return {"accounting", Level::problem, asked.error().text,
            "try sacctmgr ping or ask the cluster's operators; runs start regardless"};
}

std::vector<Finding> assess_directory(const std::string& path, const Result<DirectoryFacts>& facts,
                                      std::uint32_t uid)
{
    if (!facts) {
        return {{"state-folder", Level::problem, facts.error().text,
                 "set a usable directory with state_dir or GPUQ_STATE_DIR"},
                {"space", Level::unknown, "the state directory can't be examined", ""},
                {"nodes-see-folder", Level::unknown, "the state directory can't be examined", ""}};
    }
    return {assess_owner(path, *facts, uid), assess_space(path, *facts),
            assess_reach(path, *facts)};
}

NodeView node_view_in(std::string_view lines)
{
    NodeView view;
    for (const std::string_view line : fields(lines, "\n")) {
        const auto [name, value] = cut(line, ' ');
        if (name == "host") {
            view.host = std::string(value);
        } else if (name == "clock") {
            if (const auto number = whole_number(value)) {
                view.clock = Time(seconds(static_cast<std::int64_t>(*number)));
            }
        } else if (name == "folder") {
            view.sees_directory = value == "yes";
        } else if (name == "supervisor") {
            view.sees_supervisor = value == "yes";
        } else if (name == "submit" && (value == "yes" || value == "no")) {
            view.may_submit = value == "yes";
        }
    }
    return view;
}

std::vector<Finding> assess_node(const NodeView& view, const std::string& directory,
                                 const std::string& supervisor, const Answered& answered)
{
    std::vector<Finding> findings;
    const std::string& host = view.host;
    if (view.sees_directory && view.writes_directory) {
        findings.push_back(
            ok("nodes-see-folder", fmt::format("{} reads and writes {}", host, directory)));
    } else {
        findings.push_back(
            {"nodes-see-folder", Level::problem,
             fmt::format("{} {} {}", host,
                         view.sees_directory ? "reads but can't write" : "does not see", directory),
             "set state_dir to a directory that all nodes share: a run without it "
             "has no log"});
    }
    findings.push_back(
        view.sees_supervisor
            ? ok("nodes-see-supervisor", fmt::format("{} can execute {}", host, supervisor))
            : Finding{"nodes-see-supervisor", Level::problem,
                      fmt::format("{} can't execute {}", host, supervisor),
                      "install gpuq where the nodes see it, or set GPUQ_SUPERVISOR"});
    if (!view.may_submit) {
        findings.push_back({"nodes-submit", Level::unknown,
                            fmt::format("{} could not be asked whether it may submit", host), ""});
    } else if (*view.may_submit) {
        findings.push_back(ok("nodes-submit", fmt::format("{} may submit", host)));
    } else {
        findings.push_back({"nodes-submit", Level::warning, fmt::format("{} may not submit", host),
                            "a run that continues in another job needs it: ask the cluster's "
                            "operators"});
    }
    findings.push_back(assess_clock("node-clock", host, view.clock, answered));
    return findings;
}

} // namespace gpuq
