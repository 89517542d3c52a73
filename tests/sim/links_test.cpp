// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/links.h"

#include <gtest/gtest.h>

namespace gpuq::sim {
namespace {

TEST(Links, StayOverWhenTheirMemoryIsReleased)
{
    Links links;
    for (std::size_t job = 0; job < 1000; ++job) {
        Link link;
        link.job = job;
        EXPECT_EQ(links.add(std::move(link)), job);
    }
    for (std::uint32_t number = 0; number < 1000; ++number) {
        if (number != 700) {
            links.finish(number);
        }
    }
    EXPECT_TRUE(links.is_over(0));
    EXPECT_TRUE(links.is_over(699)) << "in the block of one that is not";
    EXPECT_FALSE(links.is_over(700));
    EXPECT_EQ(links[700].job, 700U);
    EXPECT_TRUE(links.is_over(999));
    EXPECT_EQ(links.add(Link{}), 1000U);
    EXPECT_FALSE(links.is_over(1000));
}

} // namespace
} // namespace gpuq::sim
