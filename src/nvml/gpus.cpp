// SPDX-License-Identifier: GPL-2.0-or-later
#include "nvml/gpus.h"

#include "nvml/choose.h"
#include "nvml/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

namespace gpuq::nvml {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t k_kib = 1024;
/// Samples to skip before the next attempt to find a lost GPU or a missing driver.
constexpr int k_query_again = 10;

Unknown why(Return status)
{
    switch (status) {
    case k_not_supported:
    case k_function_not_found:
    case k_invalid_argument: // the answer of MIG devices to queries about whole GPUs
        return Unknown::not_supported;
    case k_no_permission:
        return Unknown::no_permission;
    case k_uninitialized:
    case k_driver_not_loaded:
    case k_library_not_found:
    case k_mismatch:
        return Unknown::no_driver;
    case k_gpu_is_lost:
    case k_reset_required:
    case k_gpu_not_found:
        return Unknown::lost;
    case k_no_data:
        return Unknown::not_measured;
    default:
        return Unknown::failed;
    }
}

Reading reading(Return status, std::uint64_t value)
{
    return status == k_success ? Reading::of(value) : Reading(why(status));
}

/// From a value that the driver reports in percent.
Reading share(double percent)
{
    return std::isfinite(percent) && percent >= 0 && percent <= 100
               ? Reading::of(static_cast<std::uint64_t>(std::llround(percent * 100)))
               : Reading(Unknown::implausible);
}

/// Reads one number through `ask`.
template <typename SlurmQuery>
Reading number(std::uint64_t factor, SlurmQuery ask)
{
    unsigned value = 0;
    const Return status = ask(&value);
    return reading(status, value * factor);
}

/// The rate since the previous sample, computed from a counter that only grows.
class Rate {
public:
    Reading of(const Reading& counter, Clock::time_point now)
    {
        const auto before = std::exchange(m_before, counter.value());
        const auto since = std::exchange(m_at, now);
        if (!counter.known()) {
            return counter;
        }
        const double seconds = std::chrono::duration<double>(now - since).count();
        if (!before || seconds <= 0) {
            return Unknown::not_measured;
        }
        return *counter.value() >= *before
                   ? Reading::of(static_cast<std::uint64_t>(
                         static_cast<double>(*counter.value() - *before) / seconds))
                   : Reading(Unknown::not_measured); // the counter was reset
    }

private:
    std::optional<std::uint64_t> m_before;
    Clock::time_point m_at;
};

struct GpmRow {
    unsigned id;
    GpuMetric metric;
    bool is_rate; ///< MiB/s; else percent
};
constexpr std::array<GpmRow, 12> k_gpm = {{
    {1, GpuMetric::graphics_active, false},
    {2, GpuMetric::sm_active, false},
    {3, GpuMetric::sm_occupancy, false},
    {5, GpuMetric::tensor_active, false},
    {10, GpuMetric::dram_active, false},
    {11, GpuMetric::fp64_active, false},
    {12, GpuMetric::fp32_active, false},
    {13, GpuMetric::fp16_active, false},
    {20, GpuMetric::pcie_tx, true},
    {21, GpuMetric::pcie_rx, true},
    {60, GpuMetric::nvlink_rx, true},
    {61, GpuMetric::nvlink_tx, true},
}};

/// One GPU or one MIG device.
class Handle {
public:
    Handle(const Library& library, Device device, GpuName name)
        : m_library(library)
        , m_device(device)
        , m_name(std::move(name))
        , m_is_mig(m_name.uuid.starts_with("MIG-"))
    {
        open_gpm();
    }
    ~Handle() { close_gpm(); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    const GpuName& name() const { return m_name; }

    GpuSample measure()
    {
        GpuSample sample = GpuSample::unknown(Unknown::not_supported);
        measure_memory(sample);
        Utilization busy{};
        const Return status = m_library.utilization(m_device, &busy);
        sample[GpuMetric::busy] = status == k_success ? share(busy.gpu) : Reading(why(status));
        // The driver does not report these for MIG devices.
        if (!m_is_mig) {
            measure_whole(sample);
        }
        measure_transfers(sample);
        // Unlike the older counter, this one also counts MIG devices.
        if (m_is_mig && !sample[GpuMetric::busy].known()) {
            sample[GpuMetric::busy] = sample[GpuMetric::graphics_active];
        }
        return sample;
    }

private:
    void measure_memory(GpuSample& sample)
    {
        MemoryV2 second{};
        second.version = k_memory_v2;
        Memory memory{};
        Return status = m_library.memory_v2(m_device, &second);
        if (status == k_success) {
            memory = {second.total, second.free, second.used};
        } else if (why(status) != Unknown::lost) {
            status = m_library.memory(m_device, &memory);
        }
        sample[GpuMetric::memory_total] = reading(status, memory.total / k_kib);
        sample[GpuMetric::memory_used] = reading(status, memory.used / k_kib);
        if (status == k_success && memory.used > memory.total) {
            sample[GpuMetric::memory_used] = Unknown::implausible;
        }
    }

    void measure_whole(GpuSample& sample)
    {
        sample[GpuMetric::power] =
            number(1, [&](unsigned* value) { return m_library.power(m_device, value); });
        sample[GpuMetric::temperature] = number(1, [&](unsigned* value) {
            return m_library.temperature(m_device, k_sensor_gpu, value);
        });
        sample[GpuMetric::sm_clock] = number(
            1, [&](unsigned* value) { return m_library.clock(m_device, k_clock_sm, value); });
        sample[GpuMetric::memory_clock] = number(
            1, [&](unsigned* value) { return m_library.clock(m_device, k_clock_memory, value); });
    }

    void measure_transfers(GpuSample& sample)
    {
        if (m_gpm[0]) {
            measure_by_gpm(sample);
            return;
        }
        if (m_is_mig) {
            return;
        }
        // Each call blocks for the 20 ms in which the driver counts.
        sample[GpuMetric::pcie_tx] = number(
            1, [&](unsigned* value) { return m_library.pcie(m_device, k_pcie_sent, value); });
        sample[GpuMetric::pcie_rx] =
            sample[GpuMetric::pcie_tx].known()
                ? number(1,
                         [&](unsigned* value) {
                             return m_library.pcie(m_device, k_pcie_received, value);
                         })
                : sample[GpuMetric::pcie_tx];
        measure_nvlink(sample);
    }

    void measure_nvlink(GpuSample& sample)
    {
        FieldValue fields[2] = {{.field = k_nvlink_sent, .scope = k_all_links},
                                {.field = k_nvlink_received, .scope = k_all_links}};
        const Return status = m_library.fields(m_device, 2, fields);
        const auto now = Clock::now();
        const auto counter = [&](const FieldValue& field) {
            const Return own = status == k_success ? field.status : status;
            switch (field.type) {
            case k_type_uint:
                return reading(own, field.value.as_uint);
            case k_type_ulong:
            case k_type_ulonglong:
                return reading(own, field.value.as_ulonglong);
            default:
                return Reading(own == k_success ? Unknown::not_supported : why(own));
            }
        };
        sample[GpuMetric::nvlink_tx] = m_nvlink_tx.of(counter(fields[0]), now);
        sample[GpuMetric::nvlink_rx] = m_nvlink_rx.of(counter(fields[1]), now);
    }

    void open_gpm()
    {
        GpmSupport support{k_gpm_support_version, 0};
        Device whole = m_device;
        if (m_is_mig && (m_library.parent_of_mig(m_device, &whole) != k_success ||
                         m_library.gpu_instance(m_device, &m_instance) != k_success)) {
            return;
        }
        m_gpm_device = whole;
        const bool complete = m_library.gpm.alloc && m_library.gpm.metrics && m_library.gpm.free &&
                              (m_is_mig ? bool(m_library.gpm.mig_get) : bool(m_library.gpm.get));
        if (!complete || m_library.gpm.support(whole, &support) != k_success ||
            support.supported == 0) {
            return;
        }
        if (m_library.gpm.alloc(&m_gpm[0]) != k_success) {
            m_gpm[0] = nullptr;
        } else if (m_library.gpm.alloc(&m_gpm[1]) != k_success) {
            m_library.gpm.free(std::exchange(m_gpm[0], nullptr));
            m_gpm[1] = nullptr;
        }
    }

    void close_gpm()
    {
        for (GpmSample& sample : m_gpm) {
            if (sample) {
                m_library.gpm.free(sample);
            }
        }
    }

    static void set_all_gpm(GpuSample& sample, Unknown reason)
    {
        for (const GpmRow& row : k_gpm) {
            sample[row.metric] = reason;
        }
    }

    void measure_by_gpm(GpuSample& sample)
    {
        std::swap(m_gpm[0], m_gpm[1]);
        const Return status = m_is_mig ? m_library.gpm.mig_get(m_gpm_device, m_instance, m_gpm[1])
                                       : m_library.gpm.get(m_gpm_device, m_gpm[1]);
        const bool had_one = std::exchange(m_has_gpm, status == k_success);
        if (status != k_success || !had_one) {
            set_all_gpm(sample, status == k_success ? Unknown::not_measured : why(status));
            return;
        }
        m_metrics.version = k_gpm_metrics_version;
        m_metrics.count = k_gpm.size();
        m_metrics.first = m_gpm[0];
        m_metrics.second = m_gpm[1];
        for (std::size_t i = 0; i < k_gpm.size(); ++i) {
            m_metrics.metrics[i] = {.id = k_gpm[i].id, .status = k_unknown};
        }
        const Return got = m_library.gpm.metrics(&m_metrics);
        for (std::size_t i = 0; i < k_gpm.size(); ++i) {
            const GpmMetric& metric = m_metrics.metrics[i];
            const Return own = got == k_success ? metric.status : got;
            sample[k_gpm[i].metric] =
                own == k_success ? gpm_reading(k_gpm[i], metric.value) : Reading(why(own));
        }
    }

    static Reading gpm_reading(const GpmRow& row, double value)
    {
        if (!row.is_rate) {
            return share(value);
        }
        const bool plausible = std::isfinite(value) && value >= 0 && value < 1e6 * k_kib;
        return plausible ? Reading::of(static_cast<std::uint64_t>(std::llround(value * k_kib)))
                         : Reading(Unknown::implausible);
    }

    const Library& m_library;
    Device m_device;
    GpuName m_name;
    bool m_is_mig;
    Device m_gpm_device = nullptr;
    unsigned m_instance = 0;
    GpmSample m_gpm[2] = {nullptr, nullptr};
    bool m_has_gpm = false; ///< m_gpm[1] was filled by the previous sample
    GpmMetrics m_metrics{};
    Rate m_nvlink_tx, m_nvlink_rx;
};

class NvmlGpus final : public Gpus {
public:
    explicit NvmlGpus(JobGpus held)
        : m_held(std::move(held))
        , m_activities(m_held.count)
    {
    }

