// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/start.h"

#include "embedded/accounting.h"
#include "embedded/cluster.h"
#include "embedded/directory.h"
#include "embedded/machine.h"
#include "embedded/process.h"
#include "embedded/rules.h"
#include "embedded/teardown.h"
#include "embedded/texts.h"
#include "embedded/tools.h"
#include "policy/calendar.h"
#include "policy/lua.h"
#include "policy/objects.h"
#include "policy/read.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

/// The order of a start: munged, then accounting (optional without a policy), slurmctld, the
/// slurmds. State lists the running daemons, so that a repeated start only launches the others.
namespace gpuq::embedded {
namespace {

using std::chrono::seconds;

constexpr int k_port_attempts = 3;

/// The signals blocked by HeldSignals.
sigset_t held_signals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&set, signal);
    }
    return set;
}

/// A new key for each start: old credentials are worthless once the daemons have ended.
Result<void> make_munge_key(const Places& places)
{
    std::string key(256, '\0');
    if (getentropy(key.data(), key.size()) != 0) {
        return fail(Error::Kind::io, fmt::format("no random bytes: {}", std::strerror(errno)));
    }
    return write_file(places.munge_key(), key, 0600);
}

Result<void> start_munge(Start& start)
{
    const Places& places = start.places;
    TRY(launch(start, "munged", "munged",
               {"--foreground", "--key-file=" + places.munge_key(),
                "--socket=" + places.munge_socket(),
                "--pid-file=" + places.private_dir() + "/munged.pid",
                "--seed-file=" + places.private_dir() + "/munged.seed",
                // More than the default of 2: each user command occupies one.
                "--num-threads=4"}));
    return wait_until(start, "munged", [&] { return listens(places.munge_socket()); });
}

Result<void> start_controller(Start& start)
{
    // A controller killed before it first saved its state leaves a cluster name but no state files,
    // and then refuses to start without -i.
    const bool never_saved =
        !std::filesystem::exists(start.places.controller_state() + "/assoc_usage");
    TRY(launch(start, "slurmctld", "slurmctld",
               never_saved ? std::vector<std::string>{"-D", "-i"}
                           : std::vector<std::string>{"-D"}));
    TRY(wait_until(start, "slurmctld", [&] { return answers(start.state.ports.controller); }));
    // The port is open before the controller knows its nodes.
    return wait_until(start, "slurmctld", [&] {
        const auto answer = run_tool(start.places, {"sinfo", "-h"}, seconds(5));
        return answer && answer->status == 0;
    });
}

/// Another process can take a port between the check and the daemon's bind.
bool lost_a_port(const Error& error)
{
    return error.text.find("already in use") != std::string::npos;
}

Result<policy::Policy> kept_policy(const Places& places)
{
    TRY_ASSIGN(policy::Reading reading,
               policy::read_policy(content_of(places.policy_yaml()), "policy.yaml"));
    if (has_errors(reading.findings)) {
        return fail(Error::Kind::usage, to_line(reading.findings.front(), places.policy_yaml()));
    }
    return policy_at(std::move(reading.policy),
                     policy::to_local(std::chrono::time_point_cast<Time::duration>(
                         std::chrono::system_clock::now())));
}

/// Makes the controller and the nodes reread their configuration.
Result<void> reconfigure(const Start& start)
{
    TRY_ASSIGN(const Finished done,
               run_tool(start.places, {"scontrol", "reconfigure"}, seconds(20)));
    return done.status == 0 ? Result<void>()
                            : fail(Error::Kind::io, "scontrol reconfigure: " + done.output);
}

/// Accounting learns about GPUs from the first controller that has some, so the limits, and then
/// the partitions that use them, are created after it has started.
Result<void> set_up_policy(const Start& start, const policy::Policy& policy)
{
    for (auto& arguments : accounting_commands(policy, start.state.spec.name)) {
        TRY(account(start, std::move(arguments)));
    }
    TRY(write_file(start.places.policy_conf(), policy::slurm_conf_of(policy), 0644));
    return reconfigure(start);
}

