// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/helper.h"

#include "io/subprocess.h"
#include "log/log.h"
#include "ports/cluster.h"
#include "runs/queues/queues.h"
#include "supervisor/base/job_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_longest_pause = 30s;
/// A helper that is silent for this long is considered hung.
constexpr auto k_helper_patience = 60s;
/// A killed helper that hangs in the kernel with a disk is left to the process that reaps all
/// children.
constexpr auto k_dying = 200ms;

void be_quiet_and_small(int answer)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    heed_no_job_signals();
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(answer, k_helper_answer);
    close_from(k_helper_answer + 1);
    // libslurm logs to stderr, which may be the program's.
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(null, fd);
    }
    ::close(null);
}

/// For a preempted job, Slurm moves the end time but does not change the time limit.
bool has_grace(const Job& job)
{
    // Time limits are whole minutes, end times seconds.
    return job.state == JobState::running && job.started_at && job.ends_at && job.walltime &&
           *job.ends_at + 1min < *job.started_at + *job.walltime;
}

/// Whether a job in these comma-separated partitions may be preempted with a grace period.
std::optional<bool> may_get_grace(Cluster& cluster, const std::string& queues)
{
    const auto partitions = cluster.partitions();
    if (!partitions) {
        return std::nullopt;
    }
    const auto gives = [&](const Partition& queue) {
        return queue.grace.count() > 0 && names_queue(queues, queue.name);
    };
    return std::any_of(partitions->begin(), partitions->end(), gives);
}

} // namespace

Helper::Helper(pid_t pid, Descriptor answer)
    : m_pid(pid)
    , m_answer(std::move(answer))
{
    set_nonblocking(m_answer.get());
}

std::optional<Helper> Helper::fork(const std::function<std::string()>& work)
{
    auto pipe = make_pipe();
    const pid_t pid = pipe ? ::fork() : -1;
    if (pid == 0) {
        be_quiet_and_small(pipe->write.get());
        log::after_fork("helper");
        ::_exit(write_all(k_helper_answer, work()) ? 0 : 1);
    }
    return pid < 0 ? std::nullopt : std::optional(Helper(pid, std::move(pipe->read)));
}

std::optional<Helper> Helper::execute(const Options& options, const HelperWork& work)
{
    auto pipe = make_pipe();
    const auto input = file_in_memory(encoded(HelperRequest{work, options.job}));
    if (!pipe || !input) {
        return std::nullopt;
    }
    static_assert(k_helper_answer == 3);
    const auto process = spawn(
        {.argv = {"gpuq-supervisor", "helper", options.state_dir, options.key.text(),
                  std::to_string(options.link.value)},
         .executable = "/proc/self/exe",
         .descriptors = {input->get(), Subprocess::k_null, Subprocess::k_null, pipe->write.get()},
         .death_signal = SIGKILL,
         .ignored_signals = job_signals()}); // until it catches them
    return process ? std::optional(Helper(process->pid, std::move(pipe->read))) : std::nullopt;
}

bool Helper::read_more()
{
    char piece[4096];
    ssize_t size = 0;
    while ((size = ::read(m_answer.get(), piece, sizeof piece)) > 0) {
        m_output.append(piece, static_cast<std::size_t>(size));
    }
    return size == 0;
}

std::string Helper::finish()
{
    read_more();
    m_answer.reset();
    ::kill(m_pid, SIGKILL);
    const auto until = std::chrono::steady_clock::now() + k_dying;
    while (::waitpid(m_pid, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < until) {
        ::poll(nullptr, 0, 1);
    }
    return std::move(m_output);
}

std::optional<JobNews> query_job(Services& services, JobId job, const std::string& queues)
{
    auto cluster = services.cluster();
    const auto found = cluster ? (*cluster)->job(job) : Result<Job>(cluster.error());
    if (!found) {
        return std::nullopt;
    }
    // While its processes are ending, only the outcome shows the reason.
    return JobNews{found->outcome.value_or(found->state), found->ends_at, found->walltime,
                   has_grace(*found),
                   queues.empty() ? std::nullopt : may_get_grace(**cluster, queues)};
}

std::string complete_job(Services& services, JobId job, int status)
{
    auto cluster = services.cluster();
    return cluster && (*cluster)->complete(job, status) ? "done" : "";
}

StartCompletion completion_by_fork(Services& services, JobId job, int status)
{
    return [&services, job, status] {
        return Helper::fork([&] { return complete_job(services, job, status); });
    };
}

StartCompletion completion_by_exec(const Options& options, int status)
{
    return [&options, status] {
        return Helper::execute(options, {HelperWork::Kind::complete, encoded(status)});
    };
}

bool complete_once(const StartCompletion& start, std::chrono::milliseconds patience)
{
    auto helper = start();
    if (!helper) {
        return false;
    }
    pollfd wait{helper->answer(), POLLIN, 0};
    while (::poll(&wait, 1, static_cast<int>(patience.count())) < 0 && errno == EINTR) {
    }
    return helper->finish() == "done";
}

void complete_for_ever(const StartCompletion& start)
{
    for (auto pause = 1s; !complete_once(start, k_helper_patience);
         pause = std::min<std::chrono::seconds>(pause * 2, k_longest_pause)) {
        std::this_thread::sleep_for(pause);
    }
}

} // namespace gpuq::supervisor
