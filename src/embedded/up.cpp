// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/accounting.h"
#include "embedded/cluster.h"
#include "embedded/directory.h"
#include "embedded/machine.h"
#include "embedded/process.h"
#include "embedded/start.h"
#include "embedded/teardown.h"
#include "embedded/tools.h"
#include "embedded/unit.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <pwd.h>
#include <sstream>
#include <unistd.h>

/// `up` and `down` of a cluster. A lock file allows one of them at a time per directory, and INT,
/// TERM and HUP are blocked meanwhile. `up` repairs a cluster of which a daemon is still running,
/// else leaves the start to systemd (the machine's cluster) or starts all daemons itself. The state
/// file always lists enough to end a start that was interrupted by a crash.
namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string user_name()
{
    const passwd* entry = getpwuid(geteuid());
    return entry ? entry->pw_name : "";
}

/// Sockets and cores as detected by slurmd, without parameters that are configured explicitly.
std::string topology(const Places& places)
{
    const auto answer = run_tool(places, {"slurmd", "-C"}, seconds(5));
    std::istringstream stream(answer && answer->status == 0 ? answer->output : "");
    std::string text;
    for (std::string word; stream >> word;) {
        if (word.starts_with("Boards=") || word.starts_with("SocketsPerBoard=") ||
            word.starts_with("CoresPerSocket=") || word.starts_with("ThreadsPerCore=")) {
            text += (text.empty() ? "" : " ") + word;
        }
    }
    return text;
}

/// `22.05`, from the `slurm-wlm 22.05.8` of `slurmd -V`; empty if unknown.
std::string slurm_release(const Places& places)
{
    const auto answer = run_tool(places, {"slurmd", "-V"}, seconds(5));
    const std::string text = answer && answer->status == 0 ? answer->output : "";
    const auto version = text.find_last_of(' ') + 1;
    constexpr std::size_t k_digits = 5;
    return version + k_digits <= text.size() ? text.substr(version, k_digits) : "";
}

Result<MachineFacts> inspect_machine(const Places& places)
{
    MachineFacts facts;
    facts.user = user_name();
    facts.is_root = geteuid() == 0;
    if (facts.user.empty()) {
        return fail(Error::Kind::denied,
                    fmt::format("user {} has no name on this machine; Slurm needs one", geteuid()));
    }
    facts.cores = core_count();
    facts.memory_mib = memory_mib();
    facts.gpus = real_gpus();
    facts.topology = facts.gpus.empty() ? "" : topology(places);
    const Cgroups cgroups = cgroups_here();
    facts.cgroup_plugin = cgroups.plugin;
    facts.cgroups_obstacle = cgroups.obstacle;
    facts.slurm_release = slurm_release(places);
    return facts;
}

/// Stores the policy and marks its generated files as missing. The marked file must exist, since
/// slurm.conf includes it and Slurm's commands fail without it.
Result<void> keep_policy(const Places& places, const Wishes& wishes)
{
    if (!wishes.policy) {
        return {};
    }
    TRY(make_dir(places.policy_dir(), 0755));
    // The mark first: after a crash in between, the old policy is generated again.
    TRY(write_file(places.policy_conf(), k_no_policy_yet, 0644));
    return write_file(places.policy_yaml(), *wishes.policy, 0644);
}

/// slurmctld does not start without a script that JobSubmitPlugins names.
Result<void> keep_script(const Places& places, const Wishes& wishes)
{
    return wishes.script.empty() ? Result<void>()
                                 : write_file(places.job_submit_lua(), wishes.script, 0644);
}

/// The largest number of GPUs per node.
int most_gpus(const NodesOfPolicy& nodes)
{
    int most = 0;
    for (const policy::Pool& pool : nodes.pools) {
        most = std::max(most, pool.gpus_per_node());
    }
    return most;
}

