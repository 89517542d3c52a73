// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sampler/run_use.h"

#include "core/number.h"
#include "supervisor/base/descriptor.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <vector>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// Scanning all processes of a job costs more than reading its cgroup.
constexpr auto k_between_walks = 5s;
constexpr std::size_t k_most_processes = 4096;
constexpr std::uint64_t k_ns_per_ms = 1'000'000;

std::optional<std::string> contents(const std::string& path)
{
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) {
        return std::nullopt;
    }
    std::string text;
    char piece[8192];
    ssize_t size = 0;
    while ((size = ::read(file.get(), piece, sizeof piece)) > 0 && text.size() < (256 << 10)) {
        text.append(piece, static_cast<std::size_t>(size));
    }
    return size < 0 ? std::nullopt : std::optional(std::move(text));
}

std::string_view cut(std::string_view& text, char end)
{
    const std::size_t size = std::min(text.find(end), text.size());
    const std::string_view part = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    return part;
}

std::vector<std::string_view> parts(std::string_view line)
{
    std::vector<std::string_view> all;
    while (!line.empty()) {
        if (const std::string_view word = cut(line, ' '); !word.empty()) {
            all.push_back(word);
        }
    }
    return all;
}

bool names(std::string_view list, std::string_view controller)
{
    while (!list.empty()) {
        if (cut(list, ',') == controller) {
            return true;
        }
    }
    return false;
}

/// The directory above the step's is the job's, regardless of its name.
std::string above_step(std::string_view path)
{
    const std::size_t step = path.find("/step_");
    return step == std::string_view::npos ? "" : std::string(path.substr(0, step));
}

std::optional<std::uint64_t> number_in(const std::string& path)
{
    auto text = contents(path);
    if (text && text->ends_with('\n')) {
        text->pop_back();
    }
    return text ? whole_number(*text) : std::nullopt;
}

/// Sets a value that is still unknown.
void fill(Reading& reading, const std::optional<std::uint64_t>& value)
{
    if (!reading.known() && value) {
        reading = Reading::of(*value);
    }
}

std::optional<std::uint64_t> without_cache(const std::string& total, const std::string& statistics,
                                           std::string_view cache)
{
    const auto all = number_in(total);
    const auto text = contents(statistics);
    const auto cached = text ? value_after(*text, cache) : std::nullopt;
    return all && cached ? std::optional(*all - std::min(*all, *cached)) : std::nullopt;
}

struct ProcessUse {
    std::uint64_t ticks = 0; ///< including its ended children
    std::uint64_t own_pages = 0, shared_pages = 0;
    std::uint64_t read = 0, written = 0;
    bool may_read_io = false;
};

std::optional<ProcessUse> use_of(const std::string& directory)
{
    const auto stat = contents(directory + "/stat");
    const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    const auto fields = parts(std::string_view(*stat).substr(name_end + 1));
    constexpr std::size_t k_utime = 11;
    if (fields.size() < k_utime + 4) {
        return std::nullopt;
    }
    ProcessUse use;
    for (std::size_t i = k_utime; i < k_utime + 4; ++i) {
        use.ticks += whole_number(fields[i]).value_or(0);
    }
    const std::string sizes = contents(directory + "/statm").value_or("");
    const auto pages = parts(sizes);
    if (pages.size() > 2) {
        const std::uint64_t resident = whole_number(pages[1]).value_or(0);
        use.shared_pages = std::min(resident, whole_number(pages[2]).value_or(0));
        use.own_pages = resident - use.shared_pages;
    }
    const auto io = contents(directory + "/io");
    const auto read = io ? value_after(*io, "read_bytes:") : std::nullopt;
    const auto written = io ? value_after(*io, "write_bytes:") : std::nullopt;
    use.may_read_io = read && written;
    use.read = read.value_or(0);
    use.written = written.value_or(0);
    return use;
}

