// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/subprocess.h"

#include "core/split_arguments.h"
#include "io/signals_blocked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

// posix_spawn(3) offers neither a death signal nor a controlling terminal, limits or a report that
// can be awaited later. vfork(2) would stop this process for as long as the disk of the program
// hangs.
namespace gpuq {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int k_not_found = 127;
constexpr int k_not_executable = 126;
/// While a process that has closed its output is awaited until a limit.
constexpr int k_longest_pause = 20;

/// The data of the child, allocated before the fork.
struct Prepared {
    const Subprocess& plan;
    const char* program;
    std::vector<char*> argv;
    std::vector<char*> environment; ///< empty: inherited
    std::vector<int> sources;       ///< copy of plan.descriptors that the child changes
    int report;
    pid_t parent;
};

// The functions below run in the child: only async-signal-safe calls.

[[noreturn]] void give_up(const Prepared& prepared, SpawnFailure::Step step)
{
    const SpawnFailure failure{step, errno};
    [[maybe_unused]] const ssize_t written = ::write(prepared.report, &failure, sizeof failure);
    ::_exit(failure.error == ENOENT ? k_not_found : k_not_executable);
}

/// False if no descriptor is left.
bool arrange_descriptors(Prepared& prepared)
{
    const int count = static_cast<int>(prepared.sources.size());
    const auto above = [count](int fd) {
        return fd < count ? ::fcntl(fd, F_DUPFD_CLOEXEC, count) : fd;
    };
    prepared.report = above(prepared.report);
    // Above the targets no dup2 overwrites a source.
    for (int fd = 0; fd < count; ++fd) {
        int& source = prepared.sources[static_cast<std::size_t>(fd)];
        if (source != Subprocess::k_null && source != fd && (source = above(source)) < 0) {
            return false;
        }
    }
    for (int fd = 0; fd < count; ++fd) {
        const int source = prepared.sources[static_cast<std::size_t>(fd)];
        if (source == fd) {
            ::fcntl(fd, F_SETFD, 0);
        } else if (source != Subprocess::k_null && ::dup2(source, fd) < 0) {
            return false;
        }
    }
    for (int fd = 0; fd < count; ++fd) {
        if (prepared.sources[static_cast<std::size_t>(fd)] == Subprocess::k_null) {
            ::close(fd); // so that the next one needs no further number
            const int null = ::open("/dev/null", O_RDWR);
            if (null < 0 || (null != fd && ::dup2(null, fd) < 0)) {
                return false;
            }
        }
    }
    close_on_exec_from(count);
    return prepared.report >= 0;
}

void reset_signals(const std::vector<int>& ignored)
{
    for (int number = 1; number < NSIG; ++number) {
        const bool is_ignored = std::find(ignored.begin(), ignored.end(), number) != ignored.end();
        ::signal(number, is_ignored ? SIG_IGN : SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void apply_limits(const std::vector<std::pair<int, rlim_t>>& limits)
{
    for (const auto& [resource, wanted] : limits) {
        rlimit limit{};
        if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0) {
            limit.rlim_cur = std::min(wanted, limit.rlim_max);
            ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
        }
    }
}

/// execvp passes files that the kernel does not recognise to a shell, which would treat a program
/// for another architecture as a script.
bool is_elf(const char* path)
{
    const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    std::array<char, 4> magic{};
    const bool read = file >= 0 && ::read(file, magic.data(), magic.size()) == 4;
    if (file >= 0) {
        ::close(file);
    }
    return read && magic == std::array<char, 4>{'\x7f', 'E', 'L', 'F'};
}

void execute(Prepared& prepared)
{
    char* const* const argv = prepared.argv.data();
    char** const environment = prepared.plan.environment ? prepared.environment.data() : ::environ;
    if (prepared.plan.search == Subprocess::Search::its_path) {
        ::environ = environment;
    }
    if (std::strchr(prepared.program, '/') != nullptr && is_elf(prepared.program)) {
        ::execve(prepared.program, argv, environment);
    } else {
        ::execvpe(prepared.program, argv, environment);
    }
}

[[noreturn]] void become(Prepared& prepared)
{
    const Subprocess& plan = prepared.plan;
    if (plan.group == Subprocess::Group::session) {
        ::setsid();
    } else if (plan.group == Subprocess::Group::own) {
        ::setpgid(0, 0);
    }
    if (plan.death_signal != 0) {
        ::prctl(PR_SET_PDEATHSIG, plan.death_signal);
        if (::getppid() != prepared.parent) {
            ::_exit(k_not_executable); // the parent died before prctl()
        }
    }
    if (plan.terminal >= 0) {
        ::ioctl(plan.terminal, TIOCSCTTY, 0);
    }
    if (!arrange_descriptors(prepared)) {
        give_up(prepared, SpawnFailure::Step::execute);
    }
    if (!plan.work_dir.empty() && ::chdir(plan.work_dir.c_str()) != 0) {
        give_up(prepared, SpawnFailure::Step::change_directory);
    }
    if (plan.file_mask) {
        ::umask(*plan.file_mask);
    }
    reset_signals(plan.ignored_signals);
    apply_limits(plan.limits);
    execute(prepared);
    give_up(prepared, SpawnFailure::Step::execute);
}

// The functions below run in the parent.

Error no_process()
{
    return fail(Error::Kind::io,
                fmt::format("can't create a process: {}", std::generic_category().message(errno)));
}

Prepared prepared_for(const Subprocess& plan, int report)
{
    return {plan,
            plan.executable.empty() ? plan.argv[0].c_str() : plan.executable.c_str(),
            pointers(plan.argv),
            plan.environment ? pointers(*plan.environment) : std::vector<char*>{},
            plan.descriptors,
            report,
            ::getpid()};
}

/// One captured stream of a child.
struct Stream {
    Descriptor from;
    std::string& text;

    void read_some(std::size_t most)
    {
        std::array<char, 16384> bytes{};
        const ssize_t size = ::read(from.get(), bytes.data(), bytes.size());
        if (size > 0) {
            text.append(bytes.data(), static_cast<std::size_t>(size));
            text.erase(0, text.size() - std::min(text.size(), most));
        } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
            from.reset();
        }
    }
};

/// Milliseconds for poll(2); -1: for ever.
int left_until(const std::optional<Clock::time_point>& end)
{
    return end ? static_cast<int>(std::clamp<std::int64_t>(
                     std::chrono::ceil<milliseconds>(*end - Clock::now()).count(), 0, 3'600'000))
               : -1;
}

enum class Outcome { ended, enough, late };

/// Reads until all streams have ended.
Outcome collect(std::array<Stream, 2>& streams, const Finished& finished, const Capture& capture,
                const std::optional<Clock::time_point>& end)
{
    while (streams[0].from || streams[1].from) {
        std::array<pollfd, 2> waits{pollfd{streams[0].from.get(), POLLIN, 0},
                                    pollfd{streams[1].from.get(), POLLIN, 0}};
        const int left = left_until(end);
        if (left == 0) {
            return Outcome::late;
        }
        if (::poll(waits.data(), waits.size(), left) <= 0) {
            continue;
        }
        for (std::size_t i = 0; i < waits.size(); ++i) {
            if (waits[i].revents != 0) {
                streams[i].read_some(capture.most);
            }
        }
        if (capture.enough && capture.enough(finished.out, finished.err)) {
            return Outcome::enough;
        }
    }
    return Outcome::ended;
}

int wait_status_of(pid_t pid)
{
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

std::optional<int> wait_status_if_ended(pid_t pid)
{
    int status = 0;
    return ::waitpid(pid, &status, WNOHANG) == pid ? std::optional(status) : std::nullopt;
}

/// The wait status; nullopt at the end of the time.
std::optional<int> wait_until(pid_t pid, const std::optional<Clock::time_point>& end)
{
    if (!end) {
        return wait_status_of(pid);
    }
    for (int pause = 1;; pause = std::min(2 * pause, k_longest_pause)) {
        if (const auto status = wait_status_if_ended(pid)) {
            return status;
        }
        if (left_until(end) == 0) {
            return std::nullopt;
        }
        ::poll(nullptr, 0, pause);
    }
}

/// The process between init and one that is left unattended. Runs after a fork, perhaps of a
/// process with threads: only async-signal-safe calls.
[[noreturn]] void watch(Prepared& prepared, milliseconds limit)
{
    ::setsid(); // no signal of the terminal may end it before the process
    const pid_t child = ::fork();
    if (child == 0) {
        become(prepared);
    }
    close_from(0); // as long as it held pipes and locks of the first process, they would seem used
    if (child > 0 && !wait_until(child, Clock::now() + limit)) {
        ::kill(-child, SIGKILL);
    }
    ::_exit(0);
}

} // namespace

Result<Spawned> spawn(const Subprocess& plan)
{
    TRY_ASSIGN(Pipe report, make_pipe());
    Prepared prepared = prepared_for(plan, report.write.get());
    Spawned process;
    {
        const SignalsBlocked blocked;
        process.pid = ::fork();
        if (process.pid == 0) {
            become(prepared);
        }
    }
    if (process.pid < 0) {
        return no_process();
    }
    process.report = std::move(report.read);
    return process;
}

Result<void> spawn_unattended(Subprocess plan, std::chrono::milliseconds limit)
{
    plan.group = Subprocess::Group::session;
    TRY_ASSIGN(const Pipe report, make_pipe()); // the process writes to it in vain
    Prepared prepared = prepared_for(plan, report.write.get());
    pid_t between = -1;
    {
        const SignalsBlocked blocked;
        between = ::fork();
        if (between == 0) {
            // Ends at once, so that its child belongs to init.
            const pid_t watcher = ::fork();
            if (watcher == 0) {
                watch(prepared, limit);
            }
            ::_exit(watcher < 0 ? 1 : 0);
        }
    }
    if (between < 0 || wait_for(between) != 0) {
        return no_process();
    }
    return {};
}

std::optional<SpawnFailure> failure_of(Spawned& process)
{
    SpawnFailure failure;
    ssize_t size = 0;
    while ((size = ::read(process.report.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
    }
    process.report.reset();
    return size == sizeof failure ? std::optional(failure) : std::nullopt;
}

int exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int wait_for(pid_t pid)
{
    return exit_code(wait_status_of(pid));
}

std::optional<int> exit_code_if_ended(pid_t pid)
{
    const auto status = wait_status_if_ended(pid);
    return status ? std::optional(exit_code(*status)) : std::nullopt;
}

std::optional<int> end_in(pid_t pid, std::chrono::milliseconds patience)
{
    constexpr auto k_after_kill = std::chrono::seconds(1);
    const auto signal_all = [pid](int number) {
        if (::kill(-pid, number) != 0) { // it is in this process's group
            ::kill(pid, number);
        }
    };
    const auto ended_by = [pid](Clock::time_point end) {
        auto status = exit_code_if_ended(pid);
        while (!status && Clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            status = exit_code_if_ended(pid);
        }
        return status;
    };
    signal_all(SIGTERM);
    auto status = ended_by(Clock::now() + patience);
    if (!status) {
        signal_all(SIGKILL);
        status = ended_by(Clock::now() + k_after_kill);
    }
    return status;
}

void kill_and_reap(pid_t pid)
{
    ::kill(-pid, SIGKILL); // no such group if it is in this process's
    ::kill(pid, SIGKILL);
    (void)wait_for(pid);
}

Result<Finished> run(Subprocess plan, const Capture& capture)
{
    using Streams = Capture::Streams;
    const auto end = capture.limit ? std::optional(Clock::now() + *capture.limit) : std::nullopt;
    Pipe out, err;
    if (capture.streams != Streams::none) {
        TRY_ASSIGN(out, make_pipe());
        plan.descriptors[STDOUT_FILENO] = out.write.get();
    }
    if (capture.streams == Streams::apart) {
        TRY_ASSIGN(err, make_pipe());
        plan.descriptors[STDERR_FILENO] = err.write.get();
    } else if (capture.streams == Streams::together) {
        plan.descriptors[STDERR_FILENO] = out.write.get();
    }
    TRY_ASSIGN(Spawned process, spawn(plan));
    out.write.reset();
    err.write.reset();
    Finished finished;
    std::array<Stream, 2> streams{Stream{std::move(out.read), finished.out},
                                  Stream{std::move(err.read), finished.err}};
    const Outcome outcome = collect(streams, finished, capture, end);
    const auto status = outcome == Outcome::ended ? wait_until(process.pid, end) : std::nullopt;
    if (!status) {
        finished.in_time = outcome == Outcome::enough;
        kill_and_reap(process.pid);
        finished.signal = SIGKILL;
        finished.status = exit_code(finished.signal);
        return finished;
    }
    finished.status = exit_code(*status);
    finished.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
    if (const auto failure = failure_of(process)) {
        finished.error = failure->error;
    }
    return finished;
}

Result<Descriptor> file_in_memory(const std::string& content)
{
    Descriptor file(::memfd_create("gpuq", MFD_CLOEXEC));
    if (!file || !write_all(file.get(), content) || ::lseek(file.get(), 0, SEEK_SET) != 0) {
        return fail(Error::Kind::io, fmt::format("can't make a file in memory: {}",
                                                 std::generic_category().message(errno)));
    }
    return file;
}

} // namespace gpuq
