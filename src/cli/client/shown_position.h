// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/run.h"
#include "io/event_loop.h"
#include "runs/records/record.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace gpuq::cli {

/// Up to which byte the user has seen a run's output, recorded for the next `gpuq attach`: every
/// ten seconds, in case this client is killed, and at its end. Output for a user at another machine
/// may be lost on its way: it counts as shown only when serve has confirmed it.
class ShownPosition {
public:
    /// `begin`: the position that the client continues from. Without it, or for a run with a
    /// terminal, whose screen is redrawn, nothing is recorded. `printed`: the bytes printed so far.
    ShownPosition(EventLoop& loop, Services& services, const Run& run,
                  const std::optional<Shown>& begin, std::function<Shown()> printed);

    /// Output was printed.
    void on_printed();
    /// Waits briefly until the last output is confirmed as shown. Otherwise the next client shows
    /// some of it again.
    void wait_until_shown();
    void record();

private:
    void mark();

    Services& m_services;
    const Run& m_run;
    const bool m_is_recorded;
    std::function<Shown()> m_printed;
    Shown m_certain; ///< known to have been shown to the user
    Shown m_recorded;
    struct Mark {
        std::uint64_t number = 0;
        Shown shown;
    };
    std::optional<Mark> m_mark; ///< in the output, not confirmed yet
    EventLoop::Timer m_mark_timer, m_record_timer;
};

} // namespace gpuq::cli
