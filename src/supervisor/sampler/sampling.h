// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/gpu.h"
#include "telemetry/reclaim.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// File descriptors passed to `gpuq-supervisor sample`.
constexpr int k_sample_directory = 3;  ///< the directory of the link
constexpr int k_sample_lifeline = 4;   ///< a pipe that closes when the run ends
constexpr int k_sample_activities = 5; ///< a pipe for the idle report of each sample

/// A record in that pipe: both ends use the same executable on the same node.
struct SampledActivity {
    std::chrono::steady_clock::time_point began; ///< the start of the look's time scale
    telemetry::Activity activity;
};

/// A driver that has not answered for this long is hung; detected at the next sample.
constexpr std::chrono::milliseconds k_driver_patience{4000};

/// The state of the driver thread: a query is open since `asked`; the previous one was answered at
/// `answered` with `last`.
struct DriverState {
    std::optional<std::chrono::steady_clock::time_point> asked;
    std::optional<std::chrono::steady_clock::time_point> answered;
    std::vector<GpuReading> last;
};
/// The GPU values at `now`: those of the last answer, or unknown if the driver hangs or the answer
/// is too old. Pure.
std::vector<GpuSample> gpus_at(const DriverState& state, std::size_t count,
                               std::chrono::steady_clock::time_point now);

/// Slurm's variable with the GPUs of this process. The other one may be inherited from a job in
/// which the run was started.
constexpr const char* k_gpus_of_step = "SLURM_STEP_GPUS";
constexpr const char* k_gpus_of_job = "SLURM_JOB_GPUS";

/// The GPUs of this job according to its environment, with `variable` being one of the above;
/// `asked_for` is used if their number is not in the environment.
JobGpus held_gpus(const std::function<std::optional<std::string>(const char*)>& variables,
                  const std::string& variable, std::size_t asked_for);

using OpenGpus = std::function<std::unique_ptr<Gpus>(const JobGpus&)>;

/// Samples this node once a second into the link's directory, until the lifeline closes or the
/// process `root` is gone. Without Slurm cgroups, the run is measured as `root` and its
/// descendants. The driver is queried on a separate thread: if it hangs, only its values are
/// missing, and no second query is made. `cpus`: the job's CPUs on this node; 0 if unknown.
/// `with_activities`: k_sample_activities is open; writes to it never block. Ends the process.
[[noreturn]] void sample(const OpenGpus& open, const JobGpus& held, const std::string& node,
                         std::uint32_t cpus, pid_t root, bool with_activities);

} // namespace gpuq::supervisor
