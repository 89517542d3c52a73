// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/totals.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpuq::sweeps {
namespace {

TEST(SweepTotals, AreWrittenAndRead)
{
    Totals totals{
        21,   {1, 2, 3, 4, 5, 6},     std::chrono::microseconds(77), Totals::Best{4, 0.25},
        true, "search: exit status 1"};
    EXPECT_EQ(*totals_from_json(to_json(totals)), totals);
    totals.best.reset();
    totals.is_open = false;
    EXPECT_EQ(*totals_from_json(to_json(totals)), totals);
}

TEST(SweepTotals, AreInvalidIfTheyWouldNotShowTheSame)
{
    const Totals infinite{1,     {0, 0, 1, 0, 0, 0},
                          {},    Totals::Best{1, std::numeric_limits<double>::infinity()},
                          false, ""};
    EXPECT_FALSE(totals_from_json(to_json(infinite)));
    Totals other{2, {0, 0, 1, 0, 0, 0}, {}, {}, false, ""};
    EXPECT_FALSE(totals_from_json(to_json(other)));
    EXPECT_FALSE(totals_from_json(""));
    EXPECT_FALSE(totals_from_json("{}"));
}

} // namespace
} // namespace gpuq::sweeps