/// --shards is for pools whose shares the policy leaves open.
Result<void> check_shards(const NodesOfPolicy& nodes, const std::optional<int>& shards)
{
    for (const policy::Pool& pool : nodes.pools) {
        if (shards && pool.shares && pool.shares->per_gpu.value != *shards) {
            return fail(Error::Kind::usage,
                        fmt::format("--shards {}: a GPU of pool {} has {} shares in the policy",
                                    *shards, pool.name, pool.shares->per_gpu.value));
        }
    }
    return {};
}

Result<ClusterSpec> decide(const Places& places, const Wishes& wishes, const State* former)
{
    TRY_ASSIGN(const MachineFacts machine, inspect_machine(places));
    Wishes all = former ? merge(wishes, former->spec) : wishes;
    if (!wishes.confinement && machine.cgroup_plugin.empty()) {
        all.confinement = Confinement::parents; // the last start may have used cgroups
    } else if (!all.confinement && places.dir == k_machine_dir) {
        all.confinement = Confinement::cgroups;
    }
    const bool ruled = wishes.policy || (former && former->spec.policy);
    NodesOfPolicy nodes;
    if (ruled) {
        TRY_ASSIGN(nodes, nodes_of_policy(wishes.policy ? *wishes.policy
                                                        : content_of(places.policy_yaml())));
        if (!nodes.pools.empty() && (wishes.gpus || wishes.nodes || wishes.model)) {
            return fail(Error::Kind::usage, "the policy defines the nodes and their GPUs: leave "
                                            "out --gpus, --model and --nodes");
        }
        TRY(check_shards(nodes, wishes.shards));
        all.gpus = nodes.pools.empty() ? all.gpus : most_gpus(nodes);
        all.model = nodes.pools.empty() ? all.model : std::nullopt;
    }
    const bool has_conf = wishes.conf || (former && !former->spec.conf_lines.empty());
    if (has_conf && (ruled || wishes.gpus || wishes.nodes || wishes.model)) {
        return fail(Error::Kind::usage, "--slurm-conf-file defines partitions, nodes and GPUs: "
                                        "leave out --policy, --gpus, --model and --nodes");
    }
    if (wishes.conf) {
        all.gpus = most_gpus(*wishes.conf);
        all.model = std::nullopt;
    }
    std::vector<GpuDevice> stand_ins;
    if (all.gpus) {
        if (all.shards.value_or(0) > 0 && !all.model) {
            all.model = k_shared_model;
        }
        TRY_ASSIGN(stand_ins, stand_in_gpus(*all.gpus, all.model.value_or(""), places.devices()));
    }
    TRY_ASSIGN(ClusterSpec spec, plan(all, machine, stand_ins));
    spec.policy = ruled;
    if (!nodes.pools.empty()) {
        use_pools(spec, nodes, stand_ins);
    }
    if (wishes.conf) {
        use_conf(spec, *wishes.conf, stand_ins);
    } else if (has_conf) {
        spec.named = former->spec.named;
        spec.nodes = former->spec.nodes;
        spec.conf_lines = former->spec.conf_lines;
        spec.conf_qos = former->spec.conf_qos;
    }
    if (former && former->spec.name != spec.name) {
        return fail(Error::Kind::usage,
                    fmt::format("{0} holds the accounting of cluster '{1}', not of '{2}'; "
                                "leave --name out, choose another --dir, or `gpuq cluster down "
                                "--purge --dir {0}` first",
                                places.dir, former->spec.name, spec.name));
    }
    return spec;
}

std::ptrdiff_t count_living(const State& state)
{
    return std::count_if(state.daemons.begin(), state.daemons.end(),
                         [](const Daemon& daemon) { return is_alive(daemon.process); });
}

/// True if no options are given, or only those of the running cluster.
bool asks_for(const Wishes& wishes, const ClusterSpec& spec, const Places& places)
{
    if (wishes.conf) {
        return spec.conf_lines == wishes.conf->lines;
    }
    if (wishes.policy) {
        return spec.policy && content_of(places.policy_yaml()) == *wishes.policy &&
               wishes.shards.value_or(spec.shards) == spec.shards;
    }
    const Wishes same = merge({}, spec);
    return merge(wishes, spec) == same;
}

