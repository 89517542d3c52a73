// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/step_process.h"

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/// A step of the fake cluster: a local process behind a carrier process that plays the part of srun
/// and slurmstepd. When the carrier is detached with SIGUSR1, the step continues and its output is
/// discarded.
namespace gpuq::fakes {

class Carrier {
public:
    Carrier(std::vector<std::string> argv, int input, int output, int error)
        : m_argv(std::move(argv))
        , m_holder{input, output, error}
    {
    }

    /// Runs until the step has ended. Input needs no copying: the step reads the holder's pipe
    /// directly.
    [[noreturn]] void run()
    {
        ::setsid();
        let_go_of_the_tests_streams();
        // The step dies with the test program, not with the thread or process that started it.
        ::signal(SIGPIPE, SIG_IGN);
        ::signal(SIGUSR1, [](int) { let_go = 1; });
        const pid_t step = start_step();
        sigset_t reported; // delivered only in ppoll: never between checking the flag and waiting
        ::sigemptyset(&reported);
        ::sigaddset(&reported, SIGUSR1);
        ::sigprocmask(SIG_BLOCK, &reported, nullptr);
        while (m_from_step[0] >= 0 || m_from_step[1] >= 0) {
            pass_on();
        }
        int status = 0;
        ::waitpid(step, &status, 0);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }

private:
    /// ctest waits until every process has closed these streams.
    static void let_go_of_the_tests_streams()
    {
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int stream : {0, 1, 2}) {
            ::dup2(nothing, stream);
        }
    }

    pid_t start_step()
    {
        std::array<int, 2> out{};
        std::array<int, 2> err{};
        if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
            ::_exit(125);
        }
        const pid_t step = ::fork();
        if (step == 0) {
            ::dup2(m_holder[0], 0);
            ::dup2(out[1], 1);
            ::dup2(err[1], 2);
            execute();
        }
        ::close(m_holder[0]);
        ::close(out[1]);
        ::close(err[1]);
        m_from_step = {out[0], err[0]};
        return step;
    }

    [[noreturn]] void execute()
    {
        ::signal(SIGPIPE, SIG_DFL);
        ::signal(SIGUSR1, SIG_DFL);
        std::vector<char*> arguments;
        for (std::string& word : m_argv) {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }

    void pass_on()
    {
        std::array<pollfd, 2> waiting{pollfd{m_from_step[0], POLLIN, 0},
                                      pollfd{m_from_step[1], POLLIN, 0}};
        sigset_t none;
        ::sigemptyset(&none);
        const int ready = let_go != 0 && m_holder[1] >= 0
                              ? 0
                              : ::ppoll(waiting.data(), waiting.size(), nullptr, &none);
        if (let_go != 0 && m_holder[1] >= 0) {
            ::close(m_holder[1]);
            ::close(m_holder[2]);
            m_holder[1] = m_holder[2] = -1;
        }
        for (std::size_t i = 0; ready > 0 && i < waiting.size(); ++i) {
            if (waiting[i].revents != 0) {
                copy(m_from_step[i], m_holder[i + 1]);
            }
        }
    }

    static void copy(int& from, int& to)
    {
        std::array<char, 65536> bytes{};
        const ssize_t size = ::read(from, bytes.data(), bytes.size());
        if (size > 0) {
            if (to >= 0 && ::write(to, bytes.data(), static_cast<std::size_t>(size)) < 0) {
                ::close(to);
                to = -1;
            }
        } else if (size == 0) {
            ::close(from);
            from = -1;
            if (to >= 0) {
                ::close(to);
                to = -1;
            }
        }
    }

    static inline volatile std::sig_atomic_t let_go = 0;

    std::vector<std::string> m_argv;
    std::array<int, 3> m_holder;
    std::array<int, 2> m_from_step{-1, -1};
};

/// Starts a program with its arguments in `argv`. The carrier is a child of this process.
inline StepProcess start_local_step(const std::vector<std::string>& argv, bool with_input)
{
    std::array<int, 2> in{-1, -1};
    std::array<int, 2> out{-1, -1};
    std::array<int, 2> err{-1, -1};
    const bool made = ::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0 &&
                      ::pipe2(err.data(), O_CLOEXEC) == 0;
    if (!made) {
        return {};
    }
    const pid_t carrier = ::fork();
    if (carrier == 0) {
        for (const int holders_end : {in[1], out[0], err[0]}) {
            ::close(holders_end);
        }
        Carrier(argv, in[0], out[1], err[1]).run();
    }
    for (const int steps_end : {in[0], out[1], err[1]}) {
        ::close(steps_end);
    }
    if (!with_input) {
        ::close(in[1]);
        in[1] = -1;
    }
    return StepProcess{carrier, 0, in[1], out[0], err[0]};
}

/// Cluster::abandon for a local step.
inline void abandon_local_step(const StepProcess& process)
{
    if (process.pid > 0) {
        ::kill(process.pid, SIGUSR1);
    }
}

} // namespace gpuq::fakes
