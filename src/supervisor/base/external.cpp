// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/external.h"

#include "io/descriptor.h"
#include "io/subprocess.h"
#include "term/sanitise.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_most_output = 2000;
constexpr const char* k_usual_path = "/usr/bin:/bin:/usr/sbin:/sbin";

} // namespace

std::string found_in_path(const std::string& path, const std::string& program)
{
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const std::string directory = path.substr(begin, end - begin);
        const std::string file = directory + "/" + program;
        if (directory.starts_with('/') && ::access(file.c_str(), X_OK) == 0) {
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

std::string one_line(std::string message)
{
    std::replace(message.begin(), message.end(), '\n', ' ');
    message.erase(message.find_last_not_of(' ') + 1);
    return sanitised(message);
}

std::optional<External> External::start(const Plan& plan)
{
    auto pipe = make_pipe();
    if (!pipe || plan.argv.empty()) {
        return std::nullopt;
    }
    const int output = pipe->write.get();
    const auto process = spawn({.argv = plan.argv,
                                .environment = plan.environment,
                                .descriptors = {Subprocess::k_null, output, output},
                                .death_signal = SIGKILL});
    if (!process) {
        return std::nullopt;
    }
    External external;
    external.m_pid = process->pid;
    external.m_until = std::chrono::steady_clock::now() + plan.limit;
    external.m_output = std::move(pipe->read);
    set_nonblocking(external.m_output.get());
    return external;
}

External::~External()
{
    // A moved-from object has no pipe.
    if (m_output && m_pid > 0) {
        kill_and_reap(m_pid);
    }
}

std::optional<External::Ended> External::try_finish()
{
    char piece[1024];
    ssize_t size = 0;
    while (!m_silent && (size = ::read(m_output.get(), piece, sizeof piece)) > 0) {
        m_message.append(piece, static_cast<std::size_t>(size));
        m_message.erase(0, m_message.size() - std::min(m_message.size(), k_most_output));
    }
    m_silent = m_silent || size == 0;
    if (!m_killed && std::chrono::steady_clock::now() >= m_until) {
        ::kill(m_pid, SIGKILL);
        m_killed = true;
    }
    const auto status = exit_code_if_ended(m_pid);
    if (!status) {
        return std::nullopt;
    }
    m_pid = -1;
    return Ended{*status, !m_killed, std::move(m_message)};
}

std::optional<External::Ended> finished(const External::Plan& plan)
{
    auto running = External::start(plan);
    while (running) {
        if (auto ended = running->try_finish()) {
            return ended;
        }
        pollfd wait{running->fd(), POLLIN, 0};
        ::poll(&wait, 1, 10);
        ::poll(nullptr, 0, 2); // its pipe may end before the process does
    }
    return std::nullopt;
}

} // namespace gpuq::supervisor
