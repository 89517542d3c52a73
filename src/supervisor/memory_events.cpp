// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/memory_events.h"

#include "supervisor/descriptor.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

std::optional<std::string> contents(const char* path)
{
    const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file) {
        return std::nullopt;
    }
    std::string text;
    char piece[4096];
    ssize_t size = 0;
    while ((size = ::read(file.get(), piece, sizeof piece)) > 0 && text.size() < (64 << 10)) {
        text.append(piece, static_cast<std::size_t>(size));
    }
    return text;
}

/// Cuts the first line off `text`.
std::string_view line_of(std::string_view& text)
{
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

bool names_memory(std::string_view controllers)
{
    while (!controllers.empty()) {
        const std::size_t end = std::min(controllers.find(','), controllers.size());
        if (controllers.substr(0, end) == "memory") {
            return true;
        }
        controllers.remove_prefix(std::min(end + 1, controllers.size()));
    }
    return false;
}

std::optional<std::uint64_t> kills_at(const std::string& path)
{
    const auto text = contents(path.c_str());
    return text ? kills_in(*text) : std::nullopt;
}

bool rose(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after)
{
    return before && after && *after > *before;
}

} // namespace

std::optional<std::string> counter_file(std::string_view proc_self_cgroup)
{
    std::optional<std::string> unified;
    while (!proc_self_cgroup.empty()) {
        // 4:memory:/slurm/job_7, or 0::/system.slice/slurmstepd.scope/job_7
        const std::string_view line = line_of(proc_self_cgroup);
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) {
            continue;
        }
        const std::string path(line.substr(second + 1));
        if (names_memory(line.substr(first + 1, second - first - 1))) {
            return "/sys/fs/cgroup/memory" + path + "/memory.oom_control";
        }
        if (line.starts_with("0::")) {
            unified = "/sys/fs/cgroup" + path + "/memory.events";
        }
    }
    return unified;
}

std::optional<std::uint64_t> kills_in(std::string_view text)
{
    constexpr std::string_view k_name = "oom_kill ";
    while (!text.empty()) {
        const std::string_view line = line_of(text);
        std::uint64_t kills = 0;
        if (line.starts_with(k_name) &&
            std::from_chars(line.data() + k_name.size(), line.data() + line.size(), kills).ec ==
                std::errc()) {
            return kills;
        }
    }
    return std::nullopt;
}

MemoryEvents memory_events()
{
    MemoryEvents events;
    const auto cgroup = contents("/proc/self/cgroup");
    if (const auto file = cgroup ? counter_file(*cgroup) : std::nullopt) {
        events.own = kills_at(*file);
    }
    events.node = kills_at("/proc/vmstat");
    return events;
}

bool killed_between(const MemoryEvents& before, const MemoryEvents& after)
{
    return before.own && after.own ? rose(before.own, after.own) : rose(before.node, after.node);
}

} // namespace gpuq::supervisor
