// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/start.h"

#include "embedded/cluster.h"
#include "embedded/folder.h"
#include "embedded/machine.h"
#include "embedded/process.h"
#include "embedded/rules.h"
#include "embedded/teardown.h"
#include "embedded/texts.h"
#include "embedded/tools.h"
#include "policy/lua.h"
#include "policy/objects.h"
#include "policy/read.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr auto k_start_limit = seconds(30);
constexpr int k_port_attempts = 3;

/// Those that HeldSignals holds.
sigset_t held_signals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&set, signal);
    }
    return set;
}

bool is_interrupted()
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
}

bool listens(const std::string& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return false;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool fine = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return fine;
}

Error died(const Places& places, const std::string& daemon)
{
    const std::string log = places.words(daemon);
    const std::string words = last_words(log);
    const bool full = words.find("No space left") != std::string::npos;
    return fail(Error::Kind::io,
                fmt::format("{} did not start{}; the end of {}:\n{}", daemon,
                            full ? ", the disk is full: make room or choose another --dir" : "",
                            log, words));
}

/// Waits for `ready`; an error as soon as a daemon of this start has died.
Result<void> wait_until(const Start& start, const std::string& daemon,
                        const std::function<bool()>& ready)
{
    const Daemon* dead = nullptr;
    const auto decided = [&] {
        for (const Daemon& one : start.state.daemons) {
            if (!is_alive(one.process)) {
                dead = &one;
            }
        }
        return dead != nullptr || is_interrupted() || ready();
    };
    const bool in_time = wait_for(decided, in(k_start_limit));
    if (is_interrupted()) {
        return fail(Error::Kind::stopped, "interrupted; nothing has been left running");
    }
    if (dead != nullptr) {
        return died(start.places, dead->name);
    }
    return in_time ? Result<void>() : died(start.places, daemon);
}

bool is_running(const Start& start, const std::string& name)
{
    const auto& daemons = start.state.daemons;
    return std::any_of(daemons.begin(), daemons.end(),
                       [&](const Daemon& daemon) { return daemon.name == name; });
}

/// Starts a daemon, unless it is there from before.
Result<void> launch(Start& start, const std::string& name, const std::string& program_name,
                    std::vector<std::string> options)
{
    if (is_running(start, name)) {
        return {};
    }
    TRY_ASSIGN(std::string path, program(program_name));
    options.insert(options.begin(), std::move(path));
    unlink(start.places.words(name).c_str()); // the end of the last start explains nothing
    std::vector<std::string> environment = environment_of(start.places);
    if (program_name.starts_with("slurm")) {
        TRY_ASSIGN(const std::string library, loopback_library());
        environment.push_back("LD_PRELOAD=" + library);
    }
    TRY_ASSIGN(const ProcessId process, start_daemon({std::move(options), std::move(environment)},
                                                     start.places.words(name)));
    start.state.daemons.push_back({name, process});
    return {};
}

/// A new one for each start: nothing that it has sealed outlives the daemons.
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
                // More than the default of 2: each command of a user waits for one.
                "--num-threads=4"}));
    return wait_until(start, "munged", [&] { return listens(places.munge_socket()); });
}

/// Options that the server and its first filling have in common.
std::vector<std::string> database_options(const Places& places, const ClusterSpec& spec,
                                          const std::string& folder)
{
    std::vector<std::string> options{"--no-defaults", "--datadir=" + folder,
                                     "--tmpdir=" + places.dir, "--innodb-log-file-size=8M"};
    if (geteuid() == 0) {
        options.push_back("--user=" + spec.user);
    }
    return options;
}

