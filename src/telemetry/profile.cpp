// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/profile.h"

#include "telemetry/ledger.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuq::telemetry {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::array<MeasureRow, k_measures> k_measure_rows = {{
    {"gpu_busy_percent", "GPU busy", "%", 0},
    {"gpu_memory_gib", "GPU memory", "GiB", 1},
    {"gpu_power_watts", "GPU power", "W", 0},
    {"gpu_temperature_celsius", "GPU temperature", "C", 0},
    {"gpu_sm_clock_mhz", "GPU clock", "MHz", 0},
    {"pcie_to_gpu_mib_per_second", "PCIe to the GPU", "MiB/s", 1},
    {"pcie_from_gpu_mib_per_second", "PCIe from the GPU", "MiB/s", 1},
    {"nvlink_received_mib_per_second", "NVLink received", "MiB/s", 1},
    {"nvlink_sent_mib_per_second", "NVLink sent", "MiB/s", 1},
    {"gpu_sm_active_percent", "GPU cores active", "%", 0},
    {"gpu_tensor_active_percent", "tensor cores active", "%", 0},
    {"gpu_dram_active_percent", "GPU memory active", "%", 0},
    {"cpu_cores", "CPU", "cores", 2},
    {"ram_gib", "RAM", "GiB", 2},
    {"disk_read_mib_per_second", "disk read", "MiB/s", 1},
    {"disk_written_mib_per_second", "disk written", "MiB/s", 1},
    {"node_network_received_mib_per_second", "network in, whole node", "MiB/s", 1},
    {"node_network_sent_mib_per_second", "network out, whole node", "MiB/s", 1},
}};

constexpr std::array<PhaseRow, k_phases> k_phase_rows = {{
    {"start_up", "start-up", "GPU idle before its first work"},
    {"busy", "GPU at work", "GPU busy"},
    {"waiting_for_data", "waiting for data", "GPU idle while CPUs or disk work"},
    {"saving", "saving", "GPU idle while a checkpoint is written"},
    {"other_idle", "other idle", "GPU idle, nothing else known to work"},
    {"unknown", "unknown", "not measured, or not known"},
}};

constexpr double k_kib_per_mib = 1024;
constexpr double k_kib_per_gib = 1024 * 1024;
constexpr double k_bytes_per_mib = 1024.0 * 1024;
constexpr double k_bytes_per_gib = 1024 * k_bytes_per_mib;

/// The source of a GPU measure, and the divisor of its number.
struct GpuSource {
    GpuMetric metric;
    double scale;
};
constexpr std::array<GpuSource, k_gpu_measures> k_gpu_sources = {{
    {GpuMetric::busy, 100},
    {GpuMetric::memory_used, k_kib_per_gib},
    {GpuMetric::power, 1000},
    {GpuMetric::temperature, 1},
    {GpuMetric::sm_clock, 1},
    {GpuMetric::pcie_rx, k_kib_per_mib},
    {GpuMetric::pcie_tx, k_kib_per_mib},
    {GpuMetric::nvlink_rx, k_kib_per_mib},
    {GpuMetric::nvlink_tx, k_kib_per_mib},
    {GpuMetric::sm_active, 100},
    {GpuMetric::tensor_active, 100},
    {GpuMetric::dram_active, 100},
}};

/// Node measures that only increase: their rate is used.
struct Counter {
    Measure measure;
    RunMetric metric;
    double scale;
};
constexpr std::array<Counter, 5> k_counters = {{
    {Measure::cpu, RunMetric::cpu, 1000},
    {Measure::disk_read, RunMetric::disk_read, k_bytes_per_mib},
    {Measure::disk_written, RunMetric::disk_written, k_bytes_per_mib},
    {Measure::network_rx, RunMetric::node_net_rx, k_bytes_per_mib},
    {Measure::network_tx, RunMetric::node_net_tx, k_bytes_per_mib},
}};

