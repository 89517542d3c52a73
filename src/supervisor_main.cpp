// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/layout.h"
#include "core/number.h"
#include "nvml/gpus.h"
#include "posix/clock.h"
#include "posix/files.h"
#include "posix/host.h"
#include "posix/leftovers.h"
#include "posix/login_tickets.h"
#include "posix/random.h"
#include "posix/secret_files.h"
#include "posix/store.h"
#include "posix/tree.h"
#include "remote/dialer.h"
#include "remote/gate.h"
#include "runs/added_worker.h"
#include "runs/giving_way.h"
#include "runs/notebook.h"
#include "runs/records/environment.h"
#include "slurm/cluster.h"
#include "snapshots/take.h"
#include "snapshots/view.h"
#include "supervisor/base/command_line.h"
#include "supervisor/base/deadline.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/start_ranks.h"
#include "supervisor/helper_work.h"
#include "supervisor/keeper/keeping.h"
#include "supervisor/member.h"
#include "supervisor/notice.h"
#include "supervisor/notice_elsewhere.h"
#include "supervisor/sampler/sampling.h"
#include "supervisor/sshd/ssh_server.h"
#include "supervisor/stream/relay.h"
#include "supervisor/worker/grower.h"
#include "supervisor/worker/worker.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

// gpuq-supervisor is the executable of all gpuq processes inside a job: `run` (guardian and
// supervisor); `relay`, `guard`, `connect` and `forward`, in steps started by clients; `notice`, in
// a step on the other nodes of the job; `keep` and `sample`, children of the supervisor; `ranks`,
// which becomes srun; `helper`, for a request of the supervisor that may block; `member`, the
// parent of each rank's program; `work`, the program of a run that works on a sweep, and its
// children `add-worker`, which submits another one, and `check-queue`; `gate`, a child of a
// notebook's Jupyter that connects it with clients; and `view`, which becomes a program that gets
// the files of a snapshot.
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

/// The command line of a program, which gets the files of its snapshot if there is one: `path` is
/// its reference. A reference that can't be read is left to the new process, which reports that.
std::vector<std::string> argv_in_view(const std::string& state_dir, const std::string& path,
                                      const Request& request)
{
    std::vector<std::string> argv = program_argv(request);
    const auto store = PosixStore::open(state_dir);
    const auto size = store ? (*store)->size(path) : Result<std::uint64_t>(store.error());
    if (size || size.error().kind != Error::Kind::missing) {
        argv.insert(argv.begin(), {"/proc/self/exe", "view", state_dir, path, "--"});
    }
    return argv;
}

Result<snapshots::Reference> read_reference(Store& store, const std::string& path)
{
    TRY_ASSIGN(const std::string text, store.read(path));
    return snapshots::reference_from_json(text);
}

/// Without a snapshot nothing was put back.
void remove_put_back(const std::string& state_dir, const std::string& path)
{
    const auto store = PosixStore::open(state_dir);
    const auto reference =
        store ? read_reference(**store, path) : Result<snapshots::Reference>(store.error());
    if (reference) {
        if (const auto manifest = snapshots::read(**store, reference->id)) {
            snapshots::remove_put_back(*manifest);
        }
    }
}

/// `view STATE_DIR REFERENCE -- PROGRAM...`
Result<int> become_program_in_view(const std::vector<std::string>& arguments)
{
    constexpr std::size_t k_own = 4;
    if (arguments.size() <= k_own || arguments[k_own - 1] != "--") {
        return fail(Error::Kind::usage, "view: unexpected arguments");
    }
    TRY_ASSIGN(const auto store, PosixStore::open(arguments[1]));
    TRY_ASSIGN(const auto reference, read_reference(*store, arguments[2]));
    const bool is_first = variable("GPUQ_CAUSE").value_or("first") == "first";
    return snapshots::execute(*store, reference, {arguments.begin() + k_own, arguments.end()},
                              is_first ? snapshots::Started::first : snapshots::Started::again);
}

