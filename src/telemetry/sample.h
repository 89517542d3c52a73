// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gpuq {

/// Why a value is unknown. The numbers are used in files: only add new ones.
enum class Unknown : std::uint8_t {
    not_measured = 0,  ///< not measured, or not yet
    not_supported = 1, ///< this chip, or this part of it, lacks the counter
    no_driver = 2,     ///< the node has no working NVIDIA driver
    no_permission = 3,
    hung = 4,      ///< the driver does not return
    lost = 5,      ///< the GPU no longer responds
    which_gpu = 6, ///< the node has more visible GPUs than the job, and does not identify the job's
    implausible = 7, ///< the driver returned an impossible value
    failed = 8,      ///< another error
};
constexpr std::size_t k_unknowns = 9;

/// `no NVIDIA driver on the node`.
std::string_view describe(Unknown why);
/// For JSON: `no_driver`.
std::string_view word(Unknown why);

/// A number, or the reason why it is unknown. An unknown value can't be converted to 0.
class Reading {
public:
    constexpr Reading(Unknown why = Unknown::not_measured)
        : m_why(why)
    {
    }
    static constexpr Reading of(std::uint64_t value)
    {
        Reading reading;
        reading.m_value = value;
        return reading;
    }
    constexpr bool known() const { return m_value.has_value(); }
    constexpr const std::optional<std::uint64_t>& value() const { return m_value; }
    /// Only for an unknown value.
    constexpr Unknown why() const { return m_why; }
    constexpr bool operator==(const Reading&) const = default;

private:
    std::optional<std::uint64_t> m_value;
    Unknown m_why = Unknown::not_measured;
};

/// The metrics of a GPU, in the order of the file.
enum class GpuMetric : std::uint8_t {
    busy, ///< hundredths of a percent of the time with any activity, regardless of its amount
    memory_used,  ///< KiB
    memory_total, ///< KiB
    power,        ///< mW
    temperature,  ///< degrees Celsius
    sm_clock,     ///< MHz
    memory_clock, ///< MHz
    pcie_rx,      ///< KiB/s
    pcie_tx,
    nvlink_rx, ///< KiB/s
    nvlink_tx,
    graphics_active, ///< from here on hundredths of a percent; only chips with GPM
    sm_active,
    sm_occupancy,
    tensor_active,
    dram_active,
    fp64_active,
    fp32_active,
    fp16_active,
};
constexpr std::size_t k_gpu_metrics = 19;

/// The metrics of a run on one node. All except memory only increase.
enum class RunMetric : std::uint8_t {
    cpu,          ///< ms, all CPUs
    memory,       ///< bytes, without the kernel's caches
    disk_read,    ///< bytes
    disk_written, ///< bytes
    node_net_rx,  ///< bytes of the whole node: Linux does not count them by job
    node_net_tx,
};
constexpr std::size_t k_run_metrics = 6;

/// How values are merged when old samples are thinned out.
enum class Thinned { mean, largest, last };

struct MetricRow {
    std::string_view name; ///< in JSON, with its unit
    std::uint32_t scale;   ///< divisor for JSON
    Thinned thinned;
};
const MetricRow& row(GpuMetric metric);
const MetricRow& row(RunMetric metric);

struct GpuSample {
    std::array<Reading, k_gpu_metrics> readings;

    /// A sample whose values are all unknown for the same reason.
    static GpuSample unknown(Unknown why);
    Reading& operator[](GpuMetric metric) { return readings[static_cast<std::size_t>(metric)]; }
    const Reading& operator[](GpuMetric metric) const
    {
        return readings[static_cast<std::size_t>(metric)];
    }
    bool operator==(const GpuSample&) const = default;
};

struct RunSample {
    std::array<Reading, k_run_metrics> readings;

    Reading& operator[](RunMetric metric) { return readings[static_cast<std::size_t>(metric)]; }
    const Reading& operator[](RunMetric metric) const
    {
        return readings[static_cast<std::size_t>(metric)];
    }
    bool operator==(const RunSample&) const = default;
};

/// GPU time: two GPUs have two seconds per second.
struct GpuTime {
    std::chrono::milliseconds busy{0}, idle{0}, unknown{0};

    std::chrono::milliseconds allocated() const { return busy + idle + unknown; }
    GpuTime& operator+=(const GpuTime& other);
    bool operator==(const GpuTime&) const = default;
};

/// One sample of one node.
struct Sample {
    Time at;                                 ///< by the node's clock
    std::chrono::milliseconds elapsed{0};    ///< since the first sample, by a monotonic clock
    std::chrono::milliseconds stands_for{0}; ///< the time up to `at` that it represents
    GpuTime gpu_time;                        ///< since the first sample
    RunSample run;
    std::vector<GpuSample> gpus;
    bool operator==(const Sample&) const = default;
};

} // namespace gpuq
