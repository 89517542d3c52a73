// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/external.h"

#include "core/descriptor.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_most_words = 2000;

std::vector<char*> pointers(const std::vector<std::string>& texts)
{
    std::vector<char*> all;
    for (const std::string& text : texts) {
        all.push_back(const_cast<char*>(text.c_str()));
    }
    all.push_back(nullptr);
    return all;
}

[[noreturn]] void become(char* const* argv, char* const* environment, int said)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 1; number < NSIG; ++number) {
        ::signal(number, SIG_DFL);
    }
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::dup2(said, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    close_from(STDERR_FILENO + 1);
    ::execve(argv[0], argv, environment);
    ::_exit(127);
}

} // namespace

std::optional<External> External::start(const Plan& plan)
{
    auto pipe = make_pipe();
    if (!pipe || plan.argv.empty()) {
        return std::nullopt;
    }
    const std::vector<char*> argv = pointers(plan.argv);
    const std::vector<char*> environment = pointers(plan.environment);
    External external;
    external.m_pid = ::fork();
    if (external.m_pid < 0) {
        return std::nullopt;
    }
    if (external.m_pid == 0) {
        become(argv.data(), environment.data(), pipe->write.get());
    }
    external.m_until = std::chrono::steady_clock::now() + plan.limit;
    external.m_said = std::move(pipe->read);
    set_nonblocking(external.m_said.get());
    return external;
}

External::~External()
{
    // A moved-from object has no pipe.
    if (m_said && m_pid > 0) {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
}

std::optional<External::Ended> External::look()
{
    char piece[1024];
    ssize_t size = 0;
    while (!m_silent && (size = ::read(m_said.get(), piece, sizeof piece)) > 0) {
        m_words.append(piece, static_cast<std::size_t>(size));
        m_words.erase(0, m_words.size() - std::min(m_words.size(), k_most_words));
    }
    m_silent = m_silent || size == 0;
    if (!m_killed && std::chrono::steady_clock::now() >= m_until) {
        ::kill(m_pid, SIGKILL);
        m_killed = true;
    }
    int status = 0;
    if (::waitpid(m_pid, &status, WNOHANG) != m_pid) {
        return std::nullopt;
    }
    m_pid = -1;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return Ended{code, !m_killed, std::move(m_words)};
}

} // namespace gpuq::supervisor
