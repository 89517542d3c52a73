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

/// What a run has done with what it was given, out of the samples of all its links and nodes, in
/// bounded memory however long it runs. Pure.
namespace gpuq::telemetry {

/// What a profile tells of a run. Those up to `dram_active` are of each GPU, the others of each
/// node.
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

/// What the GPUs of a run did at a time. The time of all GPUs is split into these, exactly.
enum class Phase : std::uint8_t {
    start_up, ///< idle before the first work of the link
    busy,
    waiting,    ///< idle, while the processors or the disk work: for data, as a rule
    saving,     ///< idle, while the run writes, shortly before a checkpoint was there
    other_idle, ///< idle, and nothing else is known to work either
    unknown,
};
constexpr std::size_t k_phases = 6;
struct PhaseRow {
    std::string_view word;  ///< in JSON
    std::string_view title; ///< for people
    std::string_view meaning;
};
const PhaseRow& row(Phase phase);

using PhaseTimes = std::array<std::chrono::milliseconds, k_phases>;

/// A processor that works for half of a core or more is at work.
constexpr double k_cores_at_work = 0.5;
/// So is a disk from here on, in MiB/s; and one that is written to for a checkpoint.
constexpr double k_disk_at_work = 10;
constexpr double k_disk_saves = 1;
/// How long before a checkpoint was seen to be there its saving may have begun.
constexpr std::chrono::seconds k_longest_save{60};

/// One measure of one GPU or node, or of all of them; times in seconds.
struct Measured {
    double sum = 0;   ///< of values, each times how long it was measured
    double known = 0; ///< how long it was known
    double least = 0, most = 0;
    std::array<double, k_unknowns> unknown{}; ///< how long it was not, by reason

    void add(double value, double seconds);
    double mean() const { return known > 0 ? sum / known : 0; }
    /// Why it was not known for most of that time. `not_measured` when nobody has looked.
    Unknown why() const;
    /// Of all the time that was looked at; 0 when none was.
    double known_share() const;
};

/// Nearly exact quantiles of values that were measured for some time each, in bounded memory.
class Quantiles {
public:
    void add(double value, double seconds);
    /// The value that a `share` of the time is not above; nothing of nothing.
    std::optional<double> at(double share) const;

private:
    static constexpr std::size_t k_most_values = 8192;
    void compact();

    std::vector<std::pair<double, double>> m_values; ///< with their times
};

/// One GPU or one node in the course of the run: it may be another one in each link.
struct Track {
    std::size_t node = 0;           ///< its place among the nodes of a link
    std::size_t gpu = 0;            ///< of a GPU: its place on the node
    std::vector<std::string> nodes; ///< their names, each once
    std::string model;              ///< of a GPU; empty: nobody knows
    std::array<Measured, k_measures> measured;
    /// By measure and step of time: the mean, nothing where it is not known.
    std::array<std::vector<std::optional<double>>, k_measures> course;
    std::optional<double> memory_total; ///< of a GPU: GiB
    std::optional<double> cores;        ///< of a node: that the job has there
};

/// More GPUs, or nodes, than this have no curves of their own.
constexpr std::size_t k_most_tracks = 64;
/// Into how many steps of time a run is cut at most.
constexpr int k_most_steps = 360;

/// The life of one link.
struct ProfiledLink {
    LinkNumber link;
    Time from, to;
    std::vector<Time> saves;        ///< when a checkpoint was seen to be there
    std::vector<std::string> nodes; ///< those that have samples
};

struct Profile {
    Time from, to;                  ///< of the run
    std::chrono::milliseconds step; ///< of `course`
    std::vector<ProfiledLink> links;
    std::vector<Track> gpus, nodes;       ///< at most `k_most_tracks` of each
    std::array<Measured, k_measures> all; ///< over all GPUs, or nodes, also those without a track
    std::array<Quantiles, k_measures> quantiles; ///< the same
    PhaseTimes phases{};                  ///< as far as samples tell; `unknown`: also what they
                                          ///< say is not known
    std::vector<PhaseTimes> phase_course; ///< by step of time, of all GPUs
    bool has_samples() const { return !nodes.empty(); }
    const Measured& operator[](Measure measure) const
    {
        return all[static_cast<std::size_t>(measure)];
    }
};

/// `phases` in a total that is right (`gpu_time_so_far`): what was not measured is unknown, and the
/// times add up to `total`.
PhaseTimes phases_of(const PhaseTimes& phases, const GpuTime& total);

/// Makes a profile, given the samples node by node.
class Profiler {
public:
    /// `links` in their order; `gpus`: how many the run has at a time.
    Profiler(std::vector<ProfiledLink> links, int gpus);
    ~Profiler();

    /// All samples of one node of the link at `link`, the oldest first; its nodes in one order.
    void add(std::size_t link, const SampleHeader& header, const std::vector<Sample>& samples);
    Profile take();

private:
    struct Look;
    struct Tracked;

    Tracked* tracked(std::vector<Tracked>& all, const SampleHeader& header, std::size_t node,
                     std::size_t gpu);
    void add_value(Tracked* tracked, Measure measure, const Look& look, double value);
    void add_unknown(Tracked* tracked, Measure measure, const Look& look, Unknown why);
    void add_gpus(const SampleHeader& header, std::size_t node, const Sample& sample,
                  const Look& look);
    void add_phases(const ProfiledLink& link, const Sample& sample, const Look& look);
    void spread(const Look& look, const PhaseTimes& times);

    Profile m_profile;
    int m_gpus_at_a_time;
    std::vector<Tracked> m_gpus, m_nodes;
};

} // namespace gpuq::telemetry
