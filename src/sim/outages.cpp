// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/outages.h"

#include <cmath>
#include <random>

namespace gpuq::sim {

std::vector<Outage> outages_of(const Machine& machine, const Failures& failures, Seconds end)
{
    std::vector<Outage> outages;
    for (std::size_t node = 0; node < machine.nodes.size(); ++node) {
        std::mt19937_64 random(node + 1);
        // The library's distributions differ from one compiler to the next.
        const auto next = [&] {
            constexpr double k_parts = 9007199254740992.0; // 2^53
            const double part = (static_cast<double>(random() >> 11) + 1) / k_parts;
            return Seconds{static_cast<std::int64_t>(-std::log(part) *
                                                     static_cast<double>(failures.every.count()))};
        };
        for (Seconds start = next(); start < end; start += failures.down + next()) {
            outages.push_back({static_cast<int>(node), start, start + failures.down});
        }
    }
    return outages;
}

} // namespace gpuq::sim
