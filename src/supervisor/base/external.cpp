// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/external.h"

#include "core/words.h"
#include "io/descriptor.h"
#include "term/sanitise.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_most_words = 2000;
constexpr const char* k_usual_path = "/usr/bin:/bin:/usr/sbin:/sbin";

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

std::string found_in_path(const std::string& path, const std::string& program)
{
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const std::string folder = path.substr(begin, end - begin);
        const std::string file = folder + "/" + program;
        if (folder.starts_with('/') && ::access(file.c_str(), X_OK) == 0) {
            return file;
        }
        begin = end + 1;
    }
    return "";
}

std::string kinit_of_node()
{
    const char* const path = std::getenv("PATH");
    return found_in_path(std::string(path == nullptr ? "" : path) + ":" + k_usual_path, "kinit");
}

std::vector<std::string> in_english(const std::string& cache)
{
    constexpr std::string_view k_replaced[] = {"LC_", "LANG", "KRB5CCNAME=", "KRB5_TRACE="};
    std::vector<std::string> texts;
    for (char** each = ::environ; each && *each; ++each) {
        const std::string_view text = *each;
        if (std::none_of(std::begin(k_replaced), std::end(k_replaced),
                         [&](std::string_view name) { return text.starts_with(name); })) {
            texts.emplace_back(text);
        }
    }
    texts.emplace_back("LC_ALL=C");
    texts.push_back("KRB5CCNAME=" + cache);
    return texts;
}

std::string one_line(std::string words)
{
    std::replace(words.begin(), words.end(), '\n', ' ');
    words.erase(words.find_last_not_of(' ') + 1);
    return sanitised(words);
}

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

std::optional<External::Ended> finished(const External::Plan& plan)
{
    auto running = External::start(plan);
    while (running) {
        if (auto ended = running->look()) {
            return ended;
        }
        pollfd wait{running->fd(), POLLIN, 0};
        ::poll(&wait, 1, 10);
        ::poll(nullptr, 0, 2); // its pipe may end before the process does
    }
    return std::nullopt;
}

} // namespace gpuq::supervisor
