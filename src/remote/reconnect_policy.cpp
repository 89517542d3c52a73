// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/reconnect_policy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Span, 8> k_pauses = {0ms, 250ms, 500ms, 1s, 2s, 4s, 8s, 15s};

} // namespace

/// A random delay up to the current maximum, so that many clients do not reconnect at once
/// (xorshift).
Span ReconnectPolicy::pause()
{
    const Span most = std::min(m_pace.longest_pause,
                               k_pauses[std::min<std::size_t>(m_failures, k_pauses.size() - 1)]);
    m_random ^= m_random << 13;
    m_random ^= m_random >> 7;
    m_random ^= m_random << 17;
    constexpr std::uint64_t k_steps = 1000;
    return most * (m_random % (k_steps + 1)) / k_steps;
}

ReconnectPolicy::Do ReconnectPolicy::step(Moment now)
{
    switch (m_state) {
    case State::over:
        return Do::nothing;
    case State::live:
        if (now >= m_dead_at) {
            m_silent += 1;
            return Do::drop;
        }
        if (now >= m_beat_at) {
            m_beat_at = now + m_pace.beat;
            return Do::beat;
        }
        return Do::nothing;
    case State::connecting:
    case State::reconnecting:
    case State::needs_user:
        break;
    }
    if (m_attempting) {
        return m_give_up_at && now >= *m_give_up_at ? Do::drop : Do::nothing;
    }
    const bool waits = m_attempt_at && now < *m_attempt_at;
    if (m_state == State::needs_user ? !std::exchange(m_wanted, false) : waits) {
        return Do::nothing;
    }
    m_attempting = true;
    m_attempt_begun = now;
    m_attempts += 1;
    m_give_up_at.reset();
    if (m_state == State::reconnecting) {
        m_give_up_at = now + k_attempt;
    } else if (m_state == State::needs_user) {
        m_give_up_at = now + (m_asking == Asking::user ? k_after_answer : k_attempt);
    } else if (m_pace.first) {
        m_give_up_at = now + *m_pace.first;
    }
    return Do::connect;
}

std::optional<Moment> ReconnectPolicy::next() const
{
    switch (m_state) {
    case State::over:
        return std::nullopt;
    case State::live:
        return std::min(m_beat_at, m_dead_at);
    case State::needs_user:
        if (m_wanted) {
            return Moment{};
        }
        return m_attempting ? m_give_up_at : std::nullopt;
    case State::connecting:
    case State::reconnecting:
        break;
    }
    return m_attempting ? m_give_up_at : m_attempt_at;
}

void ReconnectPolicy::connected(Moment now)
{
    m_state = State::live;
    m_connections += 1;
    m_attempting = false;
    m_asking = Asking::nobody;
    m_useful = false;
    m_live_since = now;
    m_beat_at = now + m_pace.beat;
    m_dead_at = now + m_pace.silence;
}

void ReconnectPolicy::heard(Moment now)
{
    m_dead_at = std::max(m_dead_at, now + m_pace.silence);
}

void ReconnectPolicy::lost(Moment now)
{
    if (m_state == State::connecting) {
        m_state = State::over;
        return;
    }
    if (m_state == State::live) {
        m_state = State::reconnecting;
        m_attempts = 0;
        m_failures = now - m_live_since >= k_steady ? 0
                     : m_useful                     ? std::min(m_failures, 1)
                                                    : m_failures;
    }
    m_state = State::reconnecting;
    m_attempting = false;
    m_asking = Asking::nobody;
    m_attempt_at = now + (std::exchange(m_at_once, false) ? Span{} : pause());
    m_failures += 1;
}

void ReconnectPolicy::denied()
{
    m_state = State::needs_user;
    m_attempting = m_wanted = false;
    m_asking = Asking::nobody;
}

void ReconnectPolicy::attempt(Asking asking)
{
    if (m_state == State::needs_user && !m_attempting) {
        m_wanted = true;
        m_asking = asking;
    }
}

void ReconnectPolicy::moved(Moment now)
{
    if (m_state == State::reconnecting && m_attempting && now - m_attempt_begun >= k_fair_chance) {
        m_give_up_at = now;
        m_at_once = true;
    }
    nudge(now);
}

void ReconnectPolicy::slept(std::chrono::nanoseconds in_all, Moment now)
{
    if (in_all - m_slept.value_or(in_all) > k_nap) {
        moved(now);
    }
    m_slept = in_all;
}

void ReconnectPolicy::nudge(Moment now)
{
    if (m_state == State::live) {
        m_beat_at = now;
        m_dead_at = std::min(m_dead_at, now + k_probe);
    } else if (m_state == State::reconnecting && !m_attempting) {
        m_attempt_at = now;
    }
}

} // namespace gpuq::remote
