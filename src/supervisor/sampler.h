// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/descriptor.h"

#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// What a sampler is told.
struct SamplerPlan {
    std::string executable; ///< empty: nobody samples
    std::string node;
    std::string variable; ///< that names its GPUs (sampling.h)
    int gpus = 0;
    int folder = -1;    ///< of the link
    bool looks = false; ///< tells what each sample says of idle GPUs
};

/// This process becomes one: of `root` and what is below it, until `root` is gone or `lifeline`
/// ends. `looks`: where it tells them; -1: nowhere.
[[noreturn]] void become_sampler(const SamplerPlan& plan, pid_t root, int lifeline, int looks);

/// The child that samples this node while the program runs (sampling.h): a process of its own, for
/// a driver may hang, and of the same executable. Never started a second time; it ends by itself
/// when the lifeline does, also that of a supervisor that was killed, and is never killed.
class Sampler {
public:
    void start(const SamplerPlan& plan);
    void stop() { m_lifeline.reset(); }
    /// Where the looks come from (SampledLook), non-blocking; none when nobody asked for them.
    Descriptor take_looks() { return std::move(m_looks); }

    bool was_started() const { return m_started; }
    std::optional<pid_t> pid() const { return m_pid; }
    void reaped() { m_pid.reset(); }

private:
    bool m_started = false;
    std::optional<pid_t> m_pid;
    Descriptor m_lifeline, m_looks;
};

} // namespace gpuq::supervisor
