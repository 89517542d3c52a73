// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuq::wire {
namespace {

std::vector<Frame> all_from(Decoder& decoder)
{
    std::vector<Frame> frames;
    while (true) {
        const auto next = decoder.next();
        EXPECT_TRUE(next) << next.error().text;
        if (!next || !*next) {
            return frames;
        }
        frames.push_back(**next);
    }
}

TEST(Frame, TheWireIsLittleEndianWhateverTheMachine)
{
    EXPECT_EQ(encode(StdinEnd{0x0102030405060708}),
              std::string("\x03\x08\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01", 13));
    EXPECT_EQ(encode(Output{Stream::err, 1, "hi"}),
              std::string("\x43\x0b\0\0\0\x01\x01\0\0\0\0\0\0\0hi", 16));
}

TEST(Frame, AFlushIsNothingButALineEnd)
{
    Decoder decoder;
    decoder.feed(encode(Started{1}) + std::string(k_flush) + std::string(k_flush) + encode(Bye{}));
    EXPECT_EQ(all_from(decoder), (std::vector<Frame>{Started{1}, Bye{}}));
    EXPECT_EQ(k_flush.back(), '\n');
}

TEST(Frame, ACauseThatThisVersionDoesNotKnowIsLost)
{
    std::string bytes = encode(Ended{Ending{1, Cause::finished, "", Time{}}, 0, 0, ""});
    bytes[k_header + 4] = '\xc8';
    Decoder decoder;
    decoder.feed(bytes);
    const auto next = decoder.next();
    ASSERT_TRUE(next && *next);
    EXPECT_EQ(std::get<Ended>(**next).ending.cause, Cause::lost);
}

TEST(Frame, AnImpossibleValueBreaksTheConnection)
{
    const std::vector<std::string> bad = {
        std::string("\x05\x04\0\0\0\xff\xff\xff\xff", 9),      // text of 4 GiB
        std::string("\x05\x05\0\0\0\x02\0\0\0a", 10),          // text truncated
        std::string("\x43\x09\0\0\0\x02\0\0\0\0\0\0\0\0", 14), // stream 2
        std::string("\x01\x15\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 26), // role 3
        std::string("\x08\x11\0\0\0\0\0\0\0\0\0\0\0\x18\0\1\0\x50\0\0\0\0", 22),       // 65560 rows
        std::string("\x08\x11\0\0\0\0\0\0\0\0\0\0\0\x18\0\0\0\xff\xff\xff\xff\0", 22), // columns
        std::string("\x08\x11\0\0\0\0\0\0\0\0\0\0\0\x18\0\0\0\x50\0\0\0\2", 22),       // redraw 2
    };
    for (const std::string& bytes : bad) {
        Decoder decoder;
        decoder.feed(bytes);
        EXPECT_FALSE(decoder.next()) << testing::PrintToString(bytes);
    }
}

} // namespace
} // namespace gpuq::wire
