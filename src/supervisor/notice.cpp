// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/notice.h"

#include "supervisor/base/process_tree.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <string_view>
#include <utility>

namespace gpuq::supervisor {
namespace {

/// These forward signals to the processes they started, or end them.
constexpr std::string_view k_launchers[] = {"srun",
                                            "mpirun",
                                            "mpiexec",
                                            "mpiexec.hydra",
                                            "orterun",
                                            "prterun",
                                            "orted",
                                            "prted",
                                            "hydra_pmi_proxy",
                                            "timeout",
                                            "torchrun",
                                            "torch.distributed.run",
                                            "torch.distributed.launch",
                                            "torch.distributed.elastic",
                                            "accelerate",
                                            "accelerate.commands.launch",
                                            "deepspeed",
                                            "deepspeed.launcher.launch",
                                            "horovodrun",
                                            "conda",
                                            "mamba"};

/// Found in the command lines of children of multiprocessing and similar libraries.
constexpr std::string_view k_of_multiprocessing[] = {
    "multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_tracker",
    "loky.backend"};

/// Signals that a runtime, not the program, handles.
struct OfRuntime {
    std::string_view executable;
    int signal;
};
constexpr OfRuntime k_of_runtimes[] = {
    {"node", SIGUSR1},                      // opens the debugger
    {"java", SIGUSR2},                      // suspends its threads
    {"julia", SIGUSR1}, {"julia", SIGUSR2}, // profiler; suspends its threads
    {"R", SIGUSR1},     {"R", SIGUSR2},     // quits
};

bool catches(const Listener& one, int signal)
{
    return (one.caught >> (signal - 1) & 1) != 0;
}

std::string_view name_in(std::string_view path)
{
    return path.substr(path.rfind('/') + 1);
}

/// Programs do not use these signals: a process that catches them catches all signals.
bool catches_all(const Listener& one)
{
    return catches(one, SIGSYS) && catches(one, SIGXFSZ) && catches(one, SIGVTALRM);
}

bool handles(const Listener& one, int signal)
{
    const bool of_its_runtime =
        std::any_of(std::begin(k_of_runtimes), std::end(k_of_runtimes), [&](const OfRuntime& each) {
            return each.signal == signal && each.executable == name_in(one.executable);
        });
    return catches(one, signal) && !catches_all(one) && !of_its_runtime;
}

/// The script or module executed by an interpreter, or a program's first argument.
std::string_view script_of(const Listener& one)
{
    std::string_view rest = one.command_line;
    bool is_value = true; // the program's own name comes first
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\0'), rest.size() - 1);
        const std::string_view word = rest.substr(0, end);
        rest.remove_prefix(end + 1);
        if (!std::exchange(is_value, word == "-W" || word == "-X") && word.substr(0, 1) != "-") {
            return name_in(word);
        }
    }
    return {};
}

bool is_launcher(const Listener& one)
{
    return std::any_of(std::begin(k_launchers), std::end(k_launchers), [&](std::string_view name) {
        return name == name_in(one.executable) || name == script_of(one);
    });
}

bool is_of_multiprocessing(const Listener& one)
{
    return std::any_of(
        std::begin(k_of_multiprocessing), std::end(k_of_multiprocessing),
        [&](std::string_view name) { return one.command_line.find(name) != std::string::npos; });
}

bool is_same_program(const Listener& one, const Listener& other)
{
    return one.executable == other.executable && !script_of(one).empty() &&
           script_of(one) == script_of(other);
}

class Family {
public:
    Family(const std::vector<Listener>& all, int signal)
        : m_all(all)
        , m_signal(signal)
    {
    }

    bool may_be_notified(const Listener& one) const
    {
        if (!handles(one, m_signal) || is_launcher(one)) {
            return false;
        }
        return !is_worker(one) || (m_signal != SIGTERM && !is_handled_above(one));
    }

    /// True for a launcher: a process below it is notified.
    bool has_notified_below(const Listener& one) const
    {
        return std::any_of(m_all.begin(), m_all.end(), [&](const Listener& other) {
            return other.pid != one.pid && is_below(other, one.pid) &&
                   !is_same_program(one, other) && may_be_notified(other);
        });
    }

private:
    const Listener* find(pid_t pid) const
    {
        const auto found = std::find_if(m_all.begin(), m_all.end(),
                                        [&](const Listener& each) { return each.pid == pid; });
        return found == m_all.end() ? nullptr : &*found;
    }

    /// True if it executes its parent's code.
    bool is_worker(const Listener& one) const
    {
        const Listener* parent = find(one.parent);
        const bool forked = parent != nullptr && parent->executable == one.executable &&
                            (one.image.empty() ? parent->command_line == one.command_line
                                               : parent->image == one.image);
        return forked || is_of_multiprocessing(one);
    }

    bool is_handled_above(const Listener& worker) const
    {
        const Listener* each = &worker;
        for (std::size_t height = 0; is_worker(*each) && height <= m_all.size(); ++height) {
            each = find(each->parent);
            if (each == nullptr || handles(*each, m_signal)) {
                return each != nullptr;
            }
        }
        return false;
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

std::vector<pid_t> processes_to_notify(const std::vector<Listener>& all, int signal)
{
    const Family family(all, signal);
    std::vector<pid_t> notified;
    for (const Listener& one : all) {
        if (family.may_be_notified(one) && !family.has_notified_below(one)) {
            notified.push_back(one.pid);
        }
    }
    return notified;
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

std::vector<Listener> listeners(const std::string& variable, const std::string& node,
                                const std::vector<pid_t>& spared)
{
    std::vector<pid_t> pids = descendants(spared);
    for (const pid_t pid : started_with(variable)) {
        const bool is_new = std::find(pids.begin(), pids.end(), pid) == pids.end();
        if (is_new && variable_of(pid, "SLURMD_NODENAME").value_or(node) == node) {
            pids.push_back(pid);
        }
    }
    std::vector<Listener> all;
    for (const pid_t pid : pids) {
        const ProcessFacts facts = facts_of(pid);
        all.push_back(
            {pid, facts.parent, facts.caught, facts.executable, facts.command_line, facts.image});
    }
    return all;
}

std::vector<pid_t> notify_processes(const std::vector<Listener>& all, Notice notice)
{
    for (const int signal : signals_of(notice)) {
        std::vector<pid_t> notified = processes_to_notify(all, signal);
        const auto gone = [&](pid_t pid) {
            // It may have executed another program in the meantime.
            return !catches(pid, signal) || ::kill(pid, signal) != 0;
        };
        notified.erase(std::remove_if(notified.begin(), notified.end(), gone), notified.end());
        if (!notified.empty()) {
            return notified;
        }
    }
    return {};
}

} // namespace gpuq::supervisor
