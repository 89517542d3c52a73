// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/spelling.h"

#include <fmt/format.h>

namespace gpuq::tune {

std::string yaml_time(sim::Seconds time)
{
    using namespace std::chrono_literals;
    constexpr auto k_days_from = 72h; // below, hours are customary: `48h`
    if (time >= k_days_from && time % 24h == 0s) {
        return fmt::format("{}d", time / 24h);
    }
    return time % 1h == 0s && time > 0s     ? fmt::format("{}h", time / 1h)
           : time % 1min == 0s && time > 0s ? fmt::format("{}m", time / 1min)
                                            : fmt::format("{}s", time.count());
}

} // namespace gpuq::tune
