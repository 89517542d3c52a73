// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/verb_output.h"

#include "io/descriptor.h"

#include <gtest/gtest.h>

#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuq::remote {
namespace {

class VerbOutputTest : public testing::Test {
protected:
    VerbOutputTest()
    {
        set_nonblocking(pipe.read.get());
        output.begin({pipe.read.get(), -1});
    }
    void print(std::size_t size)
    {
        ASSERT_TRUE(write_all(pipe.write.get(), std::string(size, 'x')));
        loop.run_once();
    }
    static Channel connection()
    {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        return {Descriptor(ends[0]), Descriptor(ends[1])};
    }

    Pipe pipe = *make_pipe();
    EventLoop loop;
    VerbOutput output{loop};
};

TEST_F(VerbOutputTest, KeepsOutputUntilItIsConfirmed)
{
    Channel first = connection();
    print(100);
    output.send(first, false);
    EXPECT_FALSE(output.is_empty());
    EXPECT_TRUE(output.confirm({60, 0}, 0));
    EXPECT_TRUE(output.send_from({60, 0})); // on a new connection
    EXPECT_FALSE(output.send_from({59, 0}));
    EXPECT_TRUE(output.is_confirmed_to({60, 0}));
    EXPECT_FALSE(output.is_confirmed_to({61, 0}));
}

TEST_F(VerbOutputTest, OnlyBytesThatWereSentCanBeConfirmed)
{
    Channel channel = connection();
    print(100);
    EXPECT_FALSE(output.confirm({1, 0}, 0));
    output.send(channel, false);
    EXPECT_FALSE(output.confirm({91, 0}, 10)); // the channel has not written them
    EXPECT_TRUE(output.confirm({90, 0}, 10));
}

TEST_F(VerbOutputTest, AVerbWhoseOutputIsNotConfirmedIsNoLongerRead)
{
    while (!output.is_full()) {
        print(32 << 10);
    }
    ASSERT_TRUE(write_all(pipe.write.get(), "x"));
    const auto before = output.ends();
    loop.run_once(EventLoop::Span{});
    EXPECT_EQ(output.ends(), before);
    EXPECT_TRUE(output.has_unread());
}

TEST_F(VerbOutputTest, EndsWithWhatCanBeReadWhenTheVerbHasEnded)
{
    Channel channel = connection();
    print(10);
    ASSERT_TRUE(write_all(pipe.write.get(), "last")); // the pipe stays open
    output.send(channel, false);
    EXPECT_FALSE(output.is_all_sent());
    output.verb_ended();
    output.send(channel, false);
    EXPECT_TRUE(output.is_all_sent());
    EXPECT_EQ(output.ends()[0], 14U);
}

} // namespace
} // namespace gpuq::remote
