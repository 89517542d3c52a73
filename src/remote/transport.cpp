// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/transport.h"

#include "core/descriptor.h"
#include "core/words.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace gpuq::remote {
namespace {

/// ssh's own words are read by programs here.
std::vector<std::string> environment_in_english()
{
    std::vector<std::string> variables{"LC_ALL=C"};
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (!std::string_view(*entry).starts_with("LC_ALL=")) {
            variables.emplace_back(*entry);
        }
    }
    return variables;
}

} // namespace

Result<Transport::Streams> SshTransport::connect(Attempt attempt, bool alone)
{
    end(0);
    m_command.attempt = attempt;
    m_command.alone = alone;
    TRY_ASSIGN(Pipe to, make_pipe());
    TRY_ASSIGN(Pipe from, make_pipe());
    TRY_ASSIGN(Pipe errors, make_pipe());
    // Fewer turns of everybody's loop while much comes.
    ::fcntl(from.read.get(), F_SETPIPE_SZ, k_largest_pipe);
    std::vector<std::string> words = ssh_words(m_command);
    std::vector<std::string> variables = environment_in_english();
    const auto word_pointers = pointers(words);
    const auto variable_pointers = pointers(variables);
    const pid_t parent = ::getpid();
    m_pid = ::fork();
    if (m_pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) {
            ::_exit(1);
        }
        if (attempt == Attempt::again) {
            ::setsid(); // no terminal to ask on
        }
        // Of our process group, for the terminal's sake; but Ctrl-C is for the verb there.
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGQUIT, SIG_IGN);
        ::dup2(to.read.get(), STDIN_FILENO);
        ::dup2(from.write.get(), STDOUT_FILENO);
        ::dup2(errors.write.get(), STDERR_FILENO);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        for (const int number : {SIGPIPE, SIGXFSZ, SIGTTIN}) {
            ::signal(number, SIG_DFL);
        }
        ::execvpe(word_pointers[0], word_pointers.data(), variable_pointers.data());
        const std::string_view why = "gpuq: ssh can not be started here\n";
        (void)!::write(STDERR_FILENO, why.data(), why.size());
        ::_exit(static_cast<int>(ExitStatus::internal));
    }
    if (m_pid < 0) {
        return fail(Error::Kind::io, fmt::format("fork: {}", std::strerror(errno)));
    }
    return Streams{std::move(from.read), std::move(to.write), std::move(errors.read)};
}

int SshTransport::end(int milliseconds)
{
    if (m_pid < 0) {
        return 0;
    }
    int status = 0;
    constexpr int k_step = 10;
    constexpr int k_gently = 200;
    for (int waited = 0; ::waitpid(m_pid, &status, WNOHANG) == 0; waited += k_step) {
        if (waited >= milliseconds) {
            // Gently first: it may have switched the echo off to ask for a password.
            ::kill(m_pid, waited < milliseconds + k_gently ? SIGTERM : SIGKILL);
        }
        ::poll(nullptr, 0, k_step);
    }
    m_pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Verdict SshTransport::judge(int status, std::string_view errors) const
{
    return judge_ssh(status, errors, m_command);
}

} // namespace gpuq::remote
