// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"
#include "ports/clock.h"

#include <chrono>
#include <functional>

namespace gpuq::supervisor {

/// The supervisor's event loop. Its owner does most of its work after each round, in a fixed order,
/// and asks for the next round with wake_at(); handlers of descriptors only take what has arrived.
/// Belongs to one thread.
class Loop {
public:
    using Steady = std::chrono::steady_clock::time_point;
    using Interest = EventLoop::Interest;
    using Watch = EventLoop::Watch;

    /// Takes the process's SIGCHLD and SIGTERM, which must be blocked. `clock` must outlive the
    /// object.
    explicit Loop(gpuq::Clock& clock);

    /// The current round's time, taken after its wait.
    Steady now() const { return m_now; }
    /// The next round begins no later than this.
    void wake_at(Steady when);
    /// An eventfd: each write to it, from any thread, begins a round.
    int waker() const { return m_waker.get(); }

    /// As in EventLoop. `handle` sees the time after the wait.
    Watch watch(std::function<Interest()> interest, std::function<void(short ready)> handle);
    Watch watch(std::function<Interest()> interest, std::function<void()> handle);
    void add(std::function<Interest()> interest, std::function<void(short ready)> handle);
    void add(std::function<Interest()> interest, std::function<void()> handle);
    /// `terminate`: called for each SIGTERM.
    void on_terminate(std::function<void()> terminate) { m_terminate = std::move(terminate); }

    /// Waits, and calls the handlers of signals and descriptors.
    void run_once();

private:
    std::function<void(short)> with_time(std::function<void(short)> handle);
    void take_signals();
    void take_wakeups();

    gpuq::Clock& m_clock;
    EventLoop m_events;
    Descriptor m_signals, m_waker;
    std::function<void()> m_terminate;
    Steady m_now, m_next;
};

} // namespace gpuq::supervisor
