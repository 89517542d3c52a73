// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/policy_ops/apply.h"
#include "cli/policy_ops/file.h"
#include "core/number.h"
#include "core/quote.h"
#include "core/timestamp.h"
#include "embedded/cluster.h"
#include "embedded/places.h"
#include "embedded/site_conf.h"
#include "log/audit.h"
#include "log/log.h"
#include "ports/accounting.h"
#include "ports/clock.h"
#include "report/ending_text.h"
#include "report/json.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <unistd.h>

namespace gpuq::cli {
namespace {

using embedded::Confinement;
using embedded::Wishes;

constexpr std::array k_options = {
    Option{0, "dir", "DIR", "directory of the cluster"},
    Option{0, "gpus", "N", "up: number of simulated GPUs on each node; default: real GPUs"},
    Option{0, "model", "MODEL", "up: model of the simulated GPUs, e.g. k80"},
    Option{0, "shards", "N", "up: number of shares of each GPU (gres/shard); default: none"},
    Option{0, "nodes", "N", "up: number of nodes on this machine"},
    Option{0, "name", "NAME", "up: name of the cluster; default: local"},
    Option{0, "node-name", "NAME", "up: prefix of the node names; default: n"},
    Option{0, "cgroups", "WHEN", "up: confine jobs: auto, on or off"},
    Option{0, "policy", "FILE", "up: take partitions, limits and nodes from this policy"},
    Option{0, "slurm-conf-file", "FILE",
           "up: take partitions, nodes and settings from this slurm.conf"},
    Option{0, "slurm-conf", "LINE", "up: append this line to slurm.conf; may be repeated"},
    Option{0, "purge", "", "down: also remove its accounting and state"},
};

Result<std::optional<int>> count(const Options& options, std::string_view name)
{
    const auto text = options.value(name);
    if (!text) {
        return std::optional<int>{};
    }
    const auto number = whole_number(*text);
    if (!number || *number > std::numeric_limits<int>::max()) {
        return fail(Error::Kind::usage, fmt::format("--{}: '{}' is not a number", name, *text));
    }
    return std::optional<int>{static_cast<int>(*number)};
}

Result<std::optional<Confinement>> confinement(const Options& options)
{
    const std::string text = options.value("cgroups").value_or("auto");
    if (text == "auto") {
        return std::optional<Confinement>{};
    }
    if (text == "on" || text == "off") {
        return std::optional{text == "on" ? Confinement::cgroups : Confinement::parents};
    }
    return fail(Error::Kind::usage, "--cgroups: one of auto, on, off");
}

Result<Wishes> wishes(const Options& options)
{
    Wishes wishes;
    TRY_ASSIGN(wishes.gpus, count(options, "gpus"));
    TRY_ASSIGN(wishes.shards, count(options, "shards"));
    TRY_ASSIGN(wishes.nodes, count(options, "nodes"));
    TRY_ASSIGN(wishes.confinement, confinement(options));
    wishes.model = options.value("model");
    wishes.name = options.value("name");
    wishes.node_prefix = options.value("node-name");
    wishes.extra_lines = options.values("slurm-conf");
    return wishes;
}

Result<std::string> directory(const Invocation& invocation)
{
    if (const auto dir = invocation.options.value("dir")) {
        return *dir;
    }
    const auto state_home = invocation.services.variable("XDG_STATE_HOME");
    const auto home = invocation.services.variable("HOME");
    const auto dir = embedded::default_dir(geteuid(), state_home ? state_home->c_str() : nullptr,
                                           home ? home->c_str() : nullptr);
    if (!dir) {
        return fail(Error::Kind::usage, "HOME is not set; specify the directory with --dir");
    }
    return *dir;
}

constexpr std::size_t k_most_bytes_of_conf = 1024 * 1024;

/// The site's slurm.conf, and the job_submit.lua next to it if it names one.
Result<void> use_conf_file(Services& services, const std::string& path, Wishes& asked)
{
    TRY_ASSIGN(TextFile file, services.text_file(path, k_most_bytes_of_conf));
    if (file.distrust) {
        return *std::move(file.distrust);
    }
    TRY_ASSIGN(asked.conf, embedded::site_conf_in(file.text, path));
    if (asked.conf->has_script) {
        const std::string script =
            (std::filesystem::path(path).parent_path() / "job_submit.lua").string();
        TRY_ASSIGN(TextFile lua, services.text_file(script, k_most_bytes_of_conf));
        if (lua.distrust) {
            return *std::move(lua.distrust);
        }
        asked.script = std::move(lua.text);
    }
    return {};
}

/// Records a change by an operator, beside slurm.conf; nothing in a directory that holds no
/// cluster.
void record(const std::string& dir, const std::string& text)
{
    const embedded::Places places{dir, {}};
    if (std::filesystem::exists(places.state_file())) {
        log::discard(log::Part::cluster, "audit log", log::audit(places.audit_log(), text));
    }
}

/// Creates the courses, which `up` could not; prints each obstacle.
Result<void> keep_courses(Invocation& invocation, const std::string& dir, const std::string& policy)
{
    invocation.services.choose_configuration(embedded::Places{dir, {}}.slurm_conf());
    TRY_ASSIGN(const auto missing, apply_courses(invocation, policy));
    for (const std::string& text : missing) {
        print_note(invocation.globals.quiet, "courses not reserved: " + text);
    }
    return {};
}

Result<int> up(Invocation& invocation, const std::string& dir)
{
    TRY_ASSIGN(Wishes asked, wishes(invocation.options));
    bool has_courses = false;
    if (const auto path = invocation.options.value("policy")) {
        TRY_ASSIGN(LoadedPolicy loaded, load_obeyed_policy(invocation.services, *path));
        has_courses = !loaded.reading.policy.courses.empty();
        asked.policy = std::move(loaded.text);
    }
    if (const auto path = invocation.options.value("slurm-conf-file")) {
        TRY(use_conf_file(invocation.services, *path, asked));
    }
    const auto done = embedded::up(dir, asked);
    if (!done) {
        record(dir, "up failed: " + done.error().text);
        return done.error();
    }
    const embedded::UpReport& report = *done;
    const embedded::ClusterSpec& spec = report.state.spec;
    if (!report.was_up) {
        record(dir, fmt::format("up: {}{}", embedded::describe(spec),
                                asked.policy ? ", under a policy" : ""));
    }
    const std::string when =
        report.was_up
            ? "already"
            : fmt::format("after {:.1f} s", std::chrono::duration<double>(report.took).count());
    print_note(invocation.globals.quiet, fmt::format("cluster '{}' is up {}: {}, in {}", spec.name,
                                                     when, embedded::describe(spec), dir));
    for (const std::string& note : report.notes) {
        print_note(invocation.globals.quiet, note);
    }
    // Also if the cluster was already up: an earlier `up` may have been interrupted here.
    if (has_courses) {
        TRY(keep_courses(invocation, dir, *asked.policy));
    }
    return 0;
}

Result<int> down(const Invocation& invocation, const std::string& dir)
{
    const bool purged = invocation.options.has("purge");
    TRY_ASSIGN(const embedded::DownReport report,
               embedded::down(dir, purged ? embedded::Purge::yes : embedded::Purge::no));
    if (!report.was_up) {
        print_note(invocation.globals.quiet,
                   fmt::format("no cluster is up in {}{}", dir,
                               report.purged ? "; its remaining files were removed" : ""));
        return 0;
    }
    if (!purged) {
        record(dir, fmt::format("down, {} jobs cancelled", report.jobs_ended));
    }
    const std::string jobs = report.jobs_ended == 0
                                 ? ""
                                 : fmt::format(" and {} of its jobs cancelled", report.jobs_ended);
    print_note(invocation.globals.quiet,
               fmt::format("the cluster is down{}; {}", jobs,
                           purged ? "its accounting was removed"
                                  : "its accounting is kept for the next `gpuq cluster up`"));
    return 0;
}

bool is_dead(const embedded::Status& status, const std::string& daemon)
{
    return std::find(status.dead.begin(), status.dead.end(), daemon) != status.dead.end();
}

Time started_at(const embedded::Status& status)
{
    return Time{std::chrono::seconds{status.state.started_at}};
}

std::string json_of(const embedded::Status& status)
{
    using report::Json;
    const embedded::ClusterSpec& spec = status.state.spec;
    const std::string& failure = status.state.accounting_failure;
    Json::Elements daemons;
    for (const embedded::Daemon& daemon : status.state.daemons) {
        daemons.push_back(Json::object({{"name", daemon.name},
                                        {"pid", daemon.process.pid},
                                        {"running", !is_dead(status, daemon.name)}}));
    }
    Json::Elements nodes;
    for (const embedded::NodeStatus& node : status.nodes) {
        nodes.push_back(Json::object(
            {{"name", node.name}, {"state", node.state}, {"gpus", spec.gpus_on(node.name)}}));
    }
    return report::json_document({{"up", status.up},
                                  {"name", spec.name},
                                  {"slurm_conf", status.slurm_conf},
                                  {"since", status.state.up ? Json(started_at(status)) : Json()},
                                  {"stand_ins", spec.stand_ins},
                                  {"cgroups", spec.confinement == Confinement::cgroups},
                                  {"accounting", status.accounting},
                                  {"accounting_failure", failure.empty() ? Json() : Json(failure)},
                                  {"daemons", Json::array(std::move(daemons))},
                                  {"nodes", Json::array(std::move(nodes))}});
}

std::string no_cluster_json()
{
    using report::Json;
    return report::json_document({{"up", false},
                                  {"name", Json()},
                                  {"slurm_conf", Json()},
                                  {"since", Json()},
                                  {"stand_ins", Json()},
                                  {"cgroups", Json()},
                                  {"accounting", Json()},
                                  {"accounting_failure", Json()},
                                  {"daemons", Json::array(Json::Elements{})},
                                  {"nodes", Json::array(Json::Elements{})}});
}

std::string text_of(const embedded::Status& status, Time now)
{
    const embedded::State& state = status.state;
    if (!state.up) {
        return fmt::format("cluster '{}' is down; `gpuq cluster up` starts it with {}\n",
                           state.spec.name, embedded::describe(state.spec));
    }
    std::string text =
        fmt::format("cluster '{}' is {} since {}: {}\n", state.spec.name,
                    status.up ? "up" : "partly up (`gpuq cluster up` repairs it)",
                    moment_text(started_at(status), now), embedded::describe(state.spec));
    text += fmt::format("{:<14}{}\n", "configuration", sanitised(status.slurm_conf));
    text += fmt::format("{:<14}{}\n", "jobs",
                        state.spec.confinement == Confinement::cgroups ? "confined by cgroups"
                                                                       : "not confined");
    if (!state.accounting_failure.empty()) {
        text += fmt::format("{:<14}not running: {}\n", "accounting",
                            sanitised(state.accounting_failure));
    }
    for (const embedded::Daemon& daemon : state.daemons) {
        text += fmt::format("{:<14}{}\n", daemon.name,
                            is_dead(status, daemon.name)
                                ? "not running"
                                : fmt::format("running, pid {}", daemon.process.pid));
    }
    for (const embedded::NodeStatus& node : status.nodes) {
        const std::size_t gpus = state.spec.gpus_on(node.name);
        text += fmt::format("{:<14}{}, {} {}\n", "node " + node.name, node.state, gpus,
                            gpus == 1 ? "GPU" : "GPUs");
    }
    return text;
}

Result<int> show_status(const Invocation& invocation, const std::string& dir)
{
    const auto status = embedded::status(dir);
    if (!status && status.error().kind == Error::Kind::missing) {
        fmt::print("{}", invocation.globals.json
                             ? no_cluster_json()
                             : fmt::format("no cluster in {}; `gpuq cluster up` creates one\n",
                                           sanitised(dir)));
        return 1;
    }
    if (!status) {
        return status.error();
    }
    fmt::print("{}", invocation.globals.json ? json_of(*status)
                                             : text_of(*status, invocation.services.clock().now()));
    return status->up ? 0 : 1;
}

Result<int> print_env(const Invocation& invocation, const std::string& dir)
{
    std::string conf;
    if (!invocation.options.has("dir")) {
        TRY_ASSIGN(conf, embedded::find_cluster_conf());
    } else {
        TRY_ASSIGN(const embedded::Status status, embedded::status(dir));
        if (!status.state.up) {
            return fail(Error::Kind::missing, fmt::format("the cluster in {} is down", dir));
        }
        conf = status.slurm_conf;
    }
    fmt::print("{}", invocation.globals.json
                         ? report::json_document({{"slurm_conf", conf}})
                         : fmt::format("export SLURM_CONF={}\n", shell_quoted(conf)));
    return 0;
}

/// Rejects options of other actions, which would silently have no effect.
Result<void> check_options(const Options& options, const std::string& action)
{
    for (const Option& option : k_options) {
        const std::string_view owner = option.help.substr(0, option.help.find(": "));
        const bool everywhere = owner.size() == option.help.size();
        if (!everywhere && owner != action && options.has(option.name)) {
            return fail(Error::Kind::usage,
                        fmt::format("--{} is an option of gpuq cluster {}", option.name, owner));
        }
    }
    return {};
}

Result<int> run(Invocation& invocation)
{
    const auto& arguments = invocation.arguments;
    const std::string action = arguments.size() == 1 ? arguments[0] : "";
    TRY(check_options(invocation.options, action));
    TRY_ASSIGN(const std::string dir, directory(invocation));
    if (action == "up") {
        return up(invocation, dir);
    }
    if (action == "down") {
        return down(invocation, dir);
    }
    if (action == "status") {
        return show_status(invocation, dir);
    }
    if (action == "env") {
        return print_env(invocation, dir);
    }
    return fail(Error::Kind::usage, "cluster: expected one of up, down, status, env");
}

} // namespace

const Verb k_cluster_verb{"cluster", "gpuq cluster up|down|status|env [options]",
                          "a real Slurm on this machine, for one user or a lab", run, k_options};

} // namespace gpuq::cli
