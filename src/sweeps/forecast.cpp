// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/forecast.h"

#include <algorithm>

namespace gpuq::sweeps {
namespace {

using std::chrono::microseconds;

bool has_succeeded(const Try& entry)
{
    return entry.state == Try::State::ended && entry.end && entry.end->end == TryEnd::finished &&
           entry.end->status == 0;
}

std::optional<microseconds> mean_time(const std::vector<Try>& tries)
{
    microseconds sum{0};
    int count = 0;
    for (const Try& entry : tries) {
        if (has_succeeded(entry)) {
            sum += entry.used;
            ++count;
        }
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
}

microseconds used_until(const Try& entry, Time now)
{
    const bool runs = entry.state == Try::State::running && entry.began_at;
    return entry.used +
           (runs ? std::max(now - *entry.began_at, Time::duration(0)) : Time::duration(0));
}

} // namespace

microseconds typical_time(const std::vector<Try>& tries, Time now)
{
    microseconds sum{0};
    int running = 0;
    for (const Try& entry : tries) {
        if (entry.state == Try::State::running) {
            sum += used_until(entry, now);
            ++running;
        }
    }
    return std::max(mean_time(tries).value_or(microseconds(0)), sum / std::max(running, 1));
}

Forecast forecast_of(const std::vector<Try>& tries, const Sweep& sweep, std::size_t workers,
                     Time now)
{
    const auto mean = mean_time(tries);
    if (!mean) {
        return {};
    }
    microseconds left{0}, longest{0};
    for (const Try& entry : tries) {
        if (entry.state != Try::State::ended) {
            const auto rest = std::max(*mean - used_until(entry, now), microseconds(0));
            left += rest;
            longest = std::max(longest, rest);
        }
    }
    const int per_gpu = std::max(sweep.per_gpu, 1);
    Forecast forecast;
    forecast.gpu_time = left * sweep.run.request.gpus.count / per_gpu;
    if (sweep.gpu_time) {
        const auto allowed = std::max(
            microseconds(*sweep.gpu_time) - gpu_time_used(tries, sweep, now), microseconds(0));
        if (*forecast.gpu_time > allowed) {
            forecast.gpu_time = allowed;
            return forecast;
        }
    }
    if (workers > 0) {
        const auto side_by_side = static_cast<std::int64_t>(workers) * per_gpu;
        forecast.finish = now + std::max(left / side_by_side, longest);
    }
    return forecast;
}

} // namespace gpuq::sweeps