/// A node without cgroups checks its processes every five seconds.
constexpr milliseconds k_rate_window{10'000};
/// No sample represents more time, even if older samples were merged into it.
constexpr milliseconds k_longest_sample{15min};
/// A smaller share is noise of the driver, not the first work.
constexpr double k_first_work = 0.05;

double seconds(milliseconds time)
{
    return static_cast<double>(time.count()) / 1000;
}

/// The growth of sums that only increase; a damaged file may contain any numbers.
GpuTime grown(const GpuTime& before, const GpuTime& now)
{
    const auto growth = [](milliseconds from, milliseconds to) { return std::max(to - from, 0ms); };
    return {growth(before.busy, now.busy), growth(before.idle, now.idle),
            growth(before.unknown, now.unknown)};
}

/// How much of the time before a sample it represents: after a gap, for instance when an operator
/// suspended the job, only the end of it.
milliseconds covered(const Sample& sample, const GpuTime& growth)
{
    const bool known =
        std::any_of(sample.gpus.begin(), sample.gpus.end(),
                    [](const GpuSample& gpu) { return gpu[GpuMetric::busy].known(); });
    const bool gap = known && growth.unknown > growth.busy + growth.idle;
    return gap || sample.stands_for > k_longest_sample ? std::min(sample.stands_for, k_longest_step)
                                                       : sample.stands_for;
}

/// The growth rate of a counter in the last ten seconds before `samples[at]`.
std::optional<double> rate(const std::vector<Sample>& samples, std::size_t at, RunMetric metric)
{
    const auto& now = samples[at].run[metric].value();
    std::optional<double> found;
    for (std::size_t i = at; now && i-- > 0;) {
        const auto& before = samples[i].run[metric].value();
        const double between = seconds(samples[at].elapsed - samples[i].elapsed);
        if (before && *before <= *now && between > 0) {
            found = static_cast<double>(*now - *before) / between;
        }
        if (between >= seconds(k_rate_window)) {
            break;
        }
    }
    return found;
}

} // namespace

const MeasureRow& row(Measure measure)
{
    return k_measure_rows.at(static_cast<std::size_t>(measure));
}

const PhaseRow& row(Phase phase)
{
    return k_phase_rows.at(static_cast<std::size_t>(phase));
}

void Measured::add(double value, double time)
{
    least = known > 0 ? std::min(least, value) : value;
    most = known > 0 ? std::max(most, value) : value;
    sum += value * time;
    known += time;
}

Unknown Measured::why() const
{
    const auto longest = std::max_element(unknown.begin(), unknown.end());
    return static_cast<Unknown>(longest - unknown.begin());
}

double Measured::known_share() const
{
    const double measured_time = known + std::accumulate(unknown.begin(), unknown.end(), 0.0);
    return measured_time > 0 ? known / measured_time : 0;
}

void Quantiles::add(double value, double time)
{
    m_values.emplace_back(value, time);
    if (m_values.size() >= k_most_values) {
        compact();
    }
}

void Quantiles::compact()
{
    std::sort(m_values.begin(), m_values.end());
    for (std::size_t i = 0; i + 1 < m_values.size(); i += 2) {
        const auto [low, low_time] = m_values[i];
        const auto [high, high_time] = m_values[i + 1];
        const double time = low_time + high_time;
        m_values[i / 2] = {(low * low_time + high * high_time) / time, time};
    }
    m_values.resize(m_values.size() / 2);
}

std::optional<double> Quantiles::at(double share) const
{
    auto values = m_values;
    std::sort(values.begin(), values.end());
    double all = 0;
    for (const auto& [value, time] : values) {
        all += time;
    }
    double below = 0;
    for (const auto& [value, time] : values) {
        below += time;
        if (below >= share * all) {
            return value;
        }
    }
    return std::nullopt;
}

PhaseTimes phases_of(const PhaseTimes& phases, const GpuTime& total)
{
    PhaseTimes all{};
    all[static_cast<std::size_t>(Phase::busy)] = total.busy;
    all[static_cast<std::size_t>(Phase::unknown)] = total.unknown;
    milliseconds left = total.idle;
    for (const Phase phase : {Phase::start_up, Phase::waiting, Phase::saving}) {
        const auto place = static_cast<std::size_t>(phase);
        all[place] = std::min(phases[place], left);
        left -= all[place];
    }
    all[static_cast<std::size_t>(Phase::other_idle)] = left;
    return all;
}

/// The time that one sample represents.
struct Profiler::Interval {
    Time from, to;
    double time = 0; ///< in seconds
    GpuTime growth;  ///< during this time
    bool has_worked; ///< a GPU of the link, so far
    std::optional<double> cpu, read, written;
};

struct Profiler::Tracked {
    Track track;
    /// By measure and step: the sum of values weighted by time, and the sum of these times.
    std::array<std::vector<std::pair<double, double>>, k_measures> sums;
};

