// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/teardown.h"

#include "embedded/directory.h"
#include "embedded/machine.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// In the order in which they are ended: each can still report to later ones. Actual names may have
/// a suffix.
constexpr std::string_view k_daemons[] = {"slurmstepd", "slurmd",   "slurmctld", "slurmscriptd",
                                          "slurmdbd",   "mariadbd", "munged"};

bool is_daemon(const std::string& command)
{
    return std::find(std::begin(k_daemons), std::end(k_daemons), command) != std::end(k_daemons);
}

bool has_variable(const ProcessFacts& process, std::string_view start)
{
    return std::any_of(process.environment.begin(), process.environment.end(),
                       [&](const std::string& variable) { return variable.starts_with(start); });
}

bool has_marker(const ProcessFacts& process, const std::string& marker)
{
    return std::find(process.environment.begin(), process.environment.end(), marker) !=
           process.environment.end();
}

/// True when an ancestor of `process` is in `roots`.
bool descends(const ProcessFacts& process, const std::set<int>& roots,
              const std::map<int, int>& parents)
{
    int pid = process.parent;
    for (std::size_t step = 0; step < parents.size() && pid > 1; ++step) {
        if (roots.count(pid) != 0) {
            return true;
        }
        const auto parent = parents.find(pid);
        pid = parent == parents.end() ? 0 : parent->second;
    }
    return false;
}

/// Directories that Slurm made for the nodes: /sys/fs/cgroup/CONTROLLER/slurm_NODE (v1).
std::vector<fs::path> cgroups_of(const ClusterSpec& spec)
{
    std::vector<fs::path> directories;
    if (spec.confinement != Confinement::cgroups) {
        return directories;
    }
    std::error_code failed;
    for (const auto& controller : fs::directory_iterator("/sys/fs/cgroup", failed)) {
        for (int index = 0; index < spec.nodes; ++index) {
            const fs::path directory = controller.path() / ("slurm_" + spec.node(index));
            if (fs::is_directory(directory, failed)) {
                directories.push_back(directory);
            }
        }
    }
    return directories;
}

std::vector<fs::path> directories_below(const fs::path& top)
{
    std::vector<fs::path> directories{top};
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(top, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
        if (entry->is_directory(failed)) {
            directories.push_back(entry->path());
        }
    }
    // Deepest first: a cgroup with children cannot be removed.
    std::sort(directories.rbegin(), directories.rend());
    return directories;
}

std::vector<int> confined_processes(const ClusterSpec& spec)
{
    std::vector<int> pids;
    for (const fs::path& top : cgroups_of(spec)) {
        for (const fs::path& directory : directories_below(top)) {
            std::istringstream file(content_of(directory / "cgroup.procs"));
            for (int pid = 0; file >> pid;) {
                pids.push_back(pid);
            }
        }
    }
    return pids;
}

void remove_cgroups(const ClusterSpec& spec)
{
    for (const fs::path& top : cgroups_of(spec)) {
        for (const fs::path& directory : directories_below(top)) {
            rmdir(directory.c_str());
        }
    }
}

/// This process and its ancestors, since `down` may run inside a job.
std::vector<int> ourselves(const std::vector<ProcessFacts>& all)
{
    std::vector<int> pids{getpid()};
    for (int pid = getppid(); pid > 1;) {
        pids.push_back(pid);
        const auto process = std::find_if(
            all.begin(), all.end(), [&](const ProcessFacts& one) { return one.id.pid == pid; });
        pid = process == all.end() ? 0 : process->parent;
    }
    return pids;
}

ClusterProcesses find_processes(const Places& places, const ClusterSpec& spec)
{
    const std::vector<ProcessFacts> all = all_processes();
    return pick(all, marker_of(places), confined_processes(spec), ourselves(all));
}

std::vector<ProcessId> ids(const std::vector<ProcessFacts>& processes,
                           std::string_view command = {})
{
    std::vector<ProcessId> list;
    for (const ProcessFacts& process : processes) {
        if (command.empty() || process.command == command) {
            list.push_back(process.id);
        }
    }
    return list;
}