    std::vector<GpuReading> measure() override
    {
        if (m_held.count == 0) {
            return {};
        }
        if (!m_ready && m_patience-- <= 0) {
            m_patience = k_query_again;
            m_reason = begin();
            m_ready = !m_reason;
        }
        for (std::size_t i = 0; i < m_activities.size(); ++i) {
            m_activities[i].sample = m_reason ? GpuSample::unknown(*m_reason)
                                              : query_run(m_handles[i], m_activities[i].name);
        }
        return m_activities;
    }

private:
    struct Held {
        std::unique_ptr<Handle> handle;
        int patience = 0;
    };

    /// Nullopt on success.
    std::optional<Unknown> begin()
    {
        if (!m_open && !m_library.open()) {
            return Unknown::no_driver;
        }
        m_open = true;
        // Initialised once and never shut down: each would wake sleeping GPUs and may hang.
        if (m_started != k_success) {
            m_started = m_library.start();
        }
        if (m_started != k_success) {
            return why(m_started) == Unknown::failed ? Unknown::failed : Unknown::no_driver;
        }
        auto visible = visible_gpus();
        if (visible.empty()) {
            return Unknown::no_driver;
        }
        const auto chosen = choose(m_held, std::move(visible));
        m_handles.resize(m_activities.size());
        for (std::size_t i = 0; i < m_activities.size(); ++i) {
            if (chosen[i]) {
                m_activities[i].name.uuid = *chosen[i];
                take(m_handles[i], m_activities[i].name);
            }
        }
        return std::nullopt;
    }

