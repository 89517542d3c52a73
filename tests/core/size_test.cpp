// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/size.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

TEST(Memory, IsReadAsSlurmReadsIt)
{
    EXPECT_EQ(*parse_memory_mib("16G"), 16384u);
    EXPECT_EQ(*parse_memory_mib("500M"), 500u);
    EXPECT_EQ(*parse_memory_mib("500"), 500u);
    EXPECT_EQ(*parse_memory_mib("2T"), 2u << 20);
    EXPECT_EQ(*parse_memory_mib("1K"), 1u); // rounded up
    EXPECT_EQ(*parse_memory_mib("1025K"), 2u);
    EXPECT_EQ(*parse_memory_mib("16GB"), 16384u);
    EXPECT_EQ(*parse_memory_mib("16GiB"), 16384u);
    EXPECT_EQ(*parse_memory_mib("16g"), 16384u);
    EXPECT_EQ(*parse_memory_mib("0"), 0u);
}

TEST(Memory, RefusesWhatIsNone)
{
    for (const char* text : {"", "G", "-1", "+1", "1.5G", "1e9", "16 G", "16X", "16GG", "16B",
                             "16iB", "16GiBB", "NaN", "0x10", "99999999999999999999", "2000000T"}) {
        EXPECT_FALSE(parse_memory_mib(text)) << text;
    }
    EXPECT_EQ(parse_memory_mib("1.5G").error().text,
              "'1.5G' is not an amount of memory: write it like 16G or 500M");
}

TEST(Memory, IsShownToPeople)
{
    EXPECT_EQ(memory_text(16384), "16 GiB");
    EXPECT_EQ(memory_text(1500), "1500 MiB");
    EXPECT_EQ(memory_text(0), "0 MiB");
}

} // namespace
} // namespace gpuq
