// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "nvml/nvml.h"

namespace gpuq::nvml {

/// A function of the library. If the library lacks it, the call returns `k_function_not_found`.
template <typename... Arguments>
class Function {
public:
    explicit operator bool() const { return m_function != nullptr; }
    Return operator()(Arguments... arguments) const
    {
        return m_function ? m_function(arguments...) : k_function_not_found;
    }
    void set(void* symbol) { m_function = reinterpret_cast<Return (*)(Arguments...)>(symbol); }

private:
    Return (*m_function)(Arguments...) = nullptr;
};

/// The profiling functions ("GPU performance metrics") of Hopper and later GPUs.
struct Gpm {
    Function<Device, GpmSupport*> support;
    Function<GpmSample*> alloc;
    Function<GpmSample> free;
    Function<Device, GpmSample> get;
    Function<Device, unsigned, GpmSample> mig_get;
    Function<GpmMetrics*> metrics;
};

/// libnvidia-ml.so.1, loaded by dlopen. Any function may be missing: an old library has fewer.
/// Never closed, because a call may still hang in it.
struct Library {
    Function<unsigned> init_with_flags;
    Function<> init;
    Function<unsigned*> count;
    Function<unsigned, Device*> by_index;
    Function<const char*, Device*> by_uuid;
    Function<Device, char*, unsigned> uuid;
    Function<Device, char*, unsigned> name;
    Function<Device, PciInfo*> pci;
    Function<Device, unsigned*> minor;
    Function<Device, MemoryV2*> memory_v2;
    Function<Device, Memory*> memory;
    Function<Device, Utilization*> utilization;
    Function<Device, unsigned*> power;
    Function<Device, int, unsigned*> temperature;
    Function<Device, int, unsigned*> clock;
    Function<Device, int, unsigned*> pcie;
    Function<Device, int, FieldValue*> fields;
    Function<Device, unsigned*> max_mig;
    Function<Device, unsigned, Device*> mig_by_index;
    Function<Device, Device*> parent_of_mig;
    Function<Device, unsigned*> gpu_instance;
    Gpm gpm;

    /// False if this node has no such library.
    bool open();
    /// Call only once per process.
    Return start() const;
};

} // namespace gpuq::nvml