    std::string text(const Function<Device, char*, unsigned>& function, Device device) const
    {
        char buffer[k_uuid_size + 1] = "";
        return function(device, buffer, k_uuid_size) == k_success ? buffer : "";
    }

    std::vector<VisibleGpu> visible_gpus() const
    {
        unsigned count = 0;
        if (m_library.count(&count) != k_success) {
            return {};
        }
        std::vector<VisibleGpu> gpus;
        for (unsigned i = 0; i < count; ++i) {
            Device device = nullptr;
            const Return status = m_library.by_index(i, &device);
            if (status == k_no_permission) {
                continue; // it belongs to another job
            }
            VisibleGpu gpu;
            if (status == k_success) {
                gpu.uuid = text(m_library.uuid, device);
                gpu.pci = pci_of(device);
                unsigned minor = 0;
                if (m_library.minor(device, &minor) == k_success) {
                    gpu.minor = minor;
                }
                gpu.migs = migs_of(device);
            }
            gpus.push_back(std::move(gpu));
        }
        return gpus;
    }

    std::string pci_of(Device device) const
    {
        PciInfo info{};
        if (m_library.pci(device, &info) != k_success) {
            return "";
        }
        return fmt::format("{:08X}:{:02X}:{:02X}.0", info.domain, info.bus, info.device);
    }