Profiler::Profiler(std::vector<ProfiledLink> links, int gpus)
    : m_gpus_at_a_time(gpus)
{
    m_profile.links = std::move(links);
    for (const ProfiledLink& link : m_profile.links) {
        const bool first = &link == &m_profile.links.front();
        m_profile.from = first ? link.from : std::min(m_profile.from, link.from);
        m_profile.to = first ? link.to : std::max(m_profile.to, link.to);
    }
    m_profile.to = std::max(m_profile.to, m_profile.from + 1s);
    m_profile.step =
        std::chrono::ceil<std::chrono::seconds>((m_profile.to - m_profile.from) / k_most_steps);
    const auto steps =
        static_cast<std::size_t>(std::ceil(double((m_profile.to - m_profile.from).count()) /
                                           double(microseconds(m_profile.step).count())));
    m_profile.phase_course.resize(steps);
}

Profiler::~Profiler() = default;

Profiler::Tracked* Profiler::tracked(std::vector<Tracked>& all, const SampleHeader& header,
                                     std::size_t node, std::size_t gpu)
{
    auto found = std::find_if(all.begin(), all.end(), [&](const Tracked& one) {
        return one.track.node == node && one.track.gpu == gpu;
    });
    if (found == all.end()) {
        if (all.size() >= k_most_tracks) {
            return nullptr;
        }
        found = all.emplace(all.end());
        found->track.node = node;
        found->track.gpu = gpu;
        for (auto& sums : found->sums) {
            sums.resize(m_profile.phase_course.size());
        }
    }
    auto& names = found->track.nodes;
    if (std::find(names.begin(), names.end(), header.node) == names.end()) {
        names.push_back(header.node);
    }
    return &*found;
}

void Profiler::add_value(Tracked* tracked, Measure measure, const Interval& interval, double value)
{
    const auto place = static_cast<std::size_t>(measure);
    m_profile.all[place].add(value, interval.time);
    m_profile.quantiles[place].add(value, interval.time);
    if (!tracked) {
        return;
    }
    tracked->track.measured[place].add(value, interval.time);
    auto& sums = tracked->sums[place];
    const Time begin = std::max(interval.from, m_profile.from);
    const Time end = std::min(interval.to, m_profile.to);
    for (Time at = begin; at < end;) {
        const auto step = static_cast<std::size_t>((at - m_profile.from) / m_profile.step);
        const Time next =
            std::min(end, m_profile.from + m_profile.step * static_cast<std::int64_t>(step + 1));
        const double time = static_cast<double>((next - at).count());
        if (step < sums.size()) {
            sums[step].first += value * time;
            sums[step].second += time;
        }
        at = next;
    }
}

void Profiler::add_unknown(Tracked* tracked, Measure measure, const Interval& interval, Unknown why)
{
    const auto place = static_cast<std::size_t>(measure);
    const auto reason = static_cast<std::size_t>(why);
    m_profile.all[place].unknown[reason] += interval.time;
    if (tracked) {
        tracked->track.measured[place].unknown[reason] += interval.time;
    }
}

void Profiler::add_gpus(const SampleHeader& header, std::size_t node, const Sample& sample,
                        const Interval& interval)
{
    for (std::size_t gpu = 0; gpu < sample.gpus.size(); ++gpu) {
        Tracked* const one = tracked(m_gpus, header, node, gpu);
        const GpuSample& readings = sample.gpus[gpu];
        for (std::size_t i = 0; i < k_gpu_measures; ++i) {
            const auto measure = static_cast<Measure>(i);
            const Reading& reading = readings[k_gpu_sources[i].metric];
            if (reading.known()) {
                add_value(one, measure, interval,
                          static_cast<double>(*reading.value()) / k_gpu_sources[i].scale);
            } else {
                add_unknown(one, measure, interval, reading.why());
            }
        }
        const Reading& total = readings[GpuMetric::memory_total];
        if (one && total.known()) {
            one->track.memory_total = static_cast<double>(*total.value()) / k_kib_per_gib;
        }
        if (one && gpu < header.gpus.size() && !header.gpus[gpu].model.empty()) {
            one->track.model = header.gpus[gpu].model;
        }
    }
}

void Profiler::add_phases(const ProfiledLink& link, const Sample& sample, const Interval& interval)
{
    const bool at_work =
        interval.cpu.value_or(0) >= k_cores_at_work || interval.read.value_or(0) >= k_disk_at_work;
    const bool saves =
        interval.written.value_or(0) >= k_disk_saves &&
        std::any_of(link.saves.begin(), link.saves.end(), [&](Time save) {
            return sample.at > save - k_longest_save && sample.at <= save + k_rate_window;
        });
    const Phase of_idle = !interval.has_worked ? Phase::start_up
                          : saves              ? Phase::saving
                          : at_work            ? Phase::waiting
                                               : Phase::other_idle;
    PhaseTimes times{};
    times[static_cast<std::size_t>(Phase::busy)] = interval.growth.busy;
    times[static_cast<std::size_t>(Phase::unknown)] = interval.growth.unknown;
    times[static_cast<std::size_t>(of_idle)] = interval.growth.idle;
    for (std::size_t i = 0; i < k_phases; ++i) {
        m_profile.phases[i] += times[i];
    }
    spread(interval, times);
}

