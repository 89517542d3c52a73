// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/process.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/syscall.h>

namespace gpuq::slurm {
namespace {

using namespace std::chrono_literals;

std::string read_stat(int pid)
{
    const Descriptor file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> bytes{};
    const ssize_t size = file.get() < 0 ? -1 : ::read(file.get(), bytes.data(), bytes.size() - 1);
    return size > 0 ? std::string(bytes.data(), static_cast<std::size_t>(size)) : std::string();
}

} // namespace

std::optional<ProcessFacts> facts_of(int pid)
{
    const std::string stat = read_stat(pid);
    const auto name_end = stat.rfind(')'); // the name may contain any character
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    ProcessFacts facts;
    unsigned long long born = 0;
    // Fields 3 (state), 4 (parent) and 22 (starttime) of proc(5).
    const int found = std::sscanf(stat.c_str() + name_end + 1,
                                  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                                  "%*d %*d %*d %*d %llu",
                                  &facts.state, &facts.parent, &born);
    facts.born = born;
    return found == 3 ? std::optional(facts) : std::nullopt;
}

std::vector<int> children_of(int pid)
{
    std::vector<int> children;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        int candidate = 0;
        const auto [end, error] =
            std::from_chars(name.data(), name.data() + name.size(), candidate);
        if (error != std::errc() || end != name.data() + name.size()) {
            continue;
        }
        if (const auto facts = facts_of(candidate); facts && facts->parent == pid) {
            children.push_back(candidate);
        }
    }
    return children;
}

HeldProcess::HeldProcess(int pid, std::uint64_t born)
    : m_pid(pid)
    , m_pidfd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1)
{
    // Check after opening the descriptor: from then on it can't refer to another process.
    const auto facts = m_pidfd.get() >= 0 ? facts_of(pid) : std::nullopt;
    if (!facts || facts->born != born) {
        m_pidfd.reset();
    }
}

void HeldProcess::signal(int number) const
{
    (void)::syscall(SYS_pidfd_send_signal, m_pidfd.get(), number, nullptr, 0);
}

void HeldProcess::wait_until_stopped() const
{
    const auto give_up = std::chrono::steady_clock::now() + 1s;
    while (std::chrono::steady_clock::now() < give_up) {
        const auto facts = facts_of(m_pid);
        if (!facts || facts->state == 'T' || facts->state == 't' || facts->state == 'Z') {
            return;
        }
        std::this_thread::sleep_for(1ms);
    }
}

} // namespace gpuq::slurm
