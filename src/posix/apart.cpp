// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/descriptor.h"
#include "posix/host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq {
namespace {

using Steady = std::chrono::steady_clock;

/// Separates output that the worker printed to stderr, which cannot contain this byte, from its
/// answer.
constexpr char k_answer_begins = '\x01';
/// A killed process ends within this time unless it is blocked in a file system.
constexpr int k_polls_after_kill = 50;
constexpr int k_poll_milliseconds = 2;

[[noreturn]] void work_and_answer(int fd, const std::function<std::string()>& work)
{
    ::setsid(); // kill it with its children; no terminal to ask for a password
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(fd, STDERR_FILENO);
    std::string text;
    try {
        text = work();
    } catch (const std::exception& exception) {
        (void)write_all(fd, exception.what());
        ::_exit(1);
    }
    ::_exit(write_all(fd, k_answer_begins + text) ? 0 : 1);
}

class Worker {
public:
    explicit Worker(const std::function<std::string()>& work)
    {
        auto pipe = make_pipe();
        if (!pipe) {
            return;
        }
        // A copy of this process, which has a single thread (posix/host.h): `work` may allocate
        // memory and use libslurm.
        m_pid = ::fork();
        if (m_pid == 0) {
            work_and_answer(pipe->write.get(), work);
        }
        if (m_pid > 0) {
            m_reader = std::move(pipe->read);
        }
    }

    /// -1 after the end of the answer.
    int fd() const { return m_reader.get(); }

    void read_some()
    {
        std::array<char, 65536> bytes{};
        const ssize_t size = ::read(m_reader.get(), bytes.data(), bytes.size());
        if (size > 0) {
            m_text.append(bytes.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            m_reader = Descriptor();
        }
    }

    Host::Answer finish()
    {
        const bool is_late = m_reader.get() >= 0;
        const bool is_well = end() && !is_late;
        if (is_late) {
            return {Host::Answer::Kind::late, ""};
        }
        const std::size_t begin = m_text.find(k_answer_begins);
        if (!is_well || begin == std::string::npos) {
            return {Host::Answer::Kind::died,
                    m_pid > 0 ? m_text : "can't start a process: " + m_text};
        }
        return {Host::Answer::Kind::done, m_text.substr(begin + 1)};
    }

private:
    /// True when the worker exited with status 0.
    bool end()
    {
        if (m_pid <= 0) {
            return false;
        }
        int status = 0;
        if (m_reader.get() >= 0) {
            ::kill(-m_pid, SIGKILL); // including its children
            ::kill(m_pid, SIGKILL);  // in case it has not called setsid() yet
        }
        for (int attempt = 0; attempt < k_polls_after_kill; ++attempt) {
            const pid_t ended = ::waitpid(m_pid, &status, WNOHANG);
            if (ended != 0) {
                return ended == m_pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            }
            ::poll(nullptr, 0, k_poll_milliseconds);
        }
        return false;
    }

    pid_t m_pid = -1;
    Descriptor m_reader;
    std::string m_text;
};

/// Waits for output; false when all workers have finished or `end` has passed.
bool wait_for_output(std::vector<Worker>& workers, Steady::time_point end)
{
    std::vector<pollfd> waits;
    for (const Worker& worker : workers) {
        waits.push_back({worker.fd(), POLLIN, 0}); // poll(2) ignores -1
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Steady::now()).count();
    const bool at_work =
        std::any_of(waits.begin(), waits.end(), [](const pollfd& wait) { return wait.fd >= 0; });
    if (!at_work || left <= 0) {
        return false;
    }
    if (::poll(waits.data(), waits.size(), static_cast<int>(left)) > 0) {
        for (std::size_t i = 0; i < workers.size(); ++i) {
            if (waits[i].revents != 0) {
                workers[i].read_some();
            }
        }
    }
    return true;
}

} // namespace

std::vector<Host::Answer> PosixHost::apart(const std::vector<std::function<std::string()>>& work,
                                           std::chrono::milliseconds limit)
{
    const auto end = Steady::now() + limit;
    std::vector<Worker> workers;
    workers.reserve(work.size());
    for (const auto& piece : work) {
        workers.emplace_back(piece);
    }
    while (wait_for_output(workers, end)) {
    }
    std::vector<Answer> answers;
    for (Worker& worker : workers) {
        answers.push_back(worker.finish());
    }
    return answers;
}

} // namespace gpuq