void Profiler::spread(const Interval& interval, const PhaseTimes& times)
{
    const double all = static_cast<double>((interval.to - interval.from).count());
    const Time begin = std::max(interval.from, m_profile.from);
    const Time end = std::min(interval.to, m_profile.to);
    for (Time at = begin; at < end && all > 0;) {
        const auto step = static_cast<std::size_t>((at - m_profile.from) / m_profile.step);
        const Time next =
            std::min(end, m_profile.from + m_profile.step * static_cast<std::int64_t>(step + 1));
        const double share = static_cast<double>((next - at).count()) / all;
        for (std::size_t i = 0; step < m_profile.phase_course.size() && i < k_phases; ++i) {
            m_profile.phase_course[step][i] +=
                milliseconds(std::llround(static_cast<double>(times[i].count()) * share));
        }
        at = next;
    }
}

void Profiler::add(std::size_t link_at, const SampleHeader& header,
                   const std::vector<Sample>& samples)
{
    ProfiledLink& link = m_profile.links.at(link_at);
    const std::size_t node = link.nodes.size();
    link.nodes.push_back(header.node);
    Tracked* const of_node = tracked(m_nodes, header, node, 0);
    if (of_node && header.cpus > 0) {
        of_node->track.cores = header.cpus;
    }
    GpuTime before;
    bool has_worked = false;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const Sample& sample = samples[i];
        Interval interval;
        interval.growth = grown(before, sample.gpu_time);
        before = sample.gpu_time;
        const milliseconds length = covered(sample, interval.growth);
        interval.to = sample.at;
        interval.from = sample.at - length;
        interval.time = seconds(length);
        has_worked = has_worked || seconds(interval.growth.busy) >
                                       k_first_work * seconds(interval.growth.allocated());
        interval.has_worked = has_worked;
        add_gpus(header, node, sample, interval);
        for (const Counter& counter : k_counters) {
            const auto found = rate(samples, i, counter.metric);
            if (found) {
                add_value(of_node, counter.measure, interval, *found / counter.scale);
            } else {
                const Reading& reading = sample.run[counter.metric];
                add_unknown(of_node, counter.measure, interval,
                            reading.known() ? Unknown::not_measured : reading.why());
            }
            auto& kept = counter.measure == Measure::cpu         ? interval.cpu
                         : counter.measure == Measure::disk_read ? interval.read
                                                                 : interval.written;
            if (counter.measure <= Measure::disk_written && found) {
                kept = *found / counter.scale;
            }
        }
        if (const Reading& memory = sample.run[RunMetric::memory]; memory.known()) {
            add_value(of_node, Measure::ram, interval,
                      static_cast<double>(*memory.value()) / k_bytes_per_gib);
        } else {
            add_unknown(of_node, Measure::ram, interval, memory.why());
        }
        add_phases(link, sample, interval);
    }
}

Profile Profiler::take()
{
    const auto finish = [](std::vector<Tracked>& all, std::vector<Track>& tracks) {
        for (Tracked& one : all) {
            for (std::size_t i = 0; i < k_measures; ++i) {
                for (const auto& [sum, time] : one.sums[i]) {
                    one.track.course[i].push_back(time > 0 ? std::optional(sum / time)
                                                           : std::nullopt);
                }
            }
            tracks.push_back(std::move(one.track));
        }
    };
    finish(m_gpus, m_profile.gpus);
    finish(m_nodes, m_profile.nodes);
    // The time of a link without samples is unknown.
    for (std::size_t step = 0; step < m_profile.phase_course.size(); ++step) {
        const Time from = m_profile.from + m_profile.step * static_cast<std::int64_t>(step);
        microseconds had{0};
        for (const ProfiledLink& link : m_profile.links) {
            had += std::max(microseconds(0),
                            std::min(link.to, from + m_profile.step) - std::max(link.from, from));
        }
        PhaseTimes& times = m_profile.phase_course[step];
        const auto known = std::accumulate(times.begin(), times.end() - 1, 0ms);
        times.back() =
            std::max(0ms, std::chrono::floor<milliseconds>(had) * m_gpus_at_a_time - known);
    }
    return std::move(m_profile);
}

} // namespace gpuq::telemetry
