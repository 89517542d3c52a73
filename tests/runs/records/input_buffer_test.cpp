// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/input_buffer.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using wire::Frame;
using wire::Stdin;
using wire::StdinEnd;
using wire::StdinTaken;

TEST(InputBuffer, SendsBytesThenTheEndOnce)
{
    InputBuffer input;
    input.add("abc");
    EXPECT_EQ(input.to_send(), std::vector<Frame>{(Stdin{0, "abc"})});
    input.close();
    EXPECT_EQ(input.to_send(), std::vector<Frame>{StdinEnd{3}});
    EXPECT_TRUE(input.to_send().empty());
}

TEST(InputBuffer, SendsAgainOnANewConnectionOnlyWhatWasNotTaken)
{
    InputBuffer input;
    input.add("abcdef");
    input.close();
    input.to_send();
    input.taken(StdinTaken{4, 100});
    input.restart();
    EXPECT_EQ(input.to_send(), (std::vector<Frame>{Stdin{4, "ef"}, StdinEnd{6}}));
}

TEST(InputBuffer, HoldsBackWhatTheSupervisorHasNoRoomFor)
{
    InputBuffer input;
    const std::string much(wire::k_piece + 10, 'x');
    input.add(much);
    EXPECT_EQ(input.to_send(), std::vector<Frame>{(Stdin{0, much.substr(10)})});
    EXPECT_TRUE(input.to_send().empty());
    input.taken(StdinTaken{wire::k_piece, 4});
    EXPECT_EQ(input.to_send(), std::vector<Frame>{(Stdin{wire::k_piece, "xxxx"})});
}

TEST(InputBuffer, KnowsWhenAllOfItIsSafe)
{
    InputBuffer input;
    input.add("abc");
    input.close();
    EXPECT_FALSE(input.all_taken());
    input.to_send();
    EXPECT_FALSE(input.all_taken());
    input.taken(StdinTaken{3, 100});
    EXPECT_TRUE(input.all_taken());
}

TEST(InputBuffer, StopsReadingWhileTheSupervisorIsSlow)
{
    InputBuffer input;
    while (input.wants_more()) {
        input.add(std::string(wire::k_piece, 'x'));
    }
    input.to_send();
    input.taken(StdinTaken{wire::k_piece, wire::k_piece});
    EXPECT_TRUE(input.wants_more());
}

TEST(InputBuffer, IgnoresAnAnswerToBytesItNeverHad)
{
    InputBuffer input;
    input.add("abc");
    input.taken(StdinTaken{99, 1});
    EXPECT_EQ(input.to_send(), std::vector<Frame>{(Stdin{0, "abc"})});
}

} // namespace
} // namespace gpuq
