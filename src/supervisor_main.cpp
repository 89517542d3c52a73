// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/number.h"
#include "nvml/gpus.h"
#include "posix/clock.h"
#include "posix/leftovers.h"
#include "posix/secret_files.h"
#include "posix/store.h"
#include "posix/tree.h"
#include "remote/dialer.h"
#include "runs/environment.h"
#include "slurm/cluster.h"
#include "supervisor/base/command_line.h"
#include "supervisor/base/deadline.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/start_ranks.h"
#include "supervisor/helper_work.h"
#include "supervisor/keeper/keeping.h"
#include "supervisor/member.h"
#include "supervisor/notice_elsewhere.h"
#include "supervisor/sampler/sampling.h"
#include "supervisor/sshd/ssh_server.h"
#include "supervisor/stream/relay.h"
#include "supervisor/worker/worker.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <unistd.h>

// gpuq-supervisor is the executable of all gpuq processes inside a job: `run` (guardian and
// supervisor); `relay`, `guard`, `connect` and `forward`, in steps started by clients; `notice`, in
// a step on the other nodes of the job; `keep` and `sample`, children of the supervisor; `ranks`,
// which becomes srun; `helper`, for a request of the supervisor that may block; `member`, the
// parent of each rank's program; and `work`, the program of a run that works on a sweep.
namespace {

using namespace gpuq;

std::optional<std::string> variable(const char* name)
{
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
}

std::string host_name()
{
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    return name;
}

std::chrono::seconds kill_wait()
{
    const auto path = slurm_configuration({});
    std::stringstream text;
    if (path) {
        text << std::ifstream(*path).rdbuf();
    }
    return supervisor::kill_wait_in(text.str());
}

supervisor::RankPlaces rank_places(const std::string& node)
{
    supervisor::RankPlaces places;
    if (const auto cluster = SlurmCluster::open()) {
        places.binds_cpus = (*cluster)->binds_cpus();
        if (!node.empty()) {
            const auto address = (*cluster)->address_of_node(node);
            places.address = address ? std::optional(*address) : std::nullopt;
        }
    }
    return places;
}

/// The name of a process in the log of its link.
const char* process_name(supervisor::Task task)
{
    switch (task) {
    case supervisor::Task::relay:
        return "relay";
    case supervisor::Task::guard:
        return "guard";
    case supervisor::Task::connect:
        return "sshd";
    case supervisor::Task::forward:
        return "forward";
    case supervisor::Task::notice:
        return "notice";
    case supervisor::Task::keep:
        return "keeper";
    case supervisor::Task::helper:
        return "helper";
    case supervisor::Task::run:
        break;
    }
    return "guardian";
}

Result<int> perform(const std::vector<std::string>& arguments)
{
    // Started by another gpuq-supervisor process, with descriptors passed in addition to the
    // arguments.
    if ((arguments.size() == 5 || arguments.size() == 6) && arguments[0] == "sample") {
        sweep_leftovers();
        supervisor::start_log(fmt::format("/proc/self/fd/{}", supervisor::k_sample_directory),
                              "sampler");
        const auto asked_for = whole_number(arguments[3]);
        const auto root = whole_number(arguments[4]);
        const auto cpus = whole_number(variable("SLURM_CPUS_ON_NODE").value_or(""));
        supervisor::sample(
            nvml::gpus, supervisor::held_gpus(variable, arguments[2], asked_for.value_or(0)),
            arguments[1], static_cast<std::uint32_t>(cpus.value_or(0)),
            static_cast<pid_t>(root.value_or(1)), /*with_activities=*/arguments.size() == 6);
    }
    if (!arguments.empty() && arguments[0] == "ranks") {
        return supervisor::start_ranks(arguments, host_name(), rank_places);
    }
    if (!arguments.empty() && arguments[0] == "work") {
        TRY_ASSIGN(supervisor::WorkerPlan plan, supervisor::parse_worker(arguments, variable));
        plan.program_argv = program_argv;
        TRY_ASSIGN(const auto store, PosixStore::open(arguments[1]));
        SystemClock clock;
        return supervisor::work(*store, clock, plan);
    }
    if (!arguments.empty() && arguments[0] == "member") {
        return supervisor::become_member(
            arguments, variable("SLURMD_NODENAME").value_or(host_name()), remove_tree_at);
    }
    TRY_ASSIGN(supervisor::CommandLine line,
               supervisor::parse_command_line(arguments, variable, host_name()));
    line.options.sampler = "/proc/self/exe";
    const bool is_helper = line.task == supervisor::Task::helper;
    if (!is_helper) { // a helper that only asks Slurm must not wait for the disk
        line.options.names = supervisor::node_names(line.options.state_dir);
    }
    SystemClock clock;
    PosixSecretFiles secrets;
    supervisor::Services services{
        clock,
        []() -> Result<std::unique_ptr<Cluster>> {
            TRY_ASSIGN(std::unique_ptr<Cluster> cluster, SlurmCluster::open());
            return cluster;
        },
        program_argv,
        kill_wait,
        [](const std::string& state_dir) -> Result<std::unique_ptr<Store>> {
            TRY_ASSIGN(std::unique_ptr<Store> store, PosixStore::open(state_dir));
            return store;
        },
        [](JobId job, const std::string& comment, supervisor::JobEnd end) -> Result<void> {
            TRY_ASSIGN(const auto cluster, SlurmCluster::open());
            return end == supervisor::JobEnd::over ? cluster->note_in_accounting(job, comment)
                                                   : cluster->note(job, comment);
        },
        &secrets,
        remove_tree_at};
    services.sweep = sweep_leftovers;
    supervisor::start_log(line.options, process_name(line.task));
    if (line.task != supervisor::Task::run && !is_helper) { // for a run the guardian does it
        sweep_leftovers();
    }
    switch (line.task) {
    case supervisor::Task::relay:
        return supervisor::relay(line.options);
    case supervisor::Task::guard:
        return supervisor::guard(services, line.options);
    case supervisor::Task::connect:
        return supervisor::serve_ssh(line.options);
    case supervisor::Task::forward:
        return supervisor::serve_child([&](int output) {
            remote::run_dialer(
                {Descriptor(STDIN_FILENO), Descriptor(output), line.destinations, line.options.node,
                 [&](const std::string& text) { supervisor::report(line.options, text); }});
        });
    case supervisor::Task::notice:
        return supervisor::notify_this_node(line.options, line.notice);
    case supervisor::Task::keep:
        supervisor::keep_tickets(secrets, clock, line.options);
    case supervisor::Task::helper:
        return supervisor::help(services, line.options);
    case supervisor::Task::run:
        break;
    }
    return supervisor::supervise(services, line.options);
}

} // namespace

int main(int argc, char** argv)
{
    try {
        const auto status = perform({argv + 1, argv + argc});
        if (!status) {
            std::fprintf(stderr, "gpuq-supervisor: %s\n", status.error().text.c_str());
        }
        return status ? *status : static_cast<int>(exit_status_of(status.error().kind));
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "gpuq-supervisor: %s\n", problem.what());
        return static_cast<int>(ExitStatus::internal);
    }
}
