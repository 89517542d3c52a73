// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/lower_case.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(LowerCase, ChangesAsciiLettersAlone)
{
    EXPECT_EQ(lower_case("PartitionName=A-Z_09[`@ \xc3\x89"), "partitionname=a-z_09[`@ \xc3\x89");
}

} // namespace
} // namespace gpuq
