// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/notice.h"

#include "supervisor/process_tree.h"

#include <algorithm>
#include <csignal>
#include <string_view>

namespace gpuq::supervisor {
namespace {

bool handles(const Listener& one, int signal)
{
    return (one.caught >> (signal - 1) & 1) != 0;
}

bool is_srun(const Listener& one)
{
    return one.executable.substr(one.executable.rfind('/') + 1) == "srun";
}

bool is_of_multiprocessing(const Listener& one)
{
    return one.command_line.find("multiprocessing.spawn") != std::string::npos ||
           one.command_line.find("multiprocessing.forkserver") != std::string::npos ||
           one.command_line.find("multiprocessing.resource_tracker") != std::string::npos;
}

class Family {
public:
    Family(const std::vector<Listener>& all, int signal)
        : m_all(all)
        , m_signal(signal)
    {
    }

    bool may_be_told(const Listener& one) const
    {
        if (!handles(one, m_signal) || is_srun(one)) {
            return false;
        }
        const Listener* parent = find(one.parent);
        const bool forked = parent != nullptr && parent->executable == one.executable &&
                            parent->command_line == one.command_line;
        if (m_signal == SIGTERM) {
            return !forked && !is_of_multiprocessing(one);
        }
        return !forked || !handles(*parent, m_signal);
    }

    /// A launcher: below it somebody is told.
    bool has_told_below(const Listener& one) const
    {
        return std::any_of(m_all.begin(), m_all.end(), [&](const Listener& other) {
            return other.pid != one.pid && is_below(other, one.pid) && may_be_told(other);
        });
    }

private:
    const Listener* find(pid_t pid) const
    {
        const auto found = std::find_if(m_all.begin(), m_all.end(),
                                        [&](const Listener& each) { return each.pid == pid; });
        return found == m_all.end() ? nullptr : &*found;
    }

    bool is_below(const Listener& one, pid_t ancestor) const
    {
        std::size_t height = 0;
        for (const Listener* each = &one; each != nullptr && height <= m_all.size(); ++height) {
            if (each->parent == ancestor) {
                return true;
            }
            each = find(each->parent);
        }
        return false;
    }

    const std::vector<Listener>& m_all;
    int m_signal;
};

} // namespace

std::vector<pid_t> to_be_told(const std::vector<Listener>& all, int signal)
{
    const Family family(all, signal);
    std::vector<pid_t> told;
    for (const Listener& one : all) {
        if (family.may_be_told(one) && !family.has_told_below(one)) {
            told.push_back(one.pid);
        }
    }
    return told;
}

std::vector<int> signals_of(Notice notice)
{
    switch (notice) {
    case Notice::automatic:
        return {SIGUSR1, SIGUSR2};
    case Notice::usr1:
        return {SIGUSR1};
    case Notice::usr2:
        return {SIGUSR2};
    case Notice::term:
        return {SIGTERM};
    case Notice::none:
        break;
    }
    return {};
}

std::vector<Listener> listeners(const std::string& variable, const std::vector<pid_t>& spared)
{
    std::vector<pid_t> pids = descendants(spared);
    for (const pid_t pid : started_with(variable)) {
        if (std::find(pids.begin(), pids.end(), pid) == pids.end()) {
            pids.push_back(pid);
        }
    }
    std::vector<Listener> all;
    for (const pid_t pid : pids) {
        const ProcessFacts facts = facts_of(pid);
        all.push_back({pid, facts.parent, facts.caught, facts.executable, facts.command_line});
    }
    return all;
}

} // namespace gpuq::supervisor
