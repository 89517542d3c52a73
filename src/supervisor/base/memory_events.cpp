// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/memory_events.h"

#include "supervisor/base/descriptor.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace gpuq::supervisor {
namespace {

namespace fs = std::filesystem;

/// Levels below a job: steps, tasks, and one of Slurm's own.
constexpr int k_deepest = 3;
constexpr std::size_t k_most_cgroups = 4096;

std::optional<std::string> contents(const char* path)
{
    const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file) {
        return std::nullopt;
    }
    std::string text;
    char piece[4096];
    ssize_t size = 0;
    while ((size = ::read(file.get(), piece, sizeof piece)) > 0 && text.size() < (256 << 10)) {
        text.append(piece, static_cast<std::size_t>(size));
    }
    return text;
}

/// Removes the part up to `separator` from `text` and returns it.
std::string_view part_of(std::string_view& text, char separator)
{
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

bool has_part(std::string_view list, std::string_view name)
{
    while (!list.empty()) {
        if (part_of(list, ',') == name) {
            return true;
        }
    }
    return false;
}

/// The path of a process in one hierarchy.
struct Membership {
    std::string path;
    bool hierarchical = false;
};

/// Version 1 if memory is one of its controllers, also on hybrid hosts.
std::optional<Membership> memory_membership(std::string_view proc_self_cgroup)
{
    std::optional<Membership> unified;
    while (!proc_self_cgroup.empty()) {
        // 4:memory:/slurm/uid_0/job_7/step_0, or 0::/system.slice/slurmstepd.scope/job_7/step_0
        std::string_view line = part_of(proc_self_cgroup, '\n');
        const std::string_view number = part_of(line, ':');
        const std::string_view controllers = part_of(line, ':');
        if (has_part(controllers, "memory")) {
            return Membership{std::string(line), false};
        }
        if (number == "0" && controllers.empty()) {
            unified = Membership{std::string(line), true};
        }
    }
    return unified;
}

/// The path up to and including the component `job_NUMBER`.
std::optional<std::string> path_of_job(const std::string& path)
{
    constexpr std::string_view k_job = "/job_";
    const std::size_t begin = path.find(k_job);
    if (begin == std::string::npos) {
        return std::nullopt;
    }
    const std::size_t end =
        std::min(path.find_first_not_of("0123456789", begin + k_job.size()), path.size());
    const bool whole = end > begin + k_job.size() && (end == path.size() || path[end] == '/');
    return whole ? std::optional(path.substr(0, end)) : std::nullopt;
}

/// The mount point of that hierarchy, and the part of it that is mounted.
struct Mount {
    std::string root, point;
};

std::optional<Mount> mount_of(std::string_view mountinfo, bool hierarchical)
{
    while (!mountinfo.empty()) {
        // 36 25 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
        std::string_view line = part_of(mountinfo, '\n');
        std::vector<std::string_view> parts;
        while (!line.empty()) {
            parts.push_back(part_of(line, ' '));
        }
        const auto dash = std::find(parts.begin(), parts.end(), "-");
        if (parts.size() < 5 || parts.end() - dash < 4) {
            continue;
        }
        if (hierarchical ? dash[1] == "cgroup2"
                         : dash[1] == "cgroup" && has_part(dash[3], "memory")) {
            return Mount{std::string(parts[3]), std::string(parts[4])};
        }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> kills_at(const std::string& path)
{
    const auto text = contents(path.c_str());
    return text ? kills_in(*text) : std::nullopt;
}

std::map<std::string, std::uint64_t> kills_below(const std::string& directory)
{
    std::map<std::string, std::uint64_t> kills;
    std::error_code gone; // a step may end meanwhile
    fs::recursive_directory_iterator each(directory, gone);
    const auto take = [&](const std::string& cgroup) {
        if (const auto count = kills_at(cgroup + "/memory.oom_control")) {
            kills[cgroup] = *count;
        }
    };
    take(directory);
    for (; !gone && each != fs::end(each) && kills.size() < k_most_cgroups; each.increment(gone)) {
        std::error_code ignored;
        if (!each->is_directory(ignored) || each->is_symlink(ignored)) {
            continue;
        }
        take(each->path().string());
        if (each.depth() >= k_deepest - 1) {
            each.disable_recursion_pending();
        }
    }
    return kills;
}

std::uint64_t risen(std::uint64_t before, std::uint64_t now)
{
    return now > before ? now - before : 0;
}

} // namespace

std::optional<MemoryCgroup> memory_cgroup(std::string_view proc_self_cgroup,
                                          std::string_view mountinfo)
{
    const auto member = memory_membership(proc_self_cgroup);
    const auto path = member ? path_of_job(member->path) : std::nullopt;
    const auto mount = path ? mount_of(mountinfo, member->hierarchical) : std::nullopt;
    if (!mount) {
        return std::nullopt;
    }
    const std::string_view root = mount->root == "/" ? "" : std::string_view(mount->root);
    if (!path->starts_with(root)) { // a container that shows another part of the tree
        return std::nullopt;
    }
    return MemoryCgroup{mount->point + path->substr(root.size()), member->hierarchical};
}

std::optional<std::uint64_t> kills_in(std::string_view text)
{
    constexpr std::string_view k_name = "oom_kill ";
    while (!text.empty()) {
        const std::string_view line = part_of(text, '\n');
        std::uint64_t kills = 0;
        if (line.starts_with(k_name) &&
            std::from_chars(line.data() + k_name.size(), line.data() + line.size(), kills).ec ==
                std::errc()) {
            return kills;
        }
    }
    return std::nullopt;
}

MemoryCounts memory_counts()
{
    MemoryCounts counts;
    const auto cgroup = contents("/proc/self/cgroup");
    const auto mounts = contents("/proc/self/mountinfo");
    const auto job = cgroup && mounts ? memory_cgroup(*cgroup, *mounts) : std::nullopt;
    if (job && job->hierarchical) {
        if (const auto kills = kills_at(job->directory + "/memory.events")) {
            counts.job = {{job->directory, *kills}};
        }
    } else if (job) {
        auto kills = kills_below(job->directory);
        if (!kills.empty()) {
            counts.job = std::move(kills);
        }
    }
    counts.node = kills_at("/proc/vmstat");
    return counts;
}

MemoryKills MemoryWatch::add(const MemoryCounts& now)
{
    MemoryKills kills;
    if (now.job) {
        auto known = m_last.job.value_or(std::map<std::string, std::uint64_t>{});
        for (const auto& [cgroup, count] : *now.job) {
            kills.ours += risen(known[cgroup], count);
        }
        m_last.job = now.job;
    } else if (!m_last.job && m_last.node && now.node) {
        kills.nearby = risen(*m_last.node, *now.node);
    }
    m_last.node = now.node;
    m_all.ours += kills.ours;
    m_all.nearby += kills.nearby;
    return kills;
}

} // namespace gpuq::supervisor
