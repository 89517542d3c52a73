// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Decides when an unattended shell gives its GPU back: after a while if no client came once the
/// GPU was granted, and after a longer time without work once all clients have left. Pure.
class Abandonment {
public:
    using Clock = std::chrono::steady_clock;
    struct Limits {
        std::chrono::milliseconds unclaimed; ///< limit if no client has ever attached
        std::chrono::milliseconds idle;      ///< limit if no client is attached and nothing happens
    };
    Abandonment(Clock::time_point started, Limits limits)
        : m_limits(limits)
        , m_since(started)
    {
    }

    struct ShellActivity {
        Clock::time_point now;
        bool attached = false;     ///< a client is attached
        bool was_attached = false; ///< a client was attached at some time
        Clock::time_point last_output{};
        std::chrono::milliseconds cpu_time{0}; ///< of the shell and all its descendants
    };
    /// Returns the reason to end the shell now, as a message for users; otherwise nullopt.
    std::optional<std::string> check(const ShellActivity& activity);
    /// When to call `check` again: at least once a minute, because work is detected by comparing
    /// two calls.
    Clock::time_point next_check() const;
    /// True if `check` must be called now, also because clients came or left.
    bool is_due(Clock::time_point now, bool attached) const
    {
        return now >= next_check() || attached != m_attached;
    }

private:
    std::chrono::milliseconds limit() const
    {
        return m_claimed ? m_limits.idle : m_limits.unclaimed;
    }

    Limits m_limits;
    bool m_claimed = false;
    bool m_attached = false;
    Clock::time_point m_since; ///< since when it is unattended and idle
    std::chrono::milliseconds m_cpu_time{0};
    std::optional<Clock::time_point> m_checked_at;
};

} // namespace gpuq::supervisor