/// The first filling, under another name until it is whole.
Result<void> make_database(const Start& start)
{
    const Places& places = start.places;
    if (fs::is_directory(places.database())) {
        return {};
    }
    const std::string unfinished = places.database() + ".new";
    std::error_code failed;
    fs::remove_all(unfinished, failed);
    TRY(make_dir(unfinished, 0700));
    const std::string sql = places.private_dir() + "/database.sql";
    TRY(write_file(sql, database_sql(), 0600));
    TRY_ASSIGN(std::string tool, program("mariadb-install-db"));
    std::vector<std::string> words = database_options(places, start.state.spec, unfinished);
    words.insert(words.begin(), std::move(tool));
    words.insert(words.end(),
                 {"--force", // also where the host's own name does not resolve
                  "--auth-root-authentication-method=socket", "--skip-test-db",
                  "--extra-file=" + sql, "--auth-root-socket-user=" + start.state.spec.user});
    TRY_ASSIGN(const Finished finished,
               run_command({std::move(words), environment_of(places)}, in(seconds(60))));
    TRY(write_file(places.log("mariadb-install-db"), finished.output, 0600));
    if (finished.status != 0) {
        return died(places, "mariadb-install-db");
    }
    fs::rename(unfinished, places.database(), failed);
    return failed ? Result<void>(
                        fail(Error::Kind::io, fmt::format("can not make {}: {}", places.database(),
                                                          failed.message())))
                  : Result<void>();
}

Result<void> start_database(Start& start)
{
    TRY(make_database(start));
    const Places& places = start.places;
    std::vector<std::string> options =
        database_options(places, start.state.spec, places.database());
    options.insert(
        options.end(),
        {"--skip-networking", "--socket=" + places.database_socket(),
         "--pid-file=" + places.private_dir() + "/mariadbd.pid", "--skip-log-bin",
         "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900",
         // A crash of the machine may cost the last second, in exchange for one fsync
         // a second instead of one per record.
         "--innodb-flush-log-at-trx-commit=2",
         // On by default from 11.6 on; slurmdbd ends at the first write conflict under it.
         "--loose-innodb-snapshot-isolation=OFF"});
    TRY(launch(start, "mariadbd", "mariadbd", std::move(options)));
    return wait_until(start, "mariadbd", [&] { return listens(places.database_socket()); });
}

/// Login names of people on this machine: root's cluster is for them.
std::vector<std::string> people(const ClusterSpec& spec)
{
    constexpr uid_t k_first = 1000;
    constexpr uid_t k_last = 59999;
    constexpr std::size_t k_most = 1000;
    std::vector<std::string> names{spec.user};
    if (geteuid() == 0) {
        setpwent();
        for (const passwd* entry = getpwent(); entry != nullptr && names.size() < k_most;
             entry = getpwent()) {
            if (entry->pw_uid >= k_first && entry->pw_uid <= k_last) {
                names.emplace_back(entry->pw_name);
            }
        }
        endpwent();
    }
    return names;
}

/// Whether sacctmgr failed only because all was there already, in the words of Slurm 22.05
/// to 26.05.
bool changed_nothing(const std::string& output)
{
    constexpr std::array<std::string_view, 5> k_phrases = {
        "Nothing new added", "already exists",
        "Already existing", // from 23.11 on, as is:
        "Request didn't affect anything",
        // of people of a policy who are not on this machine
        "Nothing modified"};
    return std::any_of(k_phrases.begin(), k_phrases.end(), [&](std::string_view phrase) {
        return output.find(phrase) != std::string::npos;
    });
}

/// One sacctmgr command; saying that all was there already is a success.
Result<void> account(const Start& start, std::vector<std::string> words)
{
    words.insert(words.begin(), {"sacctmgr", "-i"});
    TRY_ASSIGN(const Finished done, ask(start.places, std::move(words), seconds(20)));
    if (done.status != 0 && !changed_nothing(done.output)) {
        return fail(Error::Kind::internal, fmt::format("sacctmgr: {}", done.output));
    }
    return {};
}

Result<void> start_accounting(Start& start)
{
    const ClusterSpec& spec = start.state.spec;
    TRY(launch(start, "slurmdbd", "slurmdbd", {"-D"}));
    TRY(wait_until(start, "slurmdbd", [&] { return answers(start.state.ports.accounting); }));
    TRY(account(start, {"add", "cluster", spec.name}));
    TRY(account(start,
                {"add", "account", "default", "Description=everybody", "Organization=local"}));
    return add_people(start);
}