std::vector<std::string> children_of(const std::string& directory)
{
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir((directory + "/task").c_str()),
                                                    ::closedir);
    std::vector<std::string> children;
    while (const dirent* task = tasks ? ::readdir(tasks.get()) : nullptr) {
        if (task->d_name[0] == '.') {
            continue;
        }
        const auto text = contents(directory + "/task/" + task->d_name + "/children").value_or("");
        for (const std::string_view child : parts(text)) {
            children.emplace_back(child);
        }
    }
    return children;
}

/// The kernel may have been built without these lists.
bool has_lists_of_children()
{
    return ::access("/proc/thread-self/children", R_OK) == 0;
}

/// Sums a process and all its descendants, except `spared`.
ProcessUse use_of_all(pid_t root, pid_t spared)
{
    std::vector<std::string> pids = {std::to_string(root)};
    ProcessUse all;
    all.may_read_io = true;
    for (std::size_t i = 0; i < pids.size() && i < k_most_processes; ++i) {
        const std::string directory = "/proc/" + pids[i];
        const auto use = pids[i] == std::to_string(spared) ? std::nullopt : use_of(directory);
        if (!use) {
            continue;
        }
        all.ticks += use->ticks;
        all.own_pages += use->own_pages;
        all.shared_pages = std::max(all.shared_pages, use->shared_pages);
        all.read += use->read;
        all.written += use->written;
        all.may_read_io = all.may_read_io && use->may_read_io;
        const auto children = children_of(directory);
        pids.insert(pids.end(), children.begin(), children.end());
    }
    return all;
}

std::uint64_t larger(const std::optional<RunSample>& before, RunMetric metric, std::uint64_t now)
{
    // The use of a process that has ended may not be visible any more.
    const Reading last = before ? (*before)[metric] : Reading();
    return std::max(now, last.value().value_or(0));
}

} // namespace

JobCgroup job_cgroup(std::string_view proc_self_cgroup)
{
    JobCgroup found;
    while (!proc_self_cgroup.empty()) {
        // 4:memory:/slurm/uid_7/job_9/step_0/task_0, or 0::/system.slice/slurmstepd.scope/job_9/..
        std::string_view line = cut(proc_self_cgroup, '\n');
        const std::string_view id = cut(line, ':');
        const std::string_view controllers = cut(line, ':');
        const std::string path = above_step(line);
        if (path.empty()) {
            continue;
        }
        if (id == "0" && controllers.empty()) {
            found.unified = "/sys/fs/cgroup" + path;
        }
        if (names(controllers, "cpuacct")) {
            found.cpu = "/sys/fs/cgroup/cpuacct" + path;
        }
        if (names(controllers, "memory")) {
            found.memory = "/sys/fs/cgroup/memory" + path;
        }
        if (names(controllers, "blkio")) {
            found.transfers = "/sys/fs/cgroup/blkio" + path;
        }
    }
    return found;
}

