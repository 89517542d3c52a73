// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/client/connection.h"
#include "core/run.h"
#include "io/event_loop.h"
#include "runs/records/network_login.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace gpuq::cli {

/// The connections from this client to its run, one after another: the srun of the supervisor's own
/// step if this process started it, then relays; on the run's own node the supervisor's socket, and
/// with `direct: network` a TCP connection.
/// Performs the handover after which the run needs no process on this host (src/README.md, How a
/// run lives, 4). Any connection may break at any time.
class Connections {
public:
    using Clock = std::chrono::steady_clock;

    /// `greeting`: the first frames to send on a new connection, beginning with Attach.
    Connections(EventLoop& loop, Services& services, const Run& run, LinkNumber link, JobId job,
                std::chrono::milliseconds handover,
                std::function<std::vector<wire::Frame>()> greeting);

    /// With `first`, uses the streams of the supervisor's own step; otherwise opens a connection.
    void begin(std::optional<StepProcess> first);

    /// The connection in use, which frames are read from and sent to; empty while there is none.
    std::optional<Connection>& current() { return m_current; }
    std::optional<Connection>& next() { return m_next; }
    std::optional<Connection>& guard() { return m_guard; }

    /// To be called when the current connection has received Hello, and Started.
    void greeted();
    void started();
    bool was_connected() const { return m_was_connected; }
    /// The supervisor's reason for refusing the connection, if it did.
    const std::optional<std::string>& refused() const { return m_refused; }

    /// Sends a signal for the program on the current connection, and on later ones until it is
    /// confirmed.
    void send_signal(int number);
    /// To be called when the current connection has received a confirmation.
    void signal_taken(const wire::SignalTaken& taken);
    /// Identifies this client to the supervisor across its connections.
    std::uint64_t client() const { return m_signals.client; }

    /// Why there is no connection, as the last attempt reported it: arbitrary bytes. May be empty.
    const std::string& why() const { return m_why; }

    /// Handles events of the connection that is being set up. True once it has become the current
    /// one; frames after its Hello are then still to be read.
    bool on_next();
    void on_guard();

    /// Drops the current connection, which has ended, and returns its last errors. Another attempt
    /// follows.
    struct Broken {
        bool never_began = false; ///< the supervisor's own step ended before its Hello
        std::string messages;
    };
    Broken drop_current();
    /// The run has ended: makes no more attempts.
    void give_up();

    /// Detaches the srun of a young run before this process exits: otherwise the run would end with
    /// srun when the login session's processes are killed. False if that has happened already, just
    /// before this process was signalled, and the run has ended with srun.
    bool secure();

private:
    std::optional<Connection> open(Connection::Kind kind);
    std::optional<Connection> open_direct();
    std::optional<Connection> open_network();
    void open_way();
    void introduce_next();
    bool on_proof(const wire::Frame& frame);
    void give_up_network(const std::string& why);
    void open_guard();
    void retry_guard();
    void begin_handover();
    void finish_handover();
    void release_first();
    void send_signals();
    void wait_for_guard();
    bool step_has_died();
    bool has_recorded_end() const;

    Services& m_services;
    const Run& m_run;
    LinkNumber m_link;
    JobId m_job;
    std::chrono::milliseconds m_handover;
    std::function<std::vector<wire::Frame>()> m_greeting;

    std::optional<Connection> m_current; ///< the connection in use
    std::optional<Connection> m_next;    ///< a connection being set up
    std::optional<Connection> m_guard;   ///< the guard step, until it is up
    std::optional<NetworkLogin> m_login; ///< of m_next, until the supervisor has proved itself
    bool m_network_works = true;
    std::optional<StepProcess> m_first; ///< the supervisor's own srun: killing it ends the run
    bool m_guarded = true;              ///< the run no longer needs a process on this host
    bool m_was_connected = false;
    std::optional<std::string> m_refused;
    std::string m_why;

    struct SentSignals {
        std::uint64_t client;
        std::deque<int> waiting; ///< to be confirmed
        std::uint64_t taken = 0; ///< number of those that were
    } m_signals;
    EventLoop::Timer m_handover_timer; ///< to begin the handover
    EventLoop::Timer m_retry_timer;    ///< to open another connection
    EventLoop::Timer m_guard_timer;    ///< to open the guard step
    EventLoop::Timer m_network_timer;  ///< to try another way than the network
    std::chrono::seconds m_retry_after{1};
};

} // namespace gpuq::cli