Result<void> start_controller(Start& start)
{
    TRY(launch(start, "slurmctld", "slurmctld", {"-D"}));
    TRY(wait_until(start, "slurmctld", [&] { return answers(start.state.ports.controller); }));
    // The port is open a while before the controller knows its nodes.
    return wait_until(start, "slurmctld", [&] {
        const auto answer = ask(start.places, {"sinfo", "-h"}, seconds(5));
        return answer && answer->status == 0;
    });
}

Result<policy::Policy> kept_policy(const Places& places)
{
    TRY_ASSIGN(policy::Reading reading,
               policy::read_policy(content_of(places.policy_yaml()), "policy.yaml"));
    if (has_errors(reading.findings)) {
        return fail(Error::Kind::usage, to_line(reading.findings.front(), places.policy_yaml()));
    }
    return std::move(reading.policy);
}

/// Accounting learns of GPUs from the first controller that has some; so the limits and then the
/// partitions that name them come after it.
Result<void> set_up_policy(const Start& start, const policy::Policy& policy)
{
    for (auto& words : accounting_commands(policy, start.state.spec.name)) {
        TRY(account(start, std::move(words)));
    }
    TRY(write_file(start.places.policy_conf(), policy::slurm_conf_of(policy), 0644));
    TRY_ASSIGN(const Finished done, ask(start.places, {"scontrol", "reconfigure"}, seconds(20)));
    return done.status == 0 ? Result<void>()
                            : fail(Error::Kind::io, "scontrol reconfigure: " + done.output);
}

/// The controller, and the first time under a policy what that makes.
Result<void> start_controller_under_policy(Start& start)
{
    const Places& places = start.places;
    if (!start.state.spec.policy || content_of(places.policy_conf()) != k_no_policy_yet) {
        return start_controller(start);
    }
    TRY_ASSIGN(const policy::Policy policy, kept_policy(places));
    TRY(write_file(places.job_submit_lua(), policy::job_submit_lua(policy), 0644));
    TRY(start_controller(start));
    return set_up_policy(start, policy);
}

/// A `*` means that the node has not reported.
bool has_reported(const NodeStatus& node)
{
    return !node.state.ends_with('*') && !node.state.starts_with("unknown") &&
           !node.state.starts_with("down");
}

Result<void> start_nodes(Start& start)
{
    const int count = start.state.spec.nodes;
    for (int index = 0; index < count; ++index) {
        const std::string node = start.state.spec.node(index);
        TRY(make_dir(start.places.spool() + "/" + node, 0755));
        TRY(launch(start, "slurmd-" + node, "slurmd", {"-D", "-N", node}));
    }
    return wait_until(start, "slurmd-" + start.state.spec.node(0), [&] {
        const std::vector<NodeStatus> nodes = node_states(start.places);
        return std::ssize(nodes) == count && std::all_of(nodes.begin(), nodes.end(), has_reported);
    });
}

/// slurmd gives a health check no SLURM_CONF.
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

Result<void> make_folders(Start& start)
{
    TRY_ASSIGN(start.places.run, make_run_dir());
    start.state.run = start.places.run;
    TRY(make_dir(start.places.private_dir(), 0700));
    TRY(make_dir(start.places.spool(), 0755));
    TRY(make_dir(start.places.log_dir(), 0700));
    return make_dir(start.places.controller_state(), 0700);
}

/// Keeps the ports of the last start where nobody has taken them since.
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
    TRY(make_folders(start));
    TRY(write_state(start.places, start.state)); // who finds this after a crash can clean up
    TRY(write_configuration(start));
    TRY(make_munge_key(start.places));
    return start_daemons(start);
}

/// Somebody may take a port between our look and the daemon's bind.
bool lost_a_port(const Error& error)
{
    return error.text.find("already in use") != std::string::npos;
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

Result<void> add_people(const Start& start)
{
    return account(start,
                   {"add", "user", fmt::format("{}", fmt::join(people(start.state.spec), ",")),
                    "Account=default"});
}

Result<void> start_daemons(Start& start)
{
    TRY(start_munge(start));
    TRY(start_database(start));
    TRY(start_accounting(start));
    TRY(start_controller_under_policy(start));
    return start_nodes(start);
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
