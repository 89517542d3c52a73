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

/// The descriptors that `gpuq-supervisor sample` is started with.
constexpr int k_sample_folder = 3;   ///< the folder of the link
constexpr int k_sample_lifeline = 4; ///< a pipe that ends when the run does
constexpr int k_sample_looks = 5;    ///< a pipe for what each sample says of idle GPUs

/// What goes through it: both ends are of one executable and on one node.
struct SampledLook {
    std::chrono::steady_clock::time_point began; ///< what the look's time counts from
    telemetry::IdleLook look;
};

/// A driver that has not answered for so long hangs: seen at the next sample.
constexpr std::chrono::milliseconds k_driver_patience{4000};

/// What is known of the GPUs at `now`, when a question has been open since `asked`, and `last`
/// was answered at `answered`. Pure.
struct DriverState {
    std::optional<std::chrono::steady_clock::time_point> asked;
    std::optional<std::chrono::steady_clock::time_point> answered;
    std::vector<GpuLook> last;
};
std::vector<GpuSample> gpus_at(const DriverState& state, std::size_t count,
                               std::chrono::steady_clock::time_point now);

/// Slurm's variable that says which GPUs this process has. The other may be inherited from a job
/// that the run was started in.
constexpr const char* k_gpus_of_step = "SLURM_STEP_GPUS";
constexpr const char* k_gpus_of_job = "SLURM_JOB_GPUS";

/// The GPUs of this job, out of its environment, by `variable` of the above; `asked_for` where that
/// does not say how many.
JobGpus held_gpus(const std::function<std::optional<std::string>(const char*)>& variables,
                  const std::string& variable, std::size_t asked_for);

using OpenGpus = std::function<std::unique_ptr<Gpus>(const JobGpus&)>;

/// Samples this node once a second into the link's folder until the lifeline ends or the process
/// `root` is gone, which with those below it stands for the run where Slurm has no cgroups. The
/// driver is asked on a thread of its own, so one that hangs costs nothing but its values, and is
/// asked no second time. `cpus`: that the job has on this node, 0 when nobody knows. `with_looks`:
/// k_sample_looks is open, and never waited for. Ends the process.
[[noreturn]] void sample(const OpenGpus& open, const JobGpus& held, const std::string& node,
                         std::uint32_t cpus, pid_t root, bool with_looks);

} // namespace gpuq::supervisor
