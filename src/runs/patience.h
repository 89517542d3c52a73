// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "ports/clock.h"

#include <chrono>
#include <functional>
#include <string>

namespace gpuq {

/// How long to keep asking when Slurm does not answer, and what to do in between.
struct Patience {
    std::chrono::seconds limit{60};
    /// Told when an answer fails to come.
    std::function<void(const std::string&)> notice;
    /// Sleeps; false when the person has lost patience.
    std::function<bool(std::chrono::milliseconds)> pause;
};

/// Asks again, once a second, while the answer is `unreachable` and there is patience left. For
/// questions that change nothing. One notice, however often it asks.
template <typename Question>
auto ask_patiently(Clock& clock, const Patience& patience, Question question)
{
    const auto begin = clock.steady();
    auto answer = question();
    bool told = false;
    while (!answer && answer.error().kind == Error::Kind::unreachable &&
           clock.steady() - begin < patience.limit) {
        if (!told) {
            patience.notice(answer.error().text);
            told = true;
        }
        if (!patience.pause(std::chrono::seconds(1))) {
            break;
        }
        answer = question();
    }
    return answer;
}

} // namespace gpuq
