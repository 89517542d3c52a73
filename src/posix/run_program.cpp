// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/host.h"

#include "core/words.h"
#include "io/descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq {
namespace {

constexpr std::size_t k_most_words = 64 << 10;

/// Starts a child with default signal dispositions and an empty signal mask, as a shell would.
class Spawn {
public:
    Spawn()
    {
        ::posix_spawn_file_actions_init(&m_actions);
        ::posix_spawnattr_init(&m_attributes);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        ::posix_spawnattr_setsigmask(&m_attributes, &none);
        ::posix_spawnattr_setsigdefault(&m_attributes, &all);
        ::posix_spawnattr_setflags(&m_attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~Spawn()
    {
        ::posix_spawn_file_actions_destroy(&m_actions);
        ::posix_spawnattr_destroy(&m_attributes);
    }
    Spawn(const Spawn&) = delete;
    Spawn& operator=(const Spawn&) = delete;

    void null(int as)
    {
        ::posix_spawn_file_actions_addopen(&m_actions, as, "/dev/null", O_RDWR, 0);
    }
    void give(int fd, int as) { ::posix_spawn_file_actions_adddup2(&m_actions, fd, as); }

    Result<pid_t> start(const std::vector<std::string>& words)
    {
        const std::vector<char*> arguments = pointers(words);
        pid_t child = -1;
        const int refused = ::posix_spawnp(&child, arguments[0], &m_actions, &m_attributes,
                                           arguments.data(), environ);
        if (refused != 0) {
            return fail(Error::Kind::io,
                        fmt::format("can't start {}: {}", words[0], std::strerror(refused)));
        }
        return child;
    }

private:
    posix_spawn_file_actions_t m_actions{};
    posix_spawnattr_t m_attributes{};
};

int status_of(pid_t child)
{
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace

Result<Host::Ended> PosixHost::run(const std::vector<std::string>& words, Heard heard)
{
    TRY_ASSIGN(Pipe pipe, make_pipe());
    Spawn spawn;
    spawn.null(STDIN_FILENO);
    spawn.give(pipe.write.get(), STDOUT_FILENO);
    if (heard == Heard::both) {
        spawn.give(pipe.write.get(), STDERR_FILENO);
    } else {
        spawn.null(STDERR_FILENO);
    }
    TRY_ASSIGN(const pid_t child, spawn.start(words));
    pipe.write.reset();
    Ended ended;
    std::array<char, 4096> piece{};
    ssize_t size = 0;
    while ((size = ::read(pipe.read.get(), piece.data(), piece.size())) > 0 ||
           (size < 0 && errno == EINTR)) {
        ended.words.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        ended.words.erase(0, ended.words.size() - std::min(ended.words.size(), k_most_words));
    }
    ended.status = status_of(child);
    return ended;
}

Result<void> PosixHost::leave_running(const std::vector<std::string>& words)
{
    const std::vector<char*> arguments = pointers(words);
    const pid_t between = ::fork();
    if (between < 0) {
        return fail(Error::Kind::io,
                    fmt::format("can't start a process: {}", std::strerror(errno)));
    }
    if (between > 0) {
        (void)status_of(between);
        return {};
    }
    ::setsid();
    if (::fork() != 0 || ::chdir("/") != 0) {
        ::_exit(0);
    }
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(null, fd);
    }
    ::close_range(3, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; ++number) {
        std::signal(number, SIG_DFL);
    }
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(1);
}

Result<int> PosixHost::run_here(const std::vector<std::string>& words,
                                const std::vector<std::string>& pager)
{
    if (pager.empty()) {
        TRY_ASSIGN(const pid_t child, Spawn().start(words));
        return status_of(child);
    }
    TRY_ASSIGN(Pipe pipe, make_pipe());
    Spawn writer, reader;
    writer.null(STDIN_FILENO);
    writer.give(pipe.write.get(), STDOUT_FILENO);
    writer.give(pipe.write.get(), STDERR_FILENO);
    reader.give(pipe.read.get(), STDIN_FILENO);
    TRY_ASSIGN(const pid_t reading, reader.start(pager));
    const auto writing = writer.start(words);
    pipe = Pipe{};
    const int status = status_of(reading);
    if (!writing) {
        return writing.error();
    }
    (void)status_of(*writing);
    return status;
}

} // namespace gpuq
