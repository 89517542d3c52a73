// SPDX-License-Identifier: GPL-2.0-or-later
#include "nvml/library.h"

#include <dlfcn.h>
#include <initializer_list>

namespace gpuq::nvml {
namespace {

/// The library's name, then paths that ld.so.conf may not contain.
constexpr const char* k_places[] = {"libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1",
                                    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1"};

void* opened()
{
    for (const char* place : k_places) {
        if (void* library = ::dlopen(place, RTLD_NOW | RTLD_LOCAL)) {
            return library;
        }
    }
    return nullptr;
}

} // namespace

bool Library::open()
{
    void* const library = opened();
    if (!library) {
        return false;
    }
    // Uses the newest variant that has the meaning expected here.
    const auto take = [library](auto& function, std::initializer_list<const char*> names) {
        for (const char* each : names) {
            if (void* symbol = ::dlsym(library, each)) {
                return function.set(symbol);
            }
        }
    };
    take(init_with_flags, {"nvmlInitWithFlags"});
    take(init, {"nvmlInit_v2", "nvmlInit"});
    take(count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
    take(by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
    take(by_uuid, {"nvmlDeviceGetHandleByUUID"});
    take(uuid, {"nvmlDeviceGetUUID"});
    take(name, {"nvmlDeviceGetName"});
    // Older variants fill in less than our struct contains.
    take(pci, {"nvmlDeviceGetPciInfo_v3"});
    take(minor, {"nvmlDeviceGetMinorNumber"});
    take(memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
    take(memory, {"nvmlDeviceGetMemoryInfo"});
    take(utilization, {"nvmlDeviceGetUtilizationRates"});
    take(power, {"nvmlDeviceGetPowerUsage"});
    take(temperature, {"nvmlDeviceGetTemperature"});
    take(clock, {"nvmlDeviceGetClockInfo"});
    take(pcie, {"nvmlDeviceGetPcieThroughput"});
    take(fields, {"nvmlDeviceGetFieldValues"});
    take(max_mig, {"nvmlDeviceGetMaxMigDeviceCount"});
    take(mig_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
    take(parent_of_mig, {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle"});
    take(gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
    take(gpm.support, {"nvmlGpmQueryDeviceSupport"});
    take(gpm.alloc, {"nvmlGpmSampleAlloc"});
    take(gpm.free, {"nvmlGpmSampleFree"});
    take(gpm.get, {"nvmlGpmSampleGet"});
    take(gpm.mig_get, {"nvmlGpmMigSampleGet"});
    take(gpm.metrics, {"nvmlGpmMetricsGet"});
    return true;
}

Return Library::start() const
{
    return init_with_flags ? init_with_flags(k_no_gpus) : init();
}

} // namespace gpuq::nvml
