// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/descriptor.h"

#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// Parameters of a sampler.
struct SamplerPlan {
    std::string executable; ///< empty: no sampler is started
    std::string node;
    std::string variable; ///< the variable with its GPUs (sampling.h)
    int gpus = 0;
    int directory = -1;      ///< the link's directory
    bool activities = false; ///< report for each sample whether the GPUs are idle
};

/// The child process that samples this process and its descendants (sampling.h): a separate
/// process, because a driver may hang, from the same executable. It is started only once and never
/// killed; it ends when the lifeline closes, also if the supervisor was killed.
class Sampler {
public:
    void start(const SamplerPlan& plan);
    void stop() { m_reconnect.reset(); }
    /// The pipe of its idle reports (SampledActivity), non-blocking; empty if they were not
    /// requested.
    Descriptor take_activities() { return std::move(m_activities); }

    bool was_started() const { return m_started; }
    std::optional<pid_t> pid() const { return m_pid; }
    void reaped() { m_pid.reset(); }

private:
    bool m_started = false;
    std::optional<pid_t> m_pid;
    Descriptor m_reconnect, m_activities;
};

} // namespace gpuq::supervisor
