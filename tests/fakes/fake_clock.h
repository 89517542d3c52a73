// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/clock.h"

namespace gpuq::fakes {

/// A clock that advances only on request.
class FakeClock : public Clock {
public:
    explicit FakeClock(Time now = Time(std::chrono::seconds(1'800'000'000)))
        : m_now(now)
    {
    }

    Time now() override { return m_now; }
    std::chrono::steady_clock::time_point steady() override { return m_steady; }

    void advance(std::chrono::microseconds by)
    {
        m_now += by;
        m_steady += by;
    }
    /// Sets the wall clock, as an administrator would; the steady clock is unaffected.
    void jump(std::chrono::microseconds by) { m_now += by; }

private:
    Time m_now;
    std::chrono::steady_clock::time_point m_steady{std::chrono::hours(1)};
};

} // namespace gpuq::fakes
