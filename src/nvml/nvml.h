// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>

/// The part of NVIDIA's NVML that gpuq uses, declared according to its ABI: building needs no
/// NVIDIA header, and the library is loaded at run time. Names and numbers are NVML's.
namespace gpuq::nvml {

using Return = int;
constexpr Return k_success = 0;
constexpr Return k_uninitialized = 1;
constexpr Return k_invalid_argument = 2;
constexpr Return k_not_supported = 3;
constexpr Return k_no_permission = 4;
constexpr Return k_not_found = 6;
constexpr Return k_insufficient_size = 7;
constexpr Return k_driver_not_loaded = 9;
constexpr Return k_library_not_found = 12;
constexpr Return k_function_not_found = 13;
constexpr Return k_gpu_is_lost = 15;
constexpr Return k_reset_required = 16;
constexpr Return k_mismatch = 18; ///< library and kernel module are from different releases
constexpr Return k_no_data = 21;
constexpr Return k_gpu_not_found = 28;
constexpr Return k_unknown = 999;

using Device = struct DeviceHandle*;
using GpmSample = struct GpmSampleHandle*;

struct Memory {
    unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
constexpr unsigned k_memory_v2 = sizeof(MemoryV2) | 2U << 24;

struct Utilization {
    unsigned gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct PciInfo {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

union Value {
    double as_double;
    unsigned as_uint;
    unsigned long as_ulong;
    unsigned long long as_ulonglong;
};

struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency;
    int type;
    Return status;
    Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
constexpr unsigned k_nvlink_sent = 138, k_nvlink_received = 139; ///< KiB, never reset
constexpr unsigned k_all_links = ~0U;
constexpr int k_type_uint = 1, k_type_ulong = 2, k_type_ulonglong = 3;

struct GpmMetric {
    unsigned id;
    Return status;
    double value;
    struct {
        const char *short_name, *long_name, *unit;
    } info;
};
static_assert(sizeof(GpmMetric) == 40);

struct GpmMetrics {
    unsigned version, count;
    GpmSample first, second;
    GpmMetric metrics[333]; ///< the driver reads the first `count`
};
static_assert(offsetof(GpmMetrics, metrics) == 24);
constexpr unsigned k_gpm_metrics_version = 1;

struct GpmSupport {
    unsigned version, supported;
};
static_assert(sizeof(GpmSupport) == 8);
constexpr unsigned k_gpm_support_version = 1;

constexpr unsigned k_no_gpus = 1; ///< flag of InitWithFlags: a node without GPUs is not an error
constexpr int k_sensor_gpu = 0;
constexpr int k_clock_sm = 1, k_clock_memory = 2;
constexpr int k_pcie_sent = 0, k_pcie_received = 1;
constexpr unsigned k_uuid_size = 96, k_name_size = 96;

} // namespace gpuq::nvml
