// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuq::remote {

using Moment = std::chrono::steady_clock::time_point;
using Span = std::chrono::steady_clock::duration;

/// How soon a dead connection is noticed. TCP does not tell: the far kernel, or a proxy's,
/// acknowledges for a process that is frozen.
struct Pace {
    Span beat = std::chrono::seconds{5};     ///< how often we let hear of us when nothing else does
    Span silence = std::chrono::seconds{15}; ///< after which nothing heard means dead
    Span longest_pause = std::chrono::seconds{15}; ///< before an attempt
    /// The first attempt takes no longer; none: somebody may be typing a password into it.
    std::optional<Span> first{};
};
/// A person looks at the screen and types.
constexpr Pace k_pace_in_front{std::chrono::seconds{1}, std::chrono::seconds{3}};

/// When to connect, to beat, to take a connection for dead and to try again. Pure: time comes in,
/// what to do comes out.
class Lifeline {
public:
    enum class State {
        connecting,
        live,
        reconnecting,
        needs_user, ///< the host lets in only who answers its questions: no attempt by itself
        over
    };
    enum class Do {
        nothing,
        connect, ///< begin an attempt
        beat,    ///< send something that is answered
        drop,    ///< the connection, or the attempt, is dead: end it and say lost()
    };

    /// `seed` of the jitter.
    Lifeline(Pace pace, std::uint64_t seed)
        : m_pace(pace)
        , m_random(seed | 1)
    {
    }

    /// What is due. To be asked until it says `nothing`.
    Do step(Moment now);
    /// When to ask again.
    std::optional<Moment> next() const;

    /// The far side has said Hello.
    void connected(Moment now);
    /// Anything has come from it.
    void heard(Moment now);
    /// It has brought the session on: a network that drops connections, not a host that refuses.
    void useful() { m_useful = true; }
    /// The connection or the attempt has ended. The first attempt is not repeated: the state is
    /// `over`, for what is wrong then is wrong a second later too.
    void lost(Moment now);
    /// The host has refused an attempt in which nobody was asked, or the answers of one: the state
    /// is `needs_user`.
    void denied();
    /// In that state: an attempt, in which the user is asked or nobody is.
    enum class Asking { user, nobody };
    void attempt(Asking asking);
    /// The present attempt asks the user.
    bool asks() const { return m_attempting && m_asking == Asking::user; }
    /// A question waits for the user, who has as long as they like; it has been answered.
    void question() { m_give_up_at.reset(); }
    void answered(Moment now) { m_give_up_at = now + k_after_answer; }
    /// A key press: an attempt at once, or a beat that has to be answered within `k_probe`.
    void nudge(Moment now);
    /// The network has changed: also an attempt that has not come far is made again, for it may be
    /// talking to nobody.
    void moved(Moment now);
    /// How long this machine has slept since it was started. More than `k_nap` since it was said
    /// last: it has woken up, as if the network had changed.
    void slept(std::chrono::nanoseconds in_all, Moment now);

    State state() const { return m_state; }
    /// Of attempts since the connection was lost.
    int attempts() const { return m_attempts; }

    /// An attempt to come back takes no longer.
    static constexpr Span k_attempt = std::chrono::seconds{15};
    /// The same when it asks, without the time of the questions: a push to a phone takes its time.
    static constexpr Span k_after_answer = std::chrono::minutes{2};
    static constexpr Span k_probe = std::chrono::seconds{3};
    static constexpr std::chrono::nanoseconds k_nap = std::chrono::seconds{5};
    /// An attempt is left alone so long, whatever changes.
    static constexpr Span k_fair_chance = std::chrono::seconds{5};
    /// A connection that held so long begins anew with the pauses; one that was useful for a
    /// shorter time, nearly so.
    static constexpr Span k_steady = std::chrono::seconds{30};

private:
    Span pause();

    Pace m_pace;
    std::uint64_t m_random;
    State m_state = State::connecting;
    bool m_attempting = false;
    bool m_useful = false;
    bool m_wanted = false; ///< an attempt in needs_user
    Asking m_asking = Asking::nobody;
    bool m_at_once = false; ///< the next attempt, whatever the pause
    Moment m_attempt_begun;
    int m_attempts = 0;
    int m_failures = 0;                 ///< which pause comes next
    std::optional<Moment> m_attempt_at; ///< unset: at once
    std::optional<Moment> m_give_up_at;
    Moment m_live_since, m_beat_at, m_dead_at;
    std::optional<std::chrono::nanoseconds> m_slept;
};

} // namespace gpuq::remote
