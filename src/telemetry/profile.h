// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "telemetry/sample_file.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The use of a run's resources, computed from the samples of all its links and nodes in bounded
/// memory, however long the run is. Pure.
namespace gpuq::telemetry {

/// The measures in a profile. Those up to `dram_active` are per GPU, the others per node.
enum class Measure : std::uint8_t {
    busy,
    memory_used,
    power,
    temperature,
    sm_clock,
    pcie_rx,
    pcie_tx,
    nvlink_rx,
    nvlink_tx,
    sm_active,
    tensor_active,
    dram_active,
    cpu,
    ram,
    disk_read,
    disk_written,
    network_rx,
    network_tx,
};
constexpr std::size_t k_measures = 18;
constexpr std::size_t k_gpu_measures = 12;

struct MeasureRow {
    std::string_view name;  ///< in JSON, with its unit
    std::string_view title; ///< `GPU memory`
    std::string_view unit;  ///< `GiB`
    int decimals = 0;
};
const MeasureRow& row(Measure measure);

/// The activity of a run's GPUs. The phases sum up exactly to the time of all GPUs.
enum class Phase : std::uint8_t {
    start_up, ///< idle before the first work of the link
    busy,
    waiting,    ///< idle while the CPUs or the disk work, usually waiting for data
    saving,     ///< idle while the run writes, shortly before a checkpoint appeared
    other_idle, ///< idle, and no other activity is known
    unknown,
};
constexpr std::size_t k_phases = 6;
struct PhaseRow {
    std::string_view word;  ///< in JSON
    std::string_view title; ///< for display
    std::string_view meaning;
};
const PhaseRow& row(Phase phase);

using PhaseTimes = std::array<std::chrono::milliseconds, k_phases>;

/// CPUs are at work if they use at least this many cores.
constexpr double k_cores_at_work = 0.5;
/// The disk is at work from this read rate on, in MiB/s; from the second one on, a write rate may
/// be a checkpoint's.
constexpr double k_disk_at_work = 10;
constexpr double k_disk_saves = 1;
/// How long before a checkpoint was detected its writing may have begun.
constexpr std::chrono::seconds k_longest_save{60};

/// One measure of one GPU or node, or of all of them; times in seconds.
struct Measured {
    double sum = 0;   ///< of values, weighted by time
    double known = 0; ///< how long the value was known
    double least = 0, most = 0;
    std::array<double, k_unknowns> unknown{}; ///< how long it was unknown, by reason

    void add(double value, double seconds);
    double mean() const { return known > 0 ? sum / known : 0; }
    /// The reason why it was unknown for the longest time; `not_measured` if there were no samples.
    Unknown why() const;
    /// The known share of all time with samples; 0 if there is none.
    double known_share() const;
};

/// Nearly exact quantiles of values weighted by time, in bounded memory.
class Quantiles {
public:
    void add(double value, double seconds);
    /// The value that is not exceeded during a `share` of the time; nothing without values.
    std::optional<double> at(double share) const;

private:
    static constexpr std::size_t k_most_values = 8192;
    void compact();

    std::vector<std::pair<double, double>> m_values; ///< with their times
};

/// One GPU or one node over the course of the run: it may be a different one in each link.
struct Track {
    std::size_t node = 0;           ///< its index among the nodes of a link
    std::size_t gpu = 0;            ///< for a GPU: its index on the node
    std::vector<std::string> nodes; ///< their names, each once
    std::string model;              ///< for a GPU; empty: unknown
    std::array<Measured, k_measures> measured;
    /// By measure and step of time: the mean, or nothing if unknown.
    std::array<std::vector<std::optional<double>>, k_measures> course;
    std::optional<double> memory_total; ///< for a GPU: GiB
    std::optional<double> cores;        ///< for a node: the job's cores on it
};

/// GPUs or nodes beyond this number have no curves of their own.
constexpr std::size_t k_most_tracks = 64;
/// The maximum number of time steps that a run is divided into.
constexpr int k_most_steps = 360;

/// The lifetime of one link.
struct ProfiledLink {
    LinkNumber link;
    Time from, to;
    std::vector<Time> saves;        ///< when new checkpoints were detected
    std::vector<std::string> nodes; ///< nodes with samples
};

struct Profile {
    Time from, to;                  ///< of the run
    std::chrono::milliseconds step; ///< of `course`
    std::vector<ProfiledLink> links;
    std::vector<Track> gpus, nodes;       ///< at most `k_most_tracks` of each
    std::array<Measured, k_measures> all; ///< over all GPUs or nodes, with or without a track
    std::array<Quantiles, k_measures> quantiles; ///< likewise
    PhaseTimes phases{}; ///< only time with samples; `unknown`: unknown according to samples
    std::vector<PhaseTimes> phase_course; ///< by step of time, over all GPUs
    bool has_samples() const { return !nodes.empty(); }
    const Measured& operator[](Measure measure) const
    {
        return all[static_cast<std::size_t>(measure)];
    }
};

/// Fits `phases` into a correct total (`gpu_time_so_far`): time that was not measured is unknown,
/// and the phases sum up to `total`.
PhaseTimes phases_of(const PhaseTimes& phases, const GpuTime& total);

/// Builds a profile from samples, node by node.
class Profiler {
public:
    /// `links` in order; `gpus`: the number of GPUs that the run has at a time.
    Profiler(std::vector<ProfiledLink> links, int gpus);
    ~Profiler();

    /// Adds all samples of one node of the link with index `link`, oldest first. A link's nodes
    /// must be added in the same order as those of other links.
    void add(std::size_t link, const SampleHeader& header, const std::vector<Sample>& samples);
    Profile take();

private:
    struct Interval;
    struct Tracked;

    Tracked* tracked(std::vector<Tracked>& all, const SampleHeader& header, std::size_t node,
                     std::size_t gpu);
    void add_value(Tracked* tracked, Measure measure, const Interval& interval, double value);
    void add_unknown(Tracked* tracked, Measure measure, const Interval& interval, Unknown why);
    void add_gpus(const SampleHeader& header, std::size_t node, const Sample& sample,
                  const Interval& interval);
    void add_phases(const ProfiledLink& link, const Sample& sample, const Interval& interval);
    void spread(const Interval& interval, const PhaseTimes& times);

    Profile m_profile;
    int m_gpus_at_a_time;
    std::vector<Tracked> m_gpus, m_nodes;
};

} // namespace gpuq::telemetry