    std::vector<std::string> migs_of(Device device) const
    {
        unsigned most = 0;
        if (m_library.max_mig(device, &most) != k_success) {
            return {};
        }
        std::vector<std::string> uuids;
        for (unsigned i = 0; i < most; ++i) {
            Device mig = nullptr;
            if (m_library.mig_by_index(device, i, &mig) == k_success) {
                uuids.push_back(text(m_library.uuid, mig));
            }
        }
        return uuids;
    }

    void take(Held& held, GpuName& name)
    {
        Device device = nullptr;
        held.patience = k_query_again;
        if (m_library.by_uuid(name.uuid.c_str(), &device) != k_success) {
            return;
        }
        Device whole = device;
        if (name.uuid.starts_with("MIG-")) {
            m_library.parent_of_mig(device, &whole);
        }
        name.model = text(m_library.name, device);
        name.pci = pci_of(whole);
        held.handle = std::make_unique<Handle>(m_library, device, name);
    }

    GpuSample query_run(Held& held, GpuName& name)
    {
        if (name.uuid.empty()) {
            return GpuSample::unknown(Unknown::which_gpu);
        }
        if (!held.handle && held.patience-- <= 0) {
            take(held, name);
        }
        if (!held.handle) {
            return GpuSample::unknown(Unknown::lost);
        }
        GpuSample sample = held.handle->measure();
        const Reading& memory = sample[GpuMetric::memory_total];
        if (!memory.known() && memory.why() == Unknown::lost) {
            // After a reset it may come back, possibly with other MIG devices, under another
            // handle.
            held.handle.reset();
            held.patience = k_query_again;
            return GpuSample::unknown(Unknown::lost);
        }
        return sample;
    }

    JobGpus m_held;
    std::vector<GpuReading> m_activities;
    std::vector<Held> m_handles;
    Library m_library;
    bool m_open = false, m_ready = false;
    Return m_started = k_uninitialized;
    int m_patience = 0;
    std::optional<Unknown> m_reason = Unknown::not_measured;
};

} // namespace

std::unique_ptr<Gpus> gpus(const JobGpus& held)
{
    return std::make_unique<NvmlGpus>(held);
}

} // namespace gpuq::nvml
