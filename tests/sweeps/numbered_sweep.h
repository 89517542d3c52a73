// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "sweeps/taker.h"

#include <chrono>
#include <string>
#include <vector>

/// A sweep with one parameter, `n`, whose values are the numbers of its tries.
namespace gpuq::sweeps {

inline RunKey numbered_key(unsigned int number)
{
    return RunKey::make(Time(std::chrono::seconds(1'700'000'000)),
                        {static_cast<unsigned char>(number % 256),
                         static_cast<unsigned char>(number / 256), 2, 3, 4, 5, 6, 7});
}

inline const RunKey k_numbered_sweep = numbered_key(65535);
constexpr LinkNumber k_first{1};
inline const Time k_first_taken = Time(std::chrono::seconds(1'700'000'100));

inline Sweep numbered_sweep(const std::string& name)
{
    Sweep sweep{name, {"n"}, {}, 1, std::nullopt, {k_numbered_sweep}};
    sweep.run.submitted_at = k_numbered_sweep.made_at();
    sweep.run.request.program = {"train", "{n}"};
    sweep.run.request.name = name;
    return sweep;
}

inline std::vector<Values> numbered_tries(int count)
{
    std::vector<Values> tries;
    for (int n = 1; n <= count; ++n) {
        tries.push_back({std::to_string(n)});
    }
    return tries;
}

inline TryEvent end_of_taken(const TryTaker::Taken& taken, TryEnd end = TryEnd::finished,
                             int status = 0)
{
    TryEvent event{TryEvent::Kind::ended, taken.number, taken.attempt,
                   k_first_taken + std::chrono::seconds(1)};
    event.end = end;
    event.status = status;
    return event;
}

} // namespace gpuq::sweeps
