// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/event_loop.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <utility>

// poll(2) is sufficient: a loop has a few dozen descriptors, and their set changes in most rounds,
// for which epoll(7) would need a system call per change. Lists keep their order while handlers
// run: removed entries are only marked, added ones are appended, and sweep() erases at the end.
namespace gpuq {
namespace {

constexpr short k_always = POLLHUP | POLLERR | POLLNVAL; ///< reported even if not asked for

} // namespace

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept
{
    reset();
    m_watched = std::move(other.m_watched);
    return *this;
}

void EventLoop::Watch::reset()
{
    if (m_watched) {
        m_watched->removed = true;
        m_watched.reset();
    }
}

EventLoop::Timer::Timer(EventLoop& loop, std::function<void()> handle)
    : m_timed(std::make_shared<Timed>())
{
    m_timed->handle = std::move(handle);
    loop.m_timers.push_back(m_timed);
}

EventLoop::Timer::~Timer()
{
    m_timed->removed = true;
    stop();
}

void EventLoop::Timer::start_at(Moment when)
{
    m_timed->due = when;
    m_timed->period = {};
}

void EventLoop::Timer::repeat(Span period)
{
    start_in(period);
    m_timed->period = period;
}

EventLoop::Watch EventLoop::watch(std::function<Interest()> interest,
                                  std::function<void(short ready)> handle)
{
    auto watched = std::make_shared<Watched>();
    watched->interest = std::move(interest);
    watched->handle = std::move(handle);
    m_watches.push_back(watched);
    return Watch(std::move(watched));
}

EventLoop::Watch EventLoop::watch(std::function<Interest()> interest, std::function<void()> handle)
{
    return watch(std::move(interest), [handle = std::move(handle)](short) { handle(); });
}

void EventLoop::run_once(std::optional<Span> longest)
{
    sweep();
    prepare();
    wait(longest);
    call_watches();
    call_timers();
}

void EventLoop::prepare()
{
    m_polled.clear();
    for (const auto& each : m_watches) {
        const Interest interest = each->interest();
        m_polled.push_back({interest.fd, interest.events, 0});
    }
}

void EventLoop::wait(std::optional<Span> longest)
{
    if (::poll(m_polled.data(), m_polled.size(), milliseconds(longest)) >= 0) {
        return;
    }
    const bool interrupted = errno == EINTR;
    for (pollfd& each : m_polled) {
        each.revents = 0;
    }
    if (!interrupted) {
        poll_one_by_one();
    }
}

std::optional<EventLoop::Moment> EventLoop::next_due() const
{
    std::optional<Moment> next;
    for (const auto& each : m_timers) {
        if (!each->removed && each->due) {
            next = next ? std::min(*next, *each->due) : each->due;
        }
    }
    return next;
}

int EventLoop::milliseconds(std::optional<Span> longest) const
{
    const bool watches = std::any_of(m_polled.begin(), m_polled.end(),
                                     [](const pollfd& each) { return each.fd >= 0; });
    std::optional<Span> left = longest;
    if (const auto due = next_due()) {
        const Span until = *due - Clock::now();
        left = left ? std::min(*left, until) : until;
    }
    if (!left) {
        return watches ? -1 : 0;
    }
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(*left).count();
    return static_cast<int>(std::clamp<long long>(rounded, 0, INT_MAX));
}

/// poll() accepts no more than RLIMIT_NOFILE descriptors, and that limit may have been lowered.
void EventLoop::poll_one_by_one()
{
    constexpr int k_pause_ms = 10;
    ::poll(nullptr, 0, k_pause_ms);
    for (pollfd& each : m_polled) {
        if (::poll(&each, 1, 0) < 0) {
            each.revents = 0;
        }
    }
}

void EventLoop::call_watches()
{
    for (std::size_t i = 0; i < m_polled.size(); ++i) {
        const short ready = m_polled[i].revents;
        const std::shared_ptr<Watched> each = m_watches[i]; // may be removed by its own handler
        if (ready == 0 || each->removed) {
            continue;
        }
        const Interest interest = each->interest(); // other handlers may have changed it
        if (interest.fd == m_polled[i].fd && (ready & (interest.events | k_always)) != 0) {
            each->handle(ready);
        }
    }
}

void EventLoop::call_timers()
{
    const Moment now = Clock::now();
    std::vector<std::shared_ptr<Timed>> due;
    std::copy_if(m_timers.begin(), m_timers.end(), std::back_inserter(due),
                 [&](const auto& each) { return each->due && *each->due <= now; });
    std::stable_sort(due.begin(), due.end(),
                     [](const auto& one, const auto& other) { return *one->due < *other->due; });
    for (const auto& each : due) {
        if (!each->due || *each->due > now) {
            continue; // stopped or started again by a handler
        }
        each->due = each->next(now);
        each->handle();
    }
}

std::optional<EventLoop::Moment> EventLoop::Timed::next(Moment now) const
{
    if (period == Span{}) {
        return std::nullopt;
    }
    return *due + period > now ? *due + period : now + period;
}

void EventLoop::sweep()
{
    std::erase_if(m_watches, [](const auto& each) { return each->removed; });
    std::erase_if(m_timers, [](const auto& each) { return each->removed; });
}

} // namespace gpuq
