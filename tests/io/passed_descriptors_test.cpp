// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/passed_descriptors.h"

#include "fakes/socket_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace gpuq {
namespace {

TEST(PassedDescriptors, ComeWithTheirBytesAndWithNoOthers)
{
    const SocketPair line = socket_pair(0);
    const SocketPair one = socket_pair(0), other = socket_pair(0);
    ASSERT_TRUE(send_with_descriptors(line.one.get(), "ab", {one.one.get(), other.one.get()}));
    ASSERT_TRUE(write_all(line.one.get(), "cd"));
    std::array<char, 2> bytes{};
    std::optional<DescriptorPair> passed;
    ASSERT_EQ(receive_with_descriptors(line.other.get(), bytes, passed), 2);
    EXPECT_EQ(std::string(bytes.data(), bytes.size()), "ab");
    ASSERT_TRUE(passed);
    ASSERT_TRUE(write_all((*passed)[0].get(), "1") && write_all((*passed)[1].get(), "2"));
    std::array<char, 2> there{};
    EXPECT_EQ(::read(one.other.get(), &there[0], 1), 1);
    EXPECT_EQ(::read(other.other.get(), &there[1], 1), 1);
    EXPECT_EQ(std::string(there.data(), there.size()), "12");
    passed.reset();
    ASSERT_EQ(receive_with_descriptors(line.other.get(), bytes, passed), 2);
    EXPECT_FALSE(passed);
}

TEST(PassedDescriptors, EndTheConnectionIfThereIsNoRoomForThem)
{
    const SocketPair line = socket_pair(0);
    ASSERT_TRUE(send_with_descriptors(line.one.get(), "ab", {line.one.get(), line.one.get()}));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    std::array<char, 2> bytes{};
    std::optional<DescriptorPair> passed;
    EXPECT_EQ(receive_with_descriptors(line.other.get(), bytes, passed), 0);
    EXPECT_FALSE(passed);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

} // namespace
} // namespace gpuq