Error asks_for_another(const Places& places, const ClusterSpec& spec)
{
    return fail(Error::Kind::usage,
                fmt::format("the cluster in {} is up with {}; `gpuq cluster down` first, then up "
                            "with other options",
                            places.dir, describe(spec)));
}

std::string accounting_note(const State& state)
{
    return fmt::format("up without accounting: {}; `gpuq usage`, policies and the results of old "
                       "runs need it; the next `gpuq cluster up` tries again",
                       state.accounting_failure);
}

/// Removes ended daemons from the list and returns their names.
std::vector<std::string> take_dead(std::vector<Daemon>& daemons)
{
    std::vector<std::string> names;
    std::erase_if(daemons, [&](const Daemon& daemon) {
        const bool dead = !is_alive(daemon.process);
        if (dead) {
            names.push_back(daemon.name);
        }
        return dead;
    });
    return names;
}

/// Restarts daemons that have died in a running cluster, and accounting if it had failed to start.
/// Jobs continue.
Result<UpReport> repair(Start& start)
{
    State& state = start.state;
    UpReport report;
    const std::vector<std::string> dead = take_dead(state.daemons);
    const bool was_recorded = state.spec.accounting;
    const bool had_failed = !state.accounting_failure.empty();
    if (dead.empty() && !had_failed) {
        if (const auto added = add_users(start); !added) {
            report.notes.push_back("accounting does not answer: " + added.error().text);
        }
    } else {
        auto started = start_daemons(start);
        TRY(write_state(start.places, state));
        TRY(started);
    }
    for (const std::string& name : dead) {
        if (is_running(start, name)) {
            report.notes.push_back(fmt::format("{} had stopped and was restarted", name));
        }
    }
    if (!state.accounting_failure.empty()) {
        report.notes.push_back(accounting_note(state));
    } else if (had_failed) {
        report.notes.emplace_back(was_recorded ? "accounting runs again"
                                               : "accounting runs now; it has no record of "
                                                 "jobs that Slurm had forgotten before");
    }
    report.was_up = dead.empty() && had_failed == !state.accounting_failure.empty();
    report.state = state;
    return report;
}

/// Slurm may reject cgroups that have passed our checks.
bool blames_cgroups(const Error& error)
{
    return error.kind == Error::Kind::io && error.text.find("cgroup") != std::string::npos;
}

std::vector<std::string> notes_on(const State& state)
{
    std::vector<std::string> notes;
    if (state.spec.confinement == Confinement::parents) {
        const std::string obstacle = cgroups_here().obstacle;
        notes.push_back(fmt::format("jobs are not confined by cgroups ({}): their memory limits "
                                    "and their choice of GPUs are not enforced",
                                    obstacle.empty() ? "--cgroups on does it" : obstacle));
    }
    if (!state.accounting_failure.empty()) {
        notes.push_back(accounting_note(state));
    }
    return notes;
}

/// Ends processes left over from before a SIGKILL, a crash or a reboot.
Result<void> clean_up_after(const State& former, const Places& places)
{
    Places old = places;
    old.run = former.run;
    TRY(end_everything(old, former));
    return {};
}

/// Keeps the next `up` from repeating options that failed to start.
void forget(Start& start, const State* former)
{
    const std::string name = start.state.spec.name;
    start.state.spec = former ? former->spec : ClusterSpec{};
    start.state.spec.name = name;
    const auto ignored = write_state(start.places, start.state);
}

Result<UpReport> start_anew(Start& start, const Wishes& wishes, const State* former)
{
    TRY_ASSIGN(start.state.spec, decide(start.places, wishes, former));
    TRY(check_room(start.places.dir));
    TRY(keep_policy(start.places, wishes));
    TRY(keep_script(start.places, wishes));
    if (former) {
        TRY(clean_up_after(*former, start.places));
        start.state.ports = former->ports;
    }
    start.state.boot = boot_id();
    auto started = start_or_take_back(start);
    std::vector<std::string> notes;
    if (!started && !wishes.confinement && blames_cgroups(started.error())) {
        notes.push_back("Slurm could not use cgroups: " + cause_in(started.error().text));
        start.state.spec.confinement = Confinement::parents;
        started = start_or_take_back(start);
    }
    if (!started) {
        forget(start, former);
        return std::move(started).error();
    }
    start.state.started_at = std::time(nullptr);
    start.state.up = true;
    if (auto written = write_state(start.places, start.state); !written) {
        auto ended = end_everything(start.places, start.state);
        return std::move(written).error();
    }
    for (std::string& note : notes_on(start.state)) {
        notes.push_back(std::move(note));
    }
    return UpReport{start.state, false, {}, std::move(notes)};
}

