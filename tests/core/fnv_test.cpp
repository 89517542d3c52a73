// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/fnv.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

/// Test vectors published by the algorithm's authors.
TEST(Fnv1a, gives_the_published_numbers)
{
    EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
    EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

} // namespace
} // namespace gpuq
