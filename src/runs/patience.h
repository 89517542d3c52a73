// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/clock.h"

#include <chrono>
#include <functional>
#include <string>

namespace gpuq {

/// How long to retry when Slurm does not respond, and how to wait in between.
struct Patience {
    std::chrono::seconds limit{60};
    /// Called when no response arrives.
    std::function<void(const std::string&)> notice;
    /// Sleeps; returns false if the user wants to wait no longer.
    std::function<bool(std::chrono::milliseconds)> pause;
};

/// Repeats a query once a second while it fails with `unreachable` and the limit is not reached.
/// Only for queries without side effects. Calls `notice` once, after the first failure.
template <typename Question>
auto query_with_retries(Clock& clock, const Patience& patience, Question question)
{
    const auto begin = clock.steady();
    auto answer = question();
    bool reported = false;
    while (!answer && answer.error().kind == Error::Kind::unreachable &&
           clock.steady() - begin < patience.limit) {
        if (!reported) {
            patience.notice(answer.error().text);
            reported = true;
        }
        if (!patience.pause(std::chrono::seconds(1))) {
            break;
        }
        answer = question();
    }
    return answer;
}

} // namespace gpuq