/// Leaves the start to systemd, which runs `gpuq cluster up` in the unit with the stored state.
Result<UpReport> start_by_systemd(const Places& places, const Wishes& wishes, const State* former,
                                  std::optional<Lock>& lock)
{
    State state = former ? *former : State{};
    TRY_ASSIGN(state.spec, decide(places, wishes, former));
    TRY(check_room(places.dir));
    TRY(keep_policy(places, wishes));
    TRY(keep_script(places, wishes));
    state.up = false;
    TRY(write_state(places, state));
    lock.reset();
    TRY(start_unit(places));
    TRY_ASSIGN(state, read_state(places));
    UpReport report{state, false, {}, notes_on(state)};
    report.notes.push_back(fmt::format("{} brings it back at boot", k_unit_name));
    return report;
}

} // namespace

Result<UpReport> up(const std::string& dir, const Wishes& wishes)
{
    const auto begin = std::chrono::steady_clock::now();
    TRY(check_programs(Programs::of_cluster));
    TRY(check_addresses());
    Start start;
    TRY_ASSIGN(start.places.dir, open_dir(dir));
    TRY_ASSIGN(Lock taken, Lock::take(start.places));
    std::optional<Lock> lock(std::move(taken));
    auto former = read_state(start.places);
    if (!former && former.error().kind != Error::Kind::missing) {
        return std::move(former).error();
    }
    const HeldSignals held;
    const bool alive =
        former && former->up && former->boot == boot_id() && count_living(*former) > 0;
    if (alive && !asks_for(wishes, former->spec, start.places)) {
        return asks_for_another(start.places, former->spec);
    }
    const State* const last = former ? &*former : nullptr;
    if (alive) {
        start.state = *former;
        start.places.run = former->run;
    }
    auto report = alive ? repair(start)
                  : belongs_to_systemd(start.places)
                      ? start_by_systemd(start.places, wishes, last, lock)
                      : start_anew(start, wishes, last);
    if (!report) {
        if (!last && !fs::exists(start.places.state_file())) {
            std::error_code ignored; // refused: a strange directory stays as it was
            fs::remove(start.places.lock_file(), ignored);
        }
        return report;
    }
    report->took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    return report;
}

Result<DownReport> down(const std::string& dir, Purge purge)
{
    if (!fs::exists(dir)) {
        return DownReport{};
    }
    Places places;
    TRY_ASSIGN(places.dir, open_dir(dir));
    DownReport report;
    const auto before = read_state(places);
    report.was_up = before && before->up;
    if (belongs_to_systemd(places)) {
        TRY(stop_unit()); // runs `gpuq cluster down` in the unit
    }
    const bool was_used = before || before.error().kind != Error::Kind::missing;
    if (!was_used && !fs::exists(places.lock_file())) {
        return report; // not a cluster's directory: creates no lock file in it
    }
    TRY_ASSIGN(const Lock lock, Lock::take(places));
    auto state = read_state(places);
    if (!state) {
        return state.error().kind == Error::Kind::missing ? Result<DownReport>(report)
                                                          : std::move(state).error();
    }
    places.run = state->run;
    const HeldSignals held;
    TRY_ASSIGN(report.jobs_ended, end_everything(places, *state));
    state->up = false;
    state->daemons.clear();
    TRY(write_state(places, *state));
    if (purge == Purge::yes) {
        TRY(purge_dir(places));
        report.purged = true;
    }
    return report;
}

} // namespace gpuq::embedded
