// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/bounded.h"

#include "io/descriptor.h"
#include "slurm/connection.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void answer(int fd, const std::function<std::string()>& work)
{
    leave_without_handlers([](const std::string&) {});
    ::signal(SIGPIPE, SIG_IGN);
    const std::string text = work();
    // A blocking write to a pipe returns only when everything is written.
    ::_exit(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

/// Everything up to the end of the stream; nullopt if that is not reached in time.
std::optional<std::string> read_until(int fd, Clock::time_point end)
{
    std::string text;
    std::array<char, 4096> bytes{};
    while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd waiting{fd, POLLIN, 0};
        const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left)) : 0;
        if (ready == 0) {
            return std::nullopt;
        }
        const ssize_t size = ready > 0 ? ::read(fd, bytes.data(), bytes.size()) : -1;
        if (size == 0) {
            return text;
        }
        if (size > 0) {
            text.append(bytes.data(), static_cast<std::size_t>(size));
        } else if (errno != EINTR) {
            return std::nullopt;
        }
    }
}

} // namespace

std::optional<std::string> in_a_child(const std::function<std::string()>& work,
                                      std::chrono::milliseconds limit)
{
    auto pipe = make_pipe();
    if (!pipe) {
        return std::nullopt;
    }
    // A copy of this process, which has a single thread, except in `gpuq top`: there no thread but
    // the calling one uses libslurm, and glibc keeps its allocator usable in a fork.
    const pid_t child = ::fork();
    if (child == 0) {
        answer(pipe->write.get(), work);
    }
    pipe->write.reset();
    auto text = child > 0 ? read_until(pipe->read.get(), Clock::now() + limit) : std::nullopt;
    if (child > 0) {
        ::kill(child, SIGKILL);
        while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    return text;
}

} // namespace gpuq::slurm
