// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/verb_input.h"

#include "remote/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <pty.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace gpuq::remote {
namespace {

class VerbInputTest : public testing::Test {
protected:
    VerbInputTest()
    {
        Pipe pipe = *make_pipe();
        set_nonblocking(pipe.read.get());
        set_nonblocking(pipe.write.get());
        verb = std::move(pipe.read);
        input.begin(std::move(pipe.write), -1, false, false);
    }
    std::string read() const
    {
        std::array<char, 1 << 16> buffer;
        const ssize_t count = ::read(verb.get(), buffer.data(), buffer.size());
        return count > 0 ? std::string(buffer.data(), static_cast<std::size_t>(count)) : "";
    }

    bool connected = true;
    std::vector<std::uint64_t> confirmed;
    EventLoop loop;
    Descriptor verb;
    VerbInput input{loop, [this](const frames::InputTaken& taken) {
                        if (connected) {
                            confirmed.push_back(taken.offset);
                        }
                        return connected;
                    }};
};

TEST_F(VerbInputTest, TakesEachByteOnceHoweverItIsRepeated)
{
    EXPECT_TRUE(input.take({0, "hello"}));
    EXPECT_TRUE(input.take({0, "he"}));
    EXPECT_TRUE(input.take({3, "lo world"}));
    EXPECT_EQ(read(), "hello world");
    EXPECT_EQ(input.taken(), 11U);
}

TEST_F(VerbInputTest, RefusesAGapAndMoreThanItHasRoomFor)
{
    EXPECT_EQ(input.take({1, "x"}).error().text, "input at an unexpected offset");
    const std::string more(frames::k_input_room + 1, 'x');
    EXPECT_EQ(input.take({0, more}).error().text, "input exceeds its window");
    EXPECT_EQ(input.taken(), 0U);
}

TEST_F(VerbInputTest, ConfirmsAFewBytesInABatchAndManyAtOnce)
{
    EXPECT_TRUE(input.take({0, "a"}));
    EXPECT_TRUE(input.take({1, "b"}));
    EXPECT_TRUE(confirmed.empty());
    loop.run_once();
    EXPECT_EQ(confirmed, std::vector<std::uint64_t>{2});
    EXPECT_TRUE(input.take({2, std::string(100 << 10, 'x')}));
    EXPECT_EQ(confirmed.size(), 2U);
}

TEST_F(VerbInputTest, WithoutAClientTheConfirmationIsLeftToTheNextHello)
{
    connected = false;
    EXPECT_TRUE(input.take({0, "a"}));
    loop.run_once();
    connected = true;
    input.confirmed_by_hello();
    loop.run_once(EventLoop::Span{});
    EXPECT_TRUE(confirmed.empty());
}

TEST_F(VerbInputTest, WritesTheRestWhenTheVerbReadsAndThenCloses)
{
    const std::string text(200 << 10, 'x'); // more than a pipe takes
    EXPECT_TRUE(input.take({0, text}));
    input.end({text.size()});
    std::string got;
    while (got.size() < text.size()) {
        got += read();
        loop.run_once(EventLoop::Span{});
    }
    EXPECT_TRUE(got == text);
    char byte = 0;
    EXPECT_EQ(::read(verb.get(), &byte, 1), 0); // end of file
}

TEST_F(VerbInputTest, TheEndInATerminalIsReadAlsoAfterAnIncompleteLine)
{
    for (const std::string text : {"abc", "abc\n", ""}) {
        int host = -1, program = -1;
        ASSERT_EQ(::openpty(&host, &program, nullptr, nullptr, nullptr), 0);
        const Descriptor ours(host), theirs(program);
        set_nonblocking(host);
        set_nonblocking(program);
        VerbInput typed(loop, [](const frames::InputTaken&) { return true; });
        typed.begin(Descriptor(), host, false, false);
        EXPECT_TRUE(typed.take({0, text}));
        typed.end({text.size()});
        std::array<char, 100> buffer;
        if (!text.empty()) {
            const ssize_t count = ::read(program, buffer.data(), buffer.size());
            EXPECT_EQ(
                std::string(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))),
                text);
        }
        EXPECT_EQ(::read(program, buffer.data(), buffer.size()), 0) << text;
        EXPECT_EQ(::read(program, buffer.data(), buffer.size()), -1) << "one end only";
    }
}

} // namespace
} // namespace gpuq::remote
