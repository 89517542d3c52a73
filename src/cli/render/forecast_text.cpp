// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/forecast_text.h"

#include "core/number.h"
#include "report/ending_text.h"

#include <fmt/format.h>

#include <chrono>

namespace gpuq::cli {
namespace {

/// Shorter waits are those for Slurm's next cycle.
constexpr std::chrono::seconds k_at_once{60};
constexpr double k_few = 30;

std::string when(Time at, Time now)
{
    return fmt::format("{} (in {})", clock_text(at, now),
                       describe(std::chrono::ceil<std::chrono::minutes>(at - now)));
}

} // namespace

std::string forecast_text(const StartForecast& forecast, Time now)
{
    if (!forecast.p50 || (forecast.p90 && *forecast.p90 <= now)) {
        return "";
    }
    if (!forecast.p90) {
        return fmt::format("50 % by {}", clock_text(*forecast.p50, now));
    }
    const std::string p90 = clock_text(*forecast.p90, now);
    const std::string p50 = clock_text(*forecast.p50, now);
    return *forecast.p50 <= now || p50 == p90 ? fmt::format("90 % by {}", p90)
                                              : fmt::format("50 % by {}, 90 % by {}", p50, p90);
}

std::string forecast_in_full(const StartForecast& forecast, Time now)
{
    const auto soon = [&](const std::optional<Time>& at) { return at && *at <= now + k_at_once; };
    if (soon(forecast.p90)) {
        return "starts at once";
    }
    const std::string first =
        soon(forecast.p50)
            ? "starts at once with a probability of 50 %"
            : fmt::format("starts by {} with a probability of 50 %", when(*forecast.p50, now));
    if (forecast.p90) {
        return fmt::format("{}, by {} with 90 %", first, when(*forecast.p90, now));
    }
    return fmt::format("{}; {}", first,
                       forecast.unknown.empty() ? "jobs without a time limit may be in its way"
                                                : forecast.unknown);
}

std::string observed_text(double observed)
{
    return observed < k_few ? "few jobs have been seen to end here: their run times are assumed"
                            : fmt::format("run times as of {:.0f} jobs that ended", observed);
}

} // namespace gpuq::cli