/// The name of the gate to the notebook of this link (remote/gate.h); nullopt: not known yet.
std::optional<std::string> gate_of_notebook(const supervisor::Options& options)
{
    const auto run = supervisor::RunDirectory::open(options.state_dir, options.key);
    const auto directory = run ? run->connect() : Result<Descriptor>(run.error());
    const auto text = directory ? supervisor::read_file(directory->get(), k_notebook_place)
                                : Result<std::string>(directory.error());
    return text ? notebook_gate_in(*text, options.link) : std::nullopt;
}

/// Connects the standard streams with the run's notebook, once there is one. This process ends with
/// its client and with the job.
void forward_to_notebook(const supervisor::Options& options, int output)
{
    const auto joined =
        remote::join_gate([&] { return gate_of_notebook(options); }, STDIN_FILENO, output);
    if (!joined) {
        std::fprintf(stderr, "gpuq: %s\n", joined.error().text.c_str());
    }
}

/// Waits for a Slurm that does not respond only for so long: this process's parent works meanwhile,
/// but it ends it when it leaves.
Patience patience_of_worker()
{
    Patience patience{std::chrono::seconds(30), [](const std::string&) {}, {}};
    patience.pause = [](std::chrono::milliseconds time) {
        std::this_thread::sleep_for(time);
        return true;
    };
    return patience;
}

/// Whether the sweep of this worker gives way to other jobs; `more`: additional workers.
Result<bool> gives_way(Cluster& cluster, int more)
{
    const auto id = whole_number(variable("SLURM_JOB_ID").value_or(""));
    TRY_ASSIGN(const AllJobs all, cluster.all_jobs());
    return must_give_way(all, JobId{static_cast<std::uint32_t>(id.value_or(0))}, more);
}

/// `add-worker STATE_DIR SWEEP BEHIND NUMBER [replaces]`, as a child of a worker
/// (supervisor/worker/grower.h).
constexpr std::size_t k_add_worker_arguments = 5;
Result<int> add_worker(const std::vector<std::string>& arguments)
{
    TRY_ASSIGN(const RunKey sweep, RunKey::parse(arguments[2]));
    TRY_ASSIGN(const auto vacancy, supervisor::parse_vacancy(arguments[3], arguments[4]));
    TRY_ASSIGN(const RunKey self, RunKey::parse(variable("GPUQ_RUN_ID").value_or("")));
    TRY_ASSIGN(const auto store, PosixStore::open(arguments[1]));
    TRY_ASSIGN(const auto cluster, SlurmCluster::open());
    if (arguments.back() != supervisor::k_replaces) {
        TRY_ASSIGN(const bool is_in_the_way, gives_way(*cluster, 1));
        if (is_in_the_way) {
            return supervisor::k_status_give_way;
        }
    }
    SystemClock clock;
    PosixSecretFiles secrets;
    PosixHost host;
    PosixLoginTickets tickets([](const std::string& name) { return variable(name.c_str()); }, host);
    const AddedWorker added{self, RunKey::make(clock.now(), random_bytes()), vacancy.number};
    const auto done = sweeps::fill(*store, sweep, vacancy, added.key, [&]() -> Result<void> {
        TRY(submit_worker(*store, *cluster, clock, secrets, tickets, added, patience_of_worker()));
        return {};
    });
    if (!done && done.error().kind != Error::Kind::busy) {
        return fail(done.error().kind,
                    "this worker can't add another one to the sweep: " + done.error().text);
    }
    return 0;
}

