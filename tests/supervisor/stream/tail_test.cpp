// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/tail.h"

#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

TEST(Tail, HasFiveLines)
{
    Tail tail;
    tail.add(Stream::out, "1\n2\n3\n");
    EXPECT_EQ(tail.last_lines(), "1\n2\n3\n");
    tail.add(Stream::out, "4\n5\n6\n7");
    EXPECT_EQ(tail.last_lines(), "3\n4\n5\n6\n7");
    tail.add(Stream::out, "\n");
    EXPECT_EQ(tail.last_lines(), "3\n4\n5\n6\n7\n");
}

TEST(Tail, PrefersStderr)
{
    Tail tail;
    EXPECT_EQ(tail.last_lines(), "");
    tail.add(Stream::err, "why\n");
    tail.add(Stream::out, "what\n");
    EXPECT_EQ(tail.last_lines(), "why\n");
}

TEST(Tail, IsBoundedWhateverComes)
{
    Tail tail;
    for (int i = 0; i < 1000; ++i) {
        tail.add(Stream::out, std::string(1000, 'x'));
    }
    tail.add(Stream::out, std::string(1 << 20, 'y') + "\nend\n");
    EXPECT_EQ(tail.last_lines().size(), 2048U);
    EXPECT_TRUE(tail.last_lines().ends_with("y\nend\n"));
}

TEST(Tail, FindsAFullGpuAcrossPieces)
{
    Tail tail;
    tail.add(Stream::out, "RuntimeError: CUDA out of");
    EXPECT_FALSE(tail.has_gpu_out_of_memory());
    tail.add(Stream::out, " memory. Tried to allocate\n");
    EXPECT_TRUE(tail.has_gpu_out_of_memory());
    tail.add(Stream::out, std::string(200'000, 'x'));
    EXPECT_FALSE(tail.has_gpu_out_of_memory()) << "long ago";
}

} // namespace
} // namespace gpuq::supervisor
