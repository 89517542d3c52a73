// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// When a shell that nobody sits at gives its GPU back: after a while when it was granted and
/// nobody came, after a longer while without any work when everybody has left. Pure.
class Abandonment {
public:
    using Clock = std::chrono::steady_clock;
    struct Limits {
        std::chrono::milliseconds unclaimed; ///< nobody ever came
        std::chrono::milliseconds idle;      ///< nobody is there, and nothing happens
    };
    Abandonment(Clock::time_point started, Limits limits)
        : m_limits(limits)
        , m_since(started)
    {
    }

    struct Seen {
        Clock::time_point now;
        bool attached = false;     ///< somebody sits there
        bool was_attached = false; ///< somebody once did
        Clock::time_point last_output{};
        std::chrono::milliseconds cpu_time{0}; ///< of the shell and all below it
    };
    /// Why the shell is to be ended now, for people.
    std::optional<std::string> look(const Seen& seen);
    /// When to look again. What works is found to work by looking at least once a minute.
    Clock::time_point next_look(Clock::time_point now) const;

private:
    std::chrono::milliseconds limit() const
    {
        return m_claimed ? m_limits.idle : m_limits.unclaimed;
    }

    Limits m_limits;
    bool m_claimed = false;
    bool m_attached = false;
    Clock::time_point m_since; ///< of being alone and idle
    std::chrono::milliseconds m_cpu_time{0};
    std::optional<Clock::time_point> m_looked_at;
};

} // namespace gpuq::supervisor