std::vector<std::string> lines_of(const Result<Finished>& answer)
{
    std::vector<std::string> lines;
    std::istringstream text(answer && answer->status == 0 ? answer->output : "");
    for (std::string line; std::getline(text, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// Best effort: ending the processes does the rest.
void run_best_effort(const Places& places, std::vector<std::string> arguments)
{
    const auto ignored = run_tool(places, std::move(arguments), seconds(5));
}

std::vector<std::string> jobs(const Places& places, const char* states)
{
    return lines_of(run_tool(places, {"squeue", "-h", "-o", "%A", "-t", states}, seconds(5)));
}

/// Cancels running jobs, so that accounting records how they ended, and keeps pending ones, which
/// continue at the next start. The jobs get a short time to exit.
int cancel_jobs(const Places& places, const State& state)
{
    if (!answers(state.ports.controller)) {
        return 0;
    }
    if (jobs(places, "RUNNING,SUSPENDED,COMPLETING").empty()) {
        return 0;
    }
    const auto running = jobs(places, "RUNNING,SUSPENDED").size();
    for (const std::string& partition :
         lines_of(run_tool(places, {"sinfo", "-h", "-o", "%R"}, seconds(5)))) {
        run_best_effort(places, {"scontrol", "update", "PartitionName=" + partition, "State=DOWN"});
    }
    for (const char* kind : {"RUNNING", "SUSPENDED"}) {
        run_best_effort(places, {"scancel", "-t", kind});
    }
    const auto quiet = [&] { return jobs(places, "RUNNING,SUSPENDED,COMPLETING").empty(); };
    if (!wait_for(quiet, in(seconds(2)))) {
        const ClusterProcesses found = find_processes(places, state.spec);
        end_processes(ids(found.jobs), SIGKILL, in(seconds(1)));
        wait_for(quiet, in(seconds(3)));
    }
    return static_cast<int>(running);
}

} // namespace

ClusterProcesses pick(const std::vector<ProcessFacts>& all, const std::string& marker,
                      const std::vector<int>& confined, const std::vector<int>& spared)
{
    const auto holds = [](const std::vector<int>& list, int pid) {
        return std::find(list.begin(), list.end(), pid) != list.end();
    };
    std::set<int> stepds;
    std::map<int, int> parents;
    for (const ProcessFacts& process : all) {
        parents[process.id.pid] = process.parent;
        if (process.command == "slurmstepd" && has_marker(process, marker)) {
            stepds.insert(process.id.pid);
        }
    }
    ClusterProcesses picked;
    for (const ProcessFacts& process : all) {
        if (holds(spared, process.id.pid)) {
            continue;
        }
        const bool marked = has_marker(process, marker);
        const bool in_job = marked && has_variable(process, "SLURMD_NODENAME=");
        if (in_job || holds(confined, process.id.pid) || descends(process, stepds, parents)) {
            // A slurmstepd may be in the cgroup of its own step.
            auto& list =
                !in_job && marked && is_daemon(process.command) ? picked.daemons : picked.jobs;
            list.push_back(process);
        } else if (marked && is_daemon(process.command)) {
            picked.daemons.push_back(process);
        }
    }
    return picked;
}

Result<int> end_everything(const Places& places, const State& state)
{
    const int cancelled = cancel_jobs(places, state);
    // Twice, to catch processes that were forked during the first scan.
    for (int attempt = 0; attempt < 2; ++attempt) {
        end_processes(ids(find_processes(places, state.spec).jobs), SIGKILL, in(seconds(2)));
    }
    for (const std::string_view command : k_daemons) {
        const auto daemons = [&] {
            return ids(find_processes(places, state.spec).daemons, command);
        };
        const auto limit = seconds(command == "slurmstepd" ? 1 : 10);
        if (!end_processes(daemons(), SIGTERM, in(limit))) {
            end_processes(daemons(), SIGKILL, in(seconds(5)));
        }
    }
    const ClusterProcesses left = find_processes(places, state.spec);
    end_processes(ids(left.jobs), SIGKILL, in(seconds(2)));
    end_processes(ids(left.daemons), SIGKILL, in(seconds(2)));
    remove_cgroups(state.spec);
    remove_run_dir(state.run);
    const ClusterProcesses stubborn = find_processes(places, state.spec);
    for (const auto* list : {&stubborn.jobs, &stubborn.daemons}) {
        if (!list->empty()) {
            return fail(Error::Kind::internal,
                        fmt::format("process {} ({}) does not end; it waits in the kernel, or "
                                    "belongs to another user",
                                    list->front().id.pid, list->front().command));
        }
    }
    return cancelled;
}

} // namespace gpuq::embedded