/// `sample`, as a child of the supervisor, which passes descriptors too.
[[noreturn]] void sample(const std::vector<std::string>& arguments)
{
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

/// `work STATE_DIR SWEEP ...`, the program of a run that works on a sweep.
Result<int> work(const std::vector<std::string>& arguments)
{
    TRY_ASSIGN(supervisor::WorkerPlan plan, supervisor::parse_worker(arguments, variable));
    const std::string snapshot = layout::sweep_snapshot(plan.sweep);
    plan.program_argv = [&](const Request& request) {
        return argv_in_view(arguments[1], snapshot, request);
    };
    plan.notify = [node = variable("SLURMD_NODENAME").value_or(host_name())](
                      const std::string& run_id, const std::vector<pid_t>& others, Notice notice) {
        return supervisor::notify_processes(
                   supervisor::listeners("GPUQ_RUN_ID=" + run_id, node, others), notice)
            .size();
    };
    plan.growth = {{"/proc/self/exe", "add-worker", arguments[1], arguments[2]},
                   {"/proc/self/exe", "check-queue"}};
    plan.withdraw = [](const std::vector<JobId>& jobs) {
        // The worker holds its GPUs until this returns.
        (void)withdraw(jobs, std::chrono::seconds(3));
    };
    TRY_ASSIGN(const auto store, PosixStore::open(arguments[1]));
    SystemClock clock;
    PosixFiles files;
    auto status = supervisor::work(*store, clock, files, plan);
    remove_put_back(arguments[1], snapshot);
    return status;
}

/// `check-queue`, as a child of a worker.
Result<int> check_queue()
{
    TRY_ASSIGN(const auto cluster, SlurmCluster::open());
    TRY_ASSIGN(const bool is_in_the_way, gives_way(*cluster, 0));
    return is_in_the_way ? supervisor::k_status_give_way : 0;
}

/// Performs the tasks that only other gpuq-supervisor processes start, with positional arguments.
/// Nothing for any other task.
std::optional<Result<int>> perform_internal(const std::vector<std::string>& arguments)
{
    const std::string task = arguments.empty() ? "" : arguments[0];
    const std::size_t count = arguments.size();
    if (task == "sample" && (count == 5 || count == 6)) {
        sample(arguments);
    }
    if (task == "ranks") {
        return supervisor::start_ranks(arguments, host_name(), rank_places);
    }
    if (task == "work") {
        return work(arguments);
    }
    if (task == "add-worker" && count >= k_add_worker_arguments) {
        return add_worker(arguments);
    }
    if (task == "check-queue" && count == 1) {
        return check_queue();
    }
    if (task == "view") {
        return become_program_in_view(arguments);
    }
    if (task == "gate" && count == 3) {
        return remote::run_gate(arguments[1], arguments[2]);
    }
    if (task == "member") {
        return supervisor::become_member(
            arguments, variable("SLURMD_NODENAME").value_or(host_name()), remove_tree_at);
    }
    return std::nullopt;
}

/// The arguments must outlive the result.
supervisor::Services services_for(const supervisor::Options& options, Clock& clock,
                                  SecretFiles& secrets)
{
    supervisor::Services services{
        clock,
        []() -> Result<std::unique_ptr<Cluster>> {
            TRY_ASSIGN(std::unique_ptr<Cluster> cluster, SlurmCluster::open());
            return cluster;
        },
        [&options](const Request& request) {
            return argv_in_view(options.state_dir, layout::snapshot(options.key), request);
        },
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
    services.remove_put_back = [&options] {
        remove_put_back(options.state_dir, layout::snapshot(options.key));
    };
    services.sweep = sweep_leftovers;
    return services;
}

void forward(const supervisor::CommandLine& line, int output)
{
    if (line.destinations.front() == k_notebook_destination) {
        return forward_to_notebook(line.options, output);
    }
    remote::run_dialer({Descriptor(STDIN_FILENO), Descriptor(output), line.destinations,
                        line.options.node,
                        [&](const std::string& text) { supervisor::report(line.options, text); }});
}

Result<int> perform(const std::vector<std::string>& arguments)
{
    if (auto status = perform_internal(arguments)) {
        return *std::move(status);
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
    supervisor::Services services = services_for(line.options, clock, secrets);
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
        return supervisor::serve_child([&](int output) { forward(line, output); });
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
