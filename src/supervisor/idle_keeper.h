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
/// output, which only the loop sees, and decides what the supervisor does about them. The verdicts
/// come from telemetry::IdleWatch.
///
/// A release takes three samples: one that calls for it (`ask`: the supervisor asks whether the
/// queue's number of releases per hour allows it), the answer (release_answered), and another one
/// that still calls for it (`release`).
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

    enum class Step {
        none,
        report_work,      ///< of a run that was warned or exempt
        report_exemption, ///< from the rule that it would be warned by
        warn,
        ask,
        release,
    };
    /// The step after the newest sample. `ends_already`: the run is ending for another reason, so
    /// there is none.
    Step next(bool ends_already);
    /// The answer after `ask`. If the release is not allowed, the rule's time starts again.
    void release_answered(bool may_release);
    /// The verdict of the newest sample that next() has considered.
    const telemetry::IdleVerdict& verdict() const { return m_verdict; }

    /// The finding to be written now that the run is in this state.
    IdleFinding report(IdleFinding::State state, Time at);

private:
    std::optional<telemetry::IdleVerdict> read();
    telemetry::IdleVerdict add(const SampledActivity& sampled);

    std::string m_partition;
    telemetry::IdleRule m_rule;
    telemetry::IdleWatch m_watch;
    Descriptor m_activities;
    std::optional<Steady> m_began, m_typed, m_printed;
    std::uint64_t m_taken = 0;
    telemetry::IdleVerdict m_verdict;
    std::optional<IdleFinding::State> m_reported;
    bool m_asked = false, m_may_release = false;
};

} // namespace gpuq::supervisor
