// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuq::remote {

using Moment = std::chrono::steady_clock::time_point;
using Span = std::chrono::steady_clock::duration;
inline Moment now()
{
    return std::chrono::steady_clock::now();
}

/// How soon a dead connection is noticed. TCP does not report it: the remote kernel, or that of a
/// proxy, acknowledges data even for a frozen process.
struct Pace {
    Span beat = std::chrono::seconds{5};           ///< heartbeat interval when nothing else is sent
    Span silence = std::chrono::seconds{15};       ///< silence after which the connection is dead
    Span longest_pause = std::chrono::seconds{15}; ///< maximum delay before an attempt
    /// Limit for the first attempt; unset: none, since the user may be typing a password.
    std::optional<Span> first{};
};
/// For interactive sessions.
constexpr Pace k_pace_in_front{std::chrono::seconds{1}, std::chrono::seconds{3}};

/// Decides when to connect, send a heartbeat, declare a connection dead and retry. Pure: time is an
/// input, actions are the output.
class ReconnectPolicy {
public:
    enum class State {
        connecting,
        live,
        reconnecting,
        needs_user, ///< the host requires an interactive login: no automatic attempts
        over
    };
    enum class Do {
        nothing,
        connect, ///< start an attempt
        beat,    ///< send a frame that the peer returns
        drop,    ///< the connection or attempt is dead: close it and call lost()
    };

    /// `seed` is for the jitter of the delays.
    ReconnectPolicy(Pace pace, std::uint64_t seed)
        : m_pace(pace)
        , m_random(seed | 1)
    {
    }

    /// The next action that is due. Call it until it returns `nothing`.
    Do step(Moment now);
    /// When to call step() again.
    std::optional<Moment> next() const;

    /// Hello was received.
    void connected(Moment now);
    /// Data was received.
    void heard(Moment now);
    /// The connection has transferred session data: a later loss is due to the network and not to a
    /// host that refuses.
    void useful()
    {
        m_useful = true;
        confirmed();
    }
    /// The host has sent something besides Hello.
    void confirmed()
    {
        m_confirmed = true;
        m_silent = 0;
    }
    /// The host has begun many connections and then remained silent on each: it would on others.
    bool is_hopeless() const { return !m_confirmed && m_connections >= k_most_silent; }
    /// It has done so lately, until each was dropped: what is sent does not arrive. A user may
    /// wait.
    bool is_deaf() const { return m_silent >= k_most_silent; }
    /// The connection or attempt has ended. A failed first attempt is not retried, since its cause
    /// would persist: the state becomes `over`.
    void lost(Moment now);
    /// The host has refused an attempt that did not ask the user, or the user's answers: the state
    /// becomes `needs_user`.
    void denied();
    /// In state `needs_user`: starts an attempt with or without asking the user.
    enum class Asking { user, nobody };
    void attempt(Asking asking);
    /// True when the current attempt asks the user.
    bool asks() const { return m_attempting && m_asking == Asking::user; }
    /// A question is waiting for the user, without a time limit; it was answered.
    void question() { m_give_up_at.reset(); }
    void answered(Moment now) { m_give_up_at = now + k_after_answer; }
    /// On a key press: attempts at once, or sends a heartbeat that must be answered within
    /// `k_probe`.
    void nudge(Moment now);
    /// The network has changed. Also restarts an attempt that has not made progress, since its
    /// connection may be dead.
    void moved(Moment now);
    /// `in_all`: total time this machine has been suspended since boot. An increase of more than
    /// `k_nap` since the last call means that it has just resumed, which counts as a network
    /// change.
    void slept(std::chrono::nanoseconds in_all, Moment now);

    State state() const { return m_state; }
    /// Number of attempts since the connection was lost.
    int attempts() const { return m_attempts; }

    /// Limit for an attempt to reconnect.
    static constexpr Span k_attempt = std::chrono::seconds{15};
    /// Limit for an attempt that asks the user, not counting the time of the questions: confirming
    /// a push on a phone takes time.
    static constexpr Span k_after_answer = std::chrono::minutes{2};
    static constexpr Span k_probe = std::chrono::seconds{3};
    static constexpr std::chrono::nanoseconds k_nap = std::chrono::seconds{5};
    /// An attempt is not restarted before this time.
    static constexpr Span k_fair_chance = std::chrono::seconds{5};
    /// A connection that lasted this long resets the delays. A shorter one that was useful almost
    /// does.
    static constexpr Span k_steady = std::chrono::seconds{30};
    static constexpr int k_most_silent = 10;

private:
    Span pause();

    Pace m_pace;
    std::uint64_t m_random;
    State m_state = State::connecting;
    bool m_attempting = false;
    bool m_useful = false;
    bool m_confirmed = false;
    int m_connections = 0; ///< in all
    int m_silent = 0;      ///< the last ones, in a row
    bool m_wanted = false; ///< a requested attempt in needs_user
    Asking m_asking = Asking::nobody;
    bool m_at_once = false; ///< skip the delay before the next attempt
    Moment m_attempt_begun;
    int m_attempts = 0;
    int m_failures = 0;                 ///< selects the next delay
    std::optional<Moment> m_attempt_at; ///< unset: at once
    std::optional<Moment> m_give_up_at;
    Moment m_live_since, m_beat_at, m_dead_at;
    std::optional<std::chrono::nanoseconds> m_slept;
};

} // namespace gpuq::remote