std::optional<std::uint64_t> value_after(std::string_view text, std::string_view name)
{
    while (!text.empty()) {
        const auto line = parts(cut(text, '\n'));
        if (line.size() == 2 && line[0] == name) {
            return whole_number(line[1]);
        }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> io_stat_sum(std::string_view text, std::string_view name)
{
    std::uint64_t sum = 0;
    while (!text.empty()) {
        // 8:0 rbytes=4096 wbytes=0 .. or 8:0 Read 4096
        const auto line = parts(cut(text, '\n'));
        for (std::size_t i = 1; i < line.size(); ++i) {
            std::string_view number = line[i];
            const bool joined = cut(number, '=') == name && !number.empty();
            if (!joined && (line[i] != name || i + 1 >= line.size())) {
                continue;
            }
            const auto value = whole_number(joined ? number : line[i + 1]);
            if (!value) {
                return std::nullopt;
            }
            sum += *value;
        }
    }
    return sum;
}

std::optional<std::uint64_t> net_sum(std::string_view text, bool sent)
{
    std::optional<std::uint64_t> sum;
    while (!text.empty()) {
        std::string_view line = cut(text, '\n');
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) {
            continue;
        }
        const auto name = parts(line.substr(0, colon));
        const auto numbers = parts(line.substr(colon + 1));
        const std::size_t place = sent ? 8 : 0;
        if (name.size() == 1 && name[0] != "lo" && numbers.size() > place) {
            sum = sum.value_or(0) + whole_number(numbers[place]).value_or(0);
        }
    }
    return sum;
}

RunUse::RunUse(pid_t root)
    : m_root(root)
    , m_cgroup(job_cgroup(contents("/proc/self/cgroup").value_or("")))
{
}

void RunUse::by_cgroup(RunSample& sample) const
{
    if (!m_cgroup.unified.empty()) {
        const std::string& directory = m_cgroup.unified;
        const auto cpu = contents(directory + "/cpu.stat");
        const auto used = cpu ? value_after(*cpu, "usage_usec") : std::nullopt;
        fill(sample[RunMetric::cpu], used ? std::optional(*used / 1000) : std::nullopt);
        fill(sample[RunMetric::memory], without_cache(directory + "/memory.current",
                                                      directory + "/memory.stat", "inactive_file"));
        if (const auto io = contents(directory + "/io.stat")) {
            fill(sample[RunMetric::disk_read], io_stat_sum(*io, "rbytes"));
            fill(sample[RunMetric::disk_written], io_stat_sum(*io, "wbytes"));
        }
    }
    if (!m_cgroup.cpu.empty()) {
        const auto used = number_in(m_cgroup.cpu + "/cpuacct.usage");
        fill(sample[RunMetric::cpu], used ? std::optional(*used / k_ns_per_ms) : std::nullopt);
    }
    if (!m_cgroup.memory.empty()) {
        fill(sample[RunMetric::memory],
             without_cache(m_cgroup.memory + "/memory.usage_in_bytes",
                           m_cgroup.memory + "/memory.stat", "total_inactive_file"));
    }
    if (!m_cgroup.transfers.empty()) {
        if (const auto io = contents(m_cgroup.transfers + "/blkio.throttle.io_service_bytes")) {
            fill(sample[RunMetric::disk_read], io_stat_sum(*io, "Read"));
            fill(sample[RunMetric::disk_written], io_stat_sum(*io, "Write"));
        }
    }
}

void RunUse::by_processes(RunSample& sample, std::chrono::steady_clock::time_point now)
{
    if (!m_of_processes || now >= m_checked_at + k_between_walks) {
        m_checked_at = now;
        RunSample found;
        if (has_lists_of_children()) {
            const ProcessUse all = use_of_all(m_root, ::getpid());
            const auto ticks = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
            const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
            const auto growing = [&](RunMetric metric, std::uint64_t value) {
                found[metric] = Reading::of(larger(m_of_processes, metric, value));
            };
            growing(RunMetric::cpu, all.ticks * 1000 / ticks);
            found[RunMetric::memory] = Reading::of((all.own_pages + all.shared_pages) * page);
            if (all.may_read_io) {
                growing(RunMetric::disk_read, all.read);
                growing(RunMetric::disk_written, all.written);
            }
        }
        m_of_processes = found;
    }
    for (std::size_t i = 0; i < k_run_metrics; ++i) {
        fill(sample.readings[i], m_of_processes->readings[i].value());
    }
}

RunSample RunUse::measure(std::chrono::steady_clock::time_point now)
{
    RunSample sample;
    by_cgroup(sample);
    const std::array counted = {RunMetric::cpu, RunMetric::memory, RunMetric::disk_read,
                                RunMetric::disk_written};
    if (std::any_of(counted.begin(), counted.end(),
                    [&](RunMetric metric) { return !sample[metric].known(); })) {
        by_processes(sample, now);
    }
    const std::string net = contents("/proc/self/net/dev").value_or("");
    fill(sample[RunMetric::node_net_rx], net_sum(net, /*sent=*/false));
    fill(sample[RunMetric::node_net_tx], net_sum(net, /*sent=*/true));
    return sample;
}

} // namespace gpuq::supervisor