/// Starts the controller; at the first start under a policy, also generates the policy's objects.
Result<void> start_controller_under_policy(Start& start)
{
    const Places& places = start.places;
    for (const std::string& qos : start.state.spec.conf_qos) {
        TRY(account(start, {"add", "qos", qos})); // slurmctld exits if a partition has another
    }
    if (!start.state.spec.policy || content_of(places.policy_conf()) != k_no_policy_yet) {
        return start_controller(start);
    }
    TRY_ASSIGN(const policy::Policy policy, kept_policy(places));
    TRY(write_file(places.job_submit_lua(), policy::job_submit_lua(policy), 0644));
    TRY(start_controller(start));
    return set_up_policy(start, policy);
}

/// A trailing `*` marks a node that does not respond.
bool has_reported(const NodeStatus& node)
{
    return !node.state.ends_with('*') && !node.state.starts_with("unknown") &&
           !node.state.starts_with("down");
}

/// sinfo does not print the nodes of a site that are in no partition: these have started if their
/// daemons accept connections.
bool has_hidden_nodes(const Start& start, const std::vector<NodeStatus>& nodes)
{
    const auto& ports = start.state.ports.nodes;
    return !start.state.spec.conf_lines.empty() && !nodes.empty() &&
           std::all_of(ports.begin(), ports.end(), answers);
}

Result<void> launch_nodes(Start& start)
{
    const int count = start.state.spec.nodes;
    for (int index = 0; index < count; ++index) {
        const std::string node = start.state.spec.node(index);
        TRY(make_dir(start.places.spool() + "/" + node, 0755));
        TRY(launch(start, "slurmd-" + node, "slurmd", {"-D", "-N", node}));
    }
    return wait_until(start, "slurmd-" + start.state.spec.node(0), [&] {
        const std::vector<NodeStatus> nodes = node_states(start.places);
        const bool complete = std::ssize(nodes) == count || has_hidden_nodes(start, nodes);
        return complete && std::all_of(nodes.begin(), nodes.end(), has_reported);
    });
}

/// Removes each slurmd that has exited from the state; false if there is none.
bool forget_ended_nodes(State& state)
{
    return std::erase_if(state.daemons, [](const Daemon& daemon) {
               return daemon.name.starts_with("slurmd-") && !is_alive(daemon.process);
           }) > 0;
}

/// Restarts a slurmd that exits while it starts: those of 24.11 and later may, when a policy's
/// reconfiguration reaches them at that moment. On a busy machine that happens to one node after
/// the other.
Result<void> start_nodes(Start& start)
{
    const int attempts = 3 + start.state.spec.nodes;
    auto started = launch_nodes(start);
    for (int attempt = 1; !started && attempt < attempts; ++attempt) {
        if (!forget_ended_nodes(start.state)) {
            break;
        }
        started = launch_nodes(start);
    }
    return started;
}

/// slurmd does not pass SLURM_CONF to a health check.
Result<void> write_node_probe(const Places& places)
{
    TRY_ASSIGN(const std::string program, node_probe());
    return write_file(places.node_probe(),
                      fmt::format("#!/bin/sh\nSLURM_CONF='{}'\nexport SLURM_CONF\nexec '{}'\n",
                                  places.slurm_conf(), program),
                      0755);
}

Result<void> write_configuration(const Start& start)
{
    const auto& [places, state] = start;
    if (state.spec.policy) {
        TRY(write_node_probe(places));
    }
    const auto clients =
        own_name_is_loopback() ? ClientsListen::on_loopback : ClientsListen::anywhere;
    TRY(write_file(places.slurm_conf(), slurm_conf(state.spec, state.ports, places, clients),
                   0644));
    TRY(write_file(places.gres_conf(), gres_conf(state.spec), 0644));
    TRY(write_file(places.cgroup_conf(), cgroup_conf(state.spec), 0644));
    return write_file(places.slurmdbd_conf(), slurmdbd_conf(state.spec, state.ports, places), 0600);
}

