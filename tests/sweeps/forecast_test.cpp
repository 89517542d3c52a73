// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/forecast.h"

#include "fakes/now.h"

#include <gtest/gtest.h>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;

Try succeeded(std::chrono::seconds used, int status = 0)
{
    Try entry;
    entry.state = Try::State::ended;
    entry.attempt = 1;
    entry.used = used;
    entry.end = TryEvent{TryEvent::Kind::ended};
    entry.end->status = status;
    return entry;
}

Try running_since(Time begin)
{
    Try entry;
    entry.state = Try::State::running;
    entry.attempt = 1;
    entry.began_at = begin;
    return entry;
}

Sweep sweep_on(int gpus)
{
    Sweep sweep{"cal", {}, {}, 1, {}, {RunKey::make(k_now, {})}, {}};
    sweep.run.request.gpus.count = gpus;
    return sweep;
}

TEST(Forecast, IsUnknownUntilATryHasSucceeded)
{
    const Forecast forecast =
        forecast_of({Try(), running_since(k_now - 1h), succeeded(1min, 1)}, sweep_on(1), 1, k_now);
    EXPECT_FALSE(forecast.gpu_time);
    EXPECT_FALSE(forecast.finish);
}

TEST(Forecast, SharesTheMeanTimesOfTheTriesLeftBetweenTheWorkers)
{
    const std::vector<Try> tries{succeeded(5min),
                                 succeeded(15min),
                                 succeeded(1s, 3),
                                 running_since(k_now - 4min),
                                 Try(),
                                 Try()};
    const Forecast forecast = forecast_of(tries, sweep_on(2), 2, k_now);
    EXPECT_EQ(forecast.gpu_time, 2 * 26min);
    EXPECT_EQ(forecast.finish, k_now + 13min);
    EXPECT_FALSE(forecast_of(tries, sweep_on(2), 0, k_now).finish) << "no worker";
}

TEST(Forecast, LastsAtLeastAsLongAsOneTry)
{
    EXPECT_EQ(forecast_of({succeeded(10min), Try()}, sweep_on(1), 8, k_now).finish, k_now + 10min);
}

TEST(Forecast, EndsAtTheLimitOfTheSweep)
{
    Sweep sweep = sweep_on(1);
    sweep.gpu_time = 15min;
    const Forecast forecast = forecast_of({succeeded(10min), Try(), Try()}, sweep, 1, k_now);
    EXPECT_EQ(forecast.gpu_time, 5min);
    EXPECT_FALSE(forecast.finish) << "some tries never run";
}

} // namespace
} // namespace gpuq::sweeps
