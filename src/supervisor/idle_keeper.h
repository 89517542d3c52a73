// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/idle.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/sampler/sampling.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// The loop's side of watching for idle GPUs: combines the sampler's measurements with input and
/// output, which only the loop sees. The verdicts come from telemetry::IdleWatch.
class IdleKeeper {
public:
    using Steady = std::chrono::steady_clock::time_point;

    /// `measured`: all nodes of the run are sampled.
    IdleKeeper(std::string partition, const telemetry::IdleRule& rule, bool measured);

    const std::string& partition() const { return m_partition; }
    const telemetry::IdleRule& rule() const { return m_rule; }

    /// Sets the sampler's pipe, which carries SampledActivity records.
    void watch(Descriptor activities) { m_activities = std::move(activities); }
    int fd() const { return m_activities.get(); }

    void began(Steady at) { m_began = at; } ///< the start of the program
    void printed(Steady at) { m_printed = at; }
    /// Records the number of bytes typed or sent so far.
    void input(std::uint64_t taken, Steady at);
    void exempt() { m_watch.exempt(); }
    void put_off() { m_watch.put_off(); }

    /// The verdict after the newest sample; nullopt if none arrived since the last call.
    std::optional<telemetry::IdleVerdict> read();
    IdleFinding finding(IdleFinding::State state, const telemetry::IdleVerdict& verdict,
                        Time at) const;

private:
    telemetry::IdleVerdict add(const SampledActivity& sampled);

    std::string m_partition;
    telemetry::IdleRule m_rule;
    telemetry::IdleWatch m_watch;
    Descriptor m_activities;
    std::optional<Steady> m_began, m_typed, m_printed;
    std::uint64_t m_taken = 0;
};

} // namespace gpuq::supervisor