/// Adds slurmdbd, which is running, to slurm.conf, and the cluster to slurmdbd. Ends a controller
/// that was started without it.
Result<void> take_up_accounting(Start& start)
{
    State& state = start.state;
    const bool was_without = !std::exchange(state.spec.accounting, true);
    if (was_without) {
        TRY(write_configuration(start));
    }
    auto added = add_accounts(start);
    if (was_without && added) {
        end_daemon(start, "slurmctld");
    } else if (was_without) {
        state.spec.accounting = false;
        TRY(write_configuration(start));
    }
    if (added && !is_running(start, "slurmctld")) {
        // Without slurmdbd, slurmctld of 24.11 and later makes up an id for the cluster, keeps it
        // in this file, and does not start with the one that slurmdbd has.
        (void)::unlink((start.places.controller_state() + "/clustername").c_str());
    }
    return added;
}

/// Starts accounting, or records why the cluster runs without it.
Result<void> start_accounting_or_do_without(Start& start)
{
    State& state = start.state;
    auto started = start_accounting(start);
    started = started ? take_up_accounting(start) : started;
    if (started) {
        state.accounting_failure.clear();
        return {};
    }
    const Error& error = started.error();
    const bool has_controller = is_running(start, "slurmctld");
    if (error.kind == Error::Kind::stopped || (lost_a_port(error) && !has_controller)) {
        return started;
    }
    end_accounting(start);
    state.accounting_failure = error.text;
    if (has_controller) { // it is configured with slurmdbd and keeps the records until slurmdbd is
                          // back
        return {};
    }
    if (!state.spec.conf_qos.empty()) {
        return fail(error.kind, fmt::format("partitions of slurm.conf have a QOS, which needs "
                                            "accounting; it does not start: {}",
                                            error.text));
    }
    if (state.spec.policy) {
        return fail(
            error.kind,
            fmt::format("a policy can't be enforced without accounting, which does not start: {}; "
                        "fix it, or choose another --dir for a cluster without --policy",
                        error.text));
    }
    state.spec.accounting = false;
    return write_configuration(start);
}

Result<void> make_directories(Start& start)
{
    TRY_ASSIGN(start.places.run, make_run_dir());
    start.state.run = start.places.run;
    TRY(make_dir(start.places.private_dir(), 0700));
    TRY(make_dir(start.places.spool(), 0755));
    TRY(make_dir(start.places.log_dir(), 0700));
    return make_dir(start.places.controller_state(), 0700);
}

/// Keeps the ports of the last start if they are still free.
Result<void> choose_ports(State& state)
{
    Ports& ports = state.ports;
    std::vector<int> old{ports.controller, ports.accounting};
    old.insert(old.end(), ports.nodes.begin(), ports.nodes.end());
    const auto count = static_cast<std::size_t>(state.spec.nodes) + 2;
    const bool kept = old.size() == count && std::all_of(old.begin(), old.end(), [](int port) {
                          return port > 0 && is_free(port);
                      });
    if (!kept) {
        TRY_ASSIGN(old, free_ports(static_cast<int>(count)));
    }
    ports = {old[0], old[1], {old.begin() + 2, old.end()}};
    return {};
}

Result<void> start_all(Start& start)
{
    TRY(choose_ports(start.state));
    TRY(make_directories(start));
    TRY(write_state(start.places, start.state)); // allows a cleanup after a crash
    TRY(write_configuration(start));
    TRY(make_munge_key(start.places));
    return start_daemons(start);
}

} // namespace

HeldSignals::HeldSignals()
{
    const sigset_t set = held_signals();
    sigprocmask(SIG_BLOCK, &set, &m_former);
}

HeldSignals::~HeldSignals()
{
    sigprocmask(SIG_SETMASK, &m_former, nullptr);
}

Result<void> start_daemons(Start& start)
{
    const bool was_without = !start.state.spec.accounting;
    TRY(start_munge(start));
    TRY(start_accounting_or_do_without(start));
    TRY(start_controller_under_policy(start));
    TRY(start_nodes(start));
    return was_without && start.state.spec.accounting ? reconfigure(start) : Result<void>();
}

Result<void> start_or_take_back(Start& start)
{
    for (int attempt = 1;; ++attempt) {
        auto started = start_all(start);
        if (started) {
            return started;
        }
        auto ended = end_everything(start.places, start.state);
        start.state.daemons.clear();
        start.state.ports = {};
        if (!lost_a_port(started.error()) || attempt == k_port_attempts) {
            return started;
        }
    }
}

} // namespace gpuq::embedded
