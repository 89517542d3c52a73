// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/loop.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// No step of a round needs to be repeated earlier than it asked for.
constexpr auto k_longest_wait = 60'000ms;

Descriptor open_signals()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    return Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

} // namespace

Loop::Loop(gpuq::Clock& clock)
    : m_clock(clock)
    , m_signals(open_signals())
    , m_waker(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    , m_now(clock.steady())
    , m_next(m_now)
{
    add([this] { return EventLoop::to_read(m_signals.get()); }, [this] { take_signals(); });
    add([this] { return EventLoop::to_read(m_waker.get()); }, [this] { take_wakeups(); });
}

std::function<void(short)> Loop::with_time(std::function<void(short)> handle)
{
    return [this, handle = std::move(handle)](short ready) {
        m_now = m_clock.steady();
        handle(ready);
    };
}

Loop::Watch Loop::watch(std::function<Interest()> interest, std::function<void(short ready)> handle)
{
    return m_events.watch(std::move(interest), with_time(std::move(handle)));
}

Loop::Watch Loop::watch(std::function<Interest()> interest, std::function<void()> handle)
{
    return watch(std::move(interest), [handle = std::move(handle)](short) { handle(); });
}

void Loop::add(std::function<Interest()> interest, std::function<void(short ready)> handle)
{
    m_events.add(std::move(interest), with_time(std::move(handle)));
}

void Loop::add(std::function<Interest()> interest, std::function<void()> handle)
{
    add(std::move(interest), [handle = std::move(handle)](short) { handle(); });
}

void Loop::wake_at(Steady when)
{
    m_next = std::min(m_next, when);
}

void Loop::run_once()
{
    const auto wait = std::clamp<EventLoop::Span>(m_next - m_clock.steady(), 0ms, k_longest_wait);
    m_next = Steady::max();
    m_events.run_once(wait);
    m_now = m_clock.steady();
}

void Loop::take_signals()
{
    signalfd_siginfo signal{};
    while (::read(m_signals.get(), &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGTERM && m_terminate) {
            m_terminate();
        }
    }
}

void Loop::take_wakeups()
{
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t woken = ::read(m_waker.get(), &count, sizeof count);
}

} // namespace gpuq::supervisor
