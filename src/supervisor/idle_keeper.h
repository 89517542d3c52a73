// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/idle.h"
#include "supervisor/descriptor.h"
#include "supervisor/sampling.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// What the loop around a program keeps of the watch over its idle GPUs: what the sampler's looks
/// say, and what only the loop sees, input and output. The verdicts are telemetry's.
class IdleKeeper {
public:
    using Steady = std::chrono::steady_clock::time_point;

    /// `measured`: all nodes of the run are.
    IdleKeeper(std::string partition, const telemetry::IdleRule& rule, bool measured);

    const std::string& partition() const { return m_partition; }
    const telemetry::IdleRule& rule() const { return m_rule; }

    /// The pipe of the sampler (SampledLook).
    void watch(Descriptor looks) { m_looks = std::move(looks); }
    int fd() const { return m_looks.get(); }

    void began(Steady at) { m_began = at; } ///< the program
    void printed(Steady at) { m_printed = at; }
    /// So many bytes have been typed, or sent, until now.
    void input(std::uint64_t taken, Steady at);
    void exempt() { m_watch.exempt(); }
    void put_off() { m_watch.put_off(); }

    /// The verdict after the newest look; nothing when none has come since the last call.
    std::optional<telemetry::IdleVerdict> read();
    IdleFinding finding(IdleFinding::State state, const telemetry::IdleVerdict& verdict,
                        Time at) const;

private:
    telemetry::IdleVerdict add(const SampledLook& sampled);

    std::string m_partition;
    telemetry::IdleRule m_rule;
    telemetry::IdleWatch m_watch;
    Descriptor m_looks;
    std::optional<Steady> m_began, m_typed, m_printed;
    std::uint64_t m_taken = 0;
};

} // namespace gpuq::supervisor
