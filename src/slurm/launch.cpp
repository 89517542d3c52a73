// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/launch.h"

#include "core/job_variables.h"
#include "core/split_arguments.h"
#include "io/descriptor.h"
#include "io/signals_blocked.h"
#include "log/log.h"
#include "ports/step_process.h"
#include "slurm/cluster.h"
#include "slurm/connection.h"
#include "slurm/job_request.h"
#include "slurm/process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

// A launch involves three processes. This process forks an intermediate child, which forks the new
// process and exits, so that the new process is not a child of this one. The new process moves to
// its own session, takes the step's pipes as standard streams and loads libslurm's configuration
// and plugins; meanwhile this process runs `before`. If that succeeds, this process writes a byte
// to the `permit` pipe: only then does the new process obtain the job. It reports the job, or an
// error, through the `report` pipe and executes srun. The pipe is closed on exec: its end means
// that srun runs.
//
// If this process dies before it gives the permit, the new process exits and no job is requested.
// If it dies later, the step starts without it.
namespace gpuq::slurm {
namespace {

/// This process may have been started without standard streams: 0, 1 and 2 will be replaced later.
Descriptor above_the_standard_ones(int fd)
{
    if (fd > STDERR_FILENO) {
        return Descriptor(fd);
    }
    const Descriptor low(fd);
    return Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Result<Pipe> make_pipe_above_the_standard_ones()
{
    TRY_ASSIGN(Pipe pipe, make_pipe());
    return Pipe{above_the_standard_ones(pipe.read.release()),
                above_the_standard_ones(pipe.write.release())};
}

/// Both ends of a step's streams.
struct Streams {
    Pipe input, output, error;
};

Result<Streams> make_streams(bool with_input)
{
    Streams streams;
    if (with_input) {
        TRY_ASSIGN(streams.input, make_pipe_above_the_standard_ones());
    } else {
        streams.input.read = above_the_standard_ones(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    TRY_ASSIGN(streams.output, make_pipe_above_the_standard_ones());
    TRY_ASSIGN(streams.error, make_pipe_above_the_standard_ones());
    return streams;
}

/// Called before anything is allocated.
Result<std::string> find_srun()
{
    const char* path = std::getenv("PATH");
    std::string_view directories = path == nullptr ? "/usr/bin:/bin" : path;
    while (!directories.empty()) {
        const auto end = std::min(directories.find(':'), directories.size());
        std::string file = fmt::format("{}/srun", directories.substr(0, end));
        if (::access(file.c_str(), X_OK) == 0) {
            return file;
        }
        directories.remove_prefix(std::min(end + 1, directories.size()));
    }
    return fail(Error::Kind::usage, "no srun in PATH: add the directory of Slurm's commands to it");
}

std::vector<std::string> environment_for_srun()
{
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        all.emplace_back(*variable);
    }
    return variables_for_job(all);
}

// The new process's report: a line `job ID PID BORN` if it has a job, and `error KIND TEXT` if it
// can't continue.

std::string as_report(const Error& error)
{
    return fmt::format("error {} {}", static_cast<int>(error.kind), error.text);
}

template <typename Number>
Number take_number(std::string_view& text)
{
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    text.remove_prefix(text.starts_with(' ') || text.starts_with('\n') ? 1 : 0);
    return value;
}

Result<Launched> read_report(std::string_view report)
{
    constexpr std::string_view k_job = "job ";
    constexpr std::string_view k_error = "error ";
    Launched launched;
    if (report.starts_with(k_job)) {
        report.remove_prefix(k_job.size());
        launched.job = JobId{take_number<std::uint32_t>(report)};
        launched.process.pid = take_number<int>(report);
        launched.process.born = take_number<std::uint64_t>(report);
    }
    if (report.starts_with(k_error)) {
        report.remove_prefix(k_error.size());
        const auto kind = static_cast<Error::Kind>(take_number<int>(report));
        return fail(kind, std::string(report));
    }
    if (launched.process.pid <= 0) {
        return fail(Error::Kind::unreachable, "the process that starts the job has vanished");
    }
    return launched;
}

std::string read_all(int fd)
{
    std::string all;
    std::array<char, 4096> bytes{};
    while (true) {
        const ssize_t size = ::read(fd, bytes.data(), bytes.size());
        if (size > 0) {
            all.append(bytes.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            return all;
        }
    }
}

/// The new process, from the fork to the execution of srun.
class Starter {
public:
    /// `permit`: a byte means that the job may be requested, end of file that it may not.
    Starter(Streams& streams, Pipe& permit, int report)
        : m_streams(streams)
        , m_permit(permit)
        , m_report(report)
    {
    }

    [[noreturn]] void run(const std::string& srun, const Launching& what, const Step& step)
    {
        // libslurm loads its plugins before it sends the request: if it exits, nothing is
        // allocated.
        leave_without_handlers([this](const std::string& reason) {
            report_line(as_report(fail(Error::Kind::usage, reason)));
        });
        become_independent();
        load_configuration();
        load_plugins();
        m_permit.write.reset(); // leaves the parent's as the only one
        if (read_all(m_permit.read.get()).empty()) {
            ::_exit(1);
        }
        const Result<JobId> id = what.job();
        if (!id) {
            report_line(as_report(id.error()));
            ::_exit(1);
        }
        const auto facts = facts_of(::getpid());
        report_line(fmt::format("job {} {} {}\n", id->value, ::getpid(), facts ? facts->born : 0));
        become_srun(srun, srun_command(*id, step));
        const int reason = errno;
        what.give_up(*id);
        report_line(as_report(fail(Error::Kind::internal, fmt::format("can't execute {}: {}", srun,
                                                                      std::strerror(reason)))));
        ::_exit(1);
    }

private:
    void become_independent()
    {
        ::setsid();
        for (int number = 1; number < NSIG; ++number) {
            ::signal(number, SIG_DFL);
        }
        ::signal(SIGPIPE, SIG_IGN); // the reader of the report may have died: continue
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
        ::dup2(m_streams.input.read.get(), STDIN_FILENO);
        ::dup2(m_streams.output.write.get(), STDOUT_FILENO);
        ::dup2(m_streams.error.write.get(), STDERR_FILENO);
        (void)!::chdir("/"); // or srun keeps the directory busy, and the step needs it to exist
        close_on_exec_from(STDERR_FILENO + 1);
    }

    static void become_srun(const std::string& srun, const std::vector<std::string>& arguments)
    {
        const std::vector<std::string> variables = environment_for_srun();
        ::signal(SIGPIPE, SIG_DFL);
        // srun's own handler kills the step. From 26.05 on its threads do not block the signal.
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        ::execve(srun.c_str(), pointers(arguments).data(), pointers(variables).data());
    }

    void report_line(std::string_view text) const { (void)write_all(m_report, text); }

    Streams& m_streams;
    Pipe& m_permit;
    int m_report;
};

/// Runs `work` in a grandchild: a copy of this process, which has a single thread. An exec of a
/// program that loads libslurm again would delay the start of the run. Returns the intermediate
/// process, for `has_begun`; -1 and errno if it can't be created.
template <typename Work>
pid_t begin_in_a_grandchild(const Work& work)
{
    const SignalsBlocked blocked;
    const pid_t child = ::fork();
    if (child == 0) {
        if (const pid_t grandchild = ::fork(); grandchild != 0) {
            ::_exit(grandchild > 0 ? 0 : 1);
        }
        work();
    }
    return child;
}

/// Whether the grandchild was created; reaps the intermediate process. Must be called once.
bool has_begun(pid_t child)
{
    int status = 1;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0;
}

} // namespace

std::vector<std::string> srun_command(JobId id, const Step& step)
{
    std::vector<std::string> arguments{
        "srun",
        fmt::format("--jobid={}", id.value),
        "--overlap", // share the job's CPUs, memory and GPUs with its other steps
        fmt::format("--nodes={}", step.nodes),
        fmt::format("--ntasks={}", step.nodes),
        fmt::format("--relative={}", step.first_node),
        "--mpi=none",
        "--propagate=NONE", // the node's limits apply, not those of the login host
        "--quiet",
        step.with_input ? "--input=all" : "--input=none",
    };
    if (has_cpu_binding()) { // or the only task would be bound to one core
        arguments.emplace_back("--cpu-bind=none");
    }
    if (step.nodes > 1) {
        arguments.emplace_back("--ntasks-per-node=1");
    }
    arguments.insert(arguments.end(), step.arguments.begin(), step.arguments.end());
    return arguments;
}

Result<Launched> launch(const Launching& what, const Step& step)
{
    TRY_ASSIGN(const std::string srun, find_srun());
    TRY_ASSIGN(Streams streams, make_streams(step.with_input));
    TRY_ASSIGN(Pipe permit, make_pipe_above_the_standard_ones());
    TRY_ASSIGN(Pipe report, make_pipe_above_the_standard_ones());
    Starter starter(streams, permit, report.write.get());
    log::debug(log::Part::slurm, "start a step: {}", fmt::join(step.arguments, " "));
    const pid_t child = begin_in_a_grandchild([&] { starter.run(srun, what, step); });
    if (child < 0) {
        return fail(Error::Kind::io,
                    fmt::format("can't start a process: {}", std::strerror(errno)));
    }
    report.write.reset();
    const Result<void> done = what.before ? what.before() : Result<void>();
    if (!has_begun(child)) { // not earlier: it ends while `before` runs
        return fail(Error::Kind::io, "can't start a process: there are too many");
    }
    TRY(done); // on failure the new process exits: `permit` is closed
    (void)!::write(permit.write.get(), "", 1);
    permit.write.reset();
    TRY_ASSIGN(Launched launched, read_report(read_all(report.read.get())));
    launched.process.input = streams.input.write.release();
    launched.process.output = streams.output.read.release();
    launched.process.error = streams.error.read.release();
    return launched;
}

void orphan_step_of(const StepProcess& process)
{
    const HeldProcess srun(process.pid, process.born);
    if (!srun) {
        return;
    }
    srun.signal(SIGSTOP);
    srun.wait_until_stopped(); // from now on it creates no more children
    std::vector<HeldProcess> watchers;
    for (const int child : children_of(process.pid)) {
        if (const auto facts = facts_of(child); facts && facts->parent == process.pid) {
            watchers.emplace_back(child, facts->born);
        }
    }
    for (const HeldProcess& watcher : watchers) {
        watcher.signal(SIGSTOP);
        watcher.wait_until_stopped();
    }
    for (const HeldProcess& watcher : watchers) {
        watcher.signal(SIGKILL);
    }
    srun.signal(SIGKILL);
}

} // namespace gpuq::slurm
