// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/connection.h"
#include "cli/verb.h"
#include "core/run.h"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace gpuq::cli {

/// The ways from this client to its run, one after the other: the srun of the supervisor's own step
/// if we started it, then relays; on the run's own node its socket. Knows what has to happen so
/// that the run no longer needs any process of this host (src/README.md, How a run lives, 4). Every
/// way may break at any time.
class Connections {
public:
    using Clock = std::chrono::steady_clock;

    /// `greeting`: what a new way has to say first, Attach in front.
    Connections(Doors& doors, const Run& run, LinkNumber link, JobId job,
                std::chrono::milliseconds handover,
                std::function<std::vector<wire::Frame>()> greeting);

    /// With `first`, the streams of the supervisor's own step; without, a way is opened.
    void begin(std::optional<StepProcess> first);

    /// What frames come from and go to; empty while there is no way.
    std::optional<Connection>& current() { return m_current; }
    std::optional<Connection>& next() { return m_next; }
    std::optional<Connection>& guard() { return m_guard; }

    /// The current one has greeted; it has said that the program runs.
    void greeted();
    void started();
    bool was_connected() const { return m_was_connected; }
    /// Why the supervisor has let nobody in, if it ever said so.
    const std::optional<std::string>& refused() const { return m_refused; }

    /// Why there is no connection, as the last attempt reported it: any bytes. May be empty.
    const std::string& why() const { return m_why; }

    /// The way that is being set up has something to say. True when it has become the current
    /// one; what it sends after its greeting is still to be read.
    bool on_next();
    void on_guard();

    /// The current one has come to its end; its last words. Another is tried.
    struct Broken {
        bool never_began = false; ///< the supervisor's own step never said a word
        std::string words;
    };
    Broken drop_current();
    /// The run has ended: no more tries.
    void give_up();

    void on_timers();
    std::optional<Clock::time_point> next_timer() const;

    /// Before we go, the srun of a young run goes: alive, it would end the run when the login's
    /// processes are told to end. It may have been told already, a moment before us: then false,
    /// the run has died with it.
    bool secure();

private:
    std::optional<Connection> open(Connection::Kind kind);
    std::optional<Connection> open_direct();
    void open_way();
    void open_guard();
    void begin_handover();
    void finish_handover();
    void release_first();
    void wait_for_guard();
    bool step_has_died();

    Doors& m_doors;
    const Run& m_run;
    LinkNumber m_link;
    JobId m_job;
    std::chrono::milliseconds m_handover;
    std::function<std::vector<wire::Frame>()> m_greeting;

    std::optional<Connection> m_current; ///< what we listen to
    std::optional<Connection> m_next;    ///< a way that is still being set up
    std::optional<Connection> m_guard;   ///< the guard step, until it stands
    std::optional<StepProcess> m_first; ///< the supervisor's own srun: whoever ends it ends the run
    bool m_guarded = true;              ///< the run needs no process on this host any more
    bool m_was_connected = false;
    std::optional<std::string> m_refused;
    std::string m_why;

    std::optional<Clock::time_point> m_handover_at;
    std::optional<Clock::time_point> m_retry_at;
    std::optional<Clock::time_point> m_guard_at;
    std::chrono::seconds m_retry_after{1};
};

} // namespace gpuq::cli
