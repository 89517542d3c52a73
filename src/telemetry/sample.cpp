// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/sample.h"

namespace gpuq {
namespace {

struct Reason {
    std::string_view word, reason;
};

constexpr std::array<Reason, k_unknowns> k_reasons = {{
    {"not_measured", "not measured"},
    {"not_supported", "not measured by this GPU"},
    {"no_driver", "no NVIDIA driver on the node"},
    {"no_permission", "no permission to ask the GPU"},
    {"hung", "the GPU driver does not answer"},
    {"lost", "the GPU is lost"},
    {"which_gpu", "the node does not show which of its GPUs are this job's"},
    {"implausible", "the GPU driver reports an impossible value"},
    {"failed", "the GPU driver reports an error"},
}};

constexpr std::array<MetricRow, k_gpu_metrics> k_gpu_rows = {{
    {"busy_percent", 100, Thinned::mean},           {"memory_used_kib", 1, Thinned::largest},
    {"memory_total_kib", 1, Thinned::last},         {"power_watts", 1000, Thinned::mean},
    {"temperature_celsius", 1, Thinned::mean},      {"sm_clock_mhz", 1, Thinned::mean},
    {"memory_clock_mhz", 1, Thinned::mean},         {"pcie_rx_kib_per_second", 1, Thinned::mean},
    {"pcie_tx_kib_per_second", 1, Thinned::mean},   {"nvlink_rx_kib_per_second", 1, Thinned::mean},
    {"nvlink_tx_kib_per_second", 1, Thinned::mean}, {"graphics_active_percent", 100, Thinned::mean},
    {"sm_active_percent", 100, Thinned::mean},      {"sm_occupancy_percent", 100, Thinned::mean},
    {"tensor_active_percent", 100, Thinned::mean},  {"dram_active_percent", 100, Thinned::mean},
    {"fp64_active_percent", 100, Thinned::mean},    {"fp32_active_percent", 100, Thinned::mean},
    {"fp16_active_percent", 100, Thinned::mean},
}};

constexpr std::array<MetricRow, k_run_metrics> k_run_rows = {{
    {"cpu_seconds", 1000, Thinned::last},
    {"memory_bytes", 1, Thinned::largest},
    {"disk_read_bytes", 1, Thinned::last},
    {"disk_written_bytes", 1, Thinned::last},
    {"node_network_received_bytes", 1, Thinned::last},
    {"node_network_sent_bytes", 1, Thinned::last},
}};

} // namespace

std::string_view describe(Unknown why)
{
    return k_reasons.at(static_cast<std::size_t>(why)).reason;
}

std::string_view word(Unknown why)
{
    return k_reasons.at(static_cast<std::size_t>(why)).word;
}

const MetricRow& row(GpuMetric metric)
{
    return k_gpu_rows.at(static_cast<std::size_t>(metric));
}

const MetricRow& row(RunMetric metric)
{
    return k_run_rows.at(static_cast<std::size_t>(metric));
}

GpuSample GpuSample::unknown(Unknown why)
{
    GpuSample sample;
    sample.readings.fill(why);
    return sample;
}

GpuTime& GpuTime::operator+=(const GpuTime& other)
{
    busy += other.busy;
    idle += other.idle;
    unknown += other.unknown;
    return *this;
}

} // namespace gpuq
