// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <utility>
#include <vector>

namespace gpuq {

/// Waits for descriptors and times, and calls a handler for each that is ready.
///
/// The owner runs rounds until its work is done:
///
///     while (!is_over()) {
///         loop.run_once();
///     }
///
/// A round asks every watch for its interest, waits, calls the handlers of the descriptors that
/// are ready, in the order in which the watches were added, each at most once, then the handlers of
/// the timers that are due, the earliest first. So neither descriptors nor timers can starve.
///
/// Handlers may add and remove watches and start and stop timers, including their own: a removed
/// watch or stopped timer is no longer called, and an added watch is first polled in the next
/// round. They must not call run_once(). Their exceptions leave run_once().
///
/// The loop belongs to one thread. It installs no signal handler: watch a signalfd. A signal that
/// interrupts a round ends its wait, and timers that are due are called.
class EventLoop {
public:
    using Clock = std::chrono::steady_clock;
    using Moment = Clock::time_point;
    using Span = Clock::duration;

    /// The events that a watch waits for. Only the hangup of its descriptor is reported if `events`
    /// is 0, and nothing if `fd` is negative.
    struct Interest {
        int fd = -1;
        short events = 0; ///< of poll(2)
    };
    static Interest to_read(int fd, bool wanted = true) { return {wanted ? fd : -1, POLLIN}; }
    static Interest to_write(int fd, bool wanted = true) { return {wanted ? fd : -1, POLLOUT}; }
    static Interest to_hang_up(int fd) { return {fd, 0}; }

private:
    struct Watched {
        std::function<Interest()> interest;
        std::function<void(short ready)> handle;
        bool removed = false;
    };
    struct Timed {
        std::function<void()> handle;
        std::optional<Moment> due;
        Span period{}; ///< of a timer that repeats
        bool removed = false;
        std::optional<Moment> next(Moment now) const;
    };

public:
    /// Removes a watch when destroyed. May outlive the loop.
    class [[nodiscard]] Watch {
    public:
        Watch() = default;
        Watch(Watch&&) = default;
        Watch& operator=(Watch&& other) noexcept;
        ~Watch() { reset(); }
        void reset();

    private:
        friend EventLoop;
        explicit Watch(std::shared_ptr<Watched> watched)
            : m_watched(std::move(watched))
        {
        }
        std::shared_ptr<Watched> m_watched; ///< shared with the loop, which may be calling it
    };

    /// Calls `handle` at a time, again and again if wanted. Its functions may be called at any
    /// time. May outlive the loop.
    class Timer {
    public:
        Timer(EventLoop& loop, std::function<void()> handle);
        Timer(const Timer&) = delete;
        Timer& operator=(const Timer&) = delete;
        ~Timer();

        /// Replaces the time of a timer that is already started. A time in the past is due in the
        /// next round, or in this one if its timers have not been called yet.
        void start_at(Moment when);
        void start_in(Span span) { start_at(Clock::now() + span); }
        /// From now on, every `period`. Periods that were missed are skipped.
        void repeat(Span period);
        void stop() { m_timed->due.reset(); }
        /// False for a timer that was called and not started again.
        bool is_started() const { return m_timed->due.has_value(); }
        std::optional<Moment> due() const { return m_timed->due; }

    private:
        std::shared_ptr<Timed> m_timed; ///< shared with the loop, which may be calling it
    };

    EventLoop() = default;
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    /// `interest` is asked before each wait, so that it follows from the state of its owner, and
    /// again before `handle` is called, in case another handler has changed that state; it must not
    /// change the loop. `ready`: the events of poll(2), with POLLNVAL for a closed descriptor. A
    /// handler must consume the event or end the interest, or the next round returns at once. It
    /// reads and writes without blocking, since a descriptor may have been closed since the wait
    /// and its number used again.
    Watch watch(std::function<Interest()> interest, std::function<void(short ready)> handle);
    Watch watch(std::function<Interest()> interest, std::function<void()> handle);
    /// A watch that lasts as long as the loop.
    template <typename Handle>
    void add(std::function<Interest()> interest, Handle handle)
    {
        watch(std::move(interest), std::move(handle)).m_watched.reset();
    }

    /// One round. It waits at most `longest`, if given; without it until something is ready.
    /// Returns at once if there is nothing to wait for.
    void run_once(std::optional<Span> longest = std::nullopt);

    /// When the next timer is due; nothing if none is started.
    std::optional<Moment> next_due() const;

private:
    void prepare();
    void wait(std::optional<Span> longest);
    int milliseconds(std::optional<Span> longest) const;
    void poll_one_by_one();
    void call_watches();
    void call_timers();
    void sweep();

    std::vector<std::shared_ptr<Watched>> m_watches; ///< the first m_polled.size() are polled
    std::vector<std::shared_ptr<Timed>> m_timers;
    std::vector<pollfd> m_polled;
};

} // namespace gpuq
