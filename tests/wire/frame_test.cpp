// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gpuq::wire {
namespace {

std::vector<Frame> one_of_each()
{
    const std::string bytes("a\0b\xff\n", 5);
    const Ending ending{137, Cause::memory, "the node's memory was exhausted",
                        Time{std::chrono::microseconds{1'790'000'000'123'456}}};
    return {
        Attach{k_version, Role::guard, 1ULL << 40, 7},
        Attach{},
        Stdin{1ULL << 33, bytes},
        StdinEnd{99},
        Signal{15},
        Stop{"ada@login1"},
        OutputTaken{1ULL << 41, 1 << 20},
        Terminal{1ULL << 63, {50, 132}, true},
        Terminal{1, {65535, 1}, false},
        Take{"ada@login2"},
        Report{"port 80 is served by user ben (1001)"},
        Bye{},
        Hello{k_version, "20261120T131158.042Z-0f3a9c1e5b7d2468", 3, 4'000'000'000U, "n1"},
        Started{4242},
        Output{Stream::err, ~0ULL - 5, bytes},
        Output{Stream::out, 0, ""},
        Output{Stream::out, 1, std::string(k_piece, 'x')},
        StdinTaken{5, 1 << 20},
        Note{"15 minutes left"},
        Screen{bytes},
        Taken{"ada@login2"},
        Refused{"200 clients are already connected"},
        Ended{ending, 1ULL << 50, 3, "last\nlines\n"},
        Ended{Ending{-1, Cause::lost, "", Time{}}, 0, 0, ""},
        Ended{Ending{0, Cause::finished, "", Time{}}, 0, 0, "", 1ULL << 35},
    };
}

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

std::string bytes_of(const std::vector<Frame>& frames)
{
    std::string bytes;
    for (const Frame& frame : frames) {
        bytes += encode(frame);
    }
    return bytes;
}

TEST(Frame, EachKindSurvivesTheWire)
{
    for (const Frame& frame : one_of_each()) {
        Decoder decoder;
        decoder.feed(encode(frame));
        EXPECT_EQ(all_from(decoder), std::vector<Frame>{frame}) << frame.index();
    }
}

TEST(Frame, AnyDivisionOfTheBytesGivesTheSameFrames)
{
    const std::vector<Frame> frames = one_of_each();
    const std::string bytes = bytes_of(frames);
    for (const std::size_t step : {1, 2, 3, 5, 7, 64, 4096}) {
        Decoder decoder;
        std::vector<Frame> got;
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            decoder.feed(std::string_view(bytes).substr(at, step));
            for (Frame& frame : all_from(decoder)) {
                got.push_back(std::move(frame));
            }
        }
        EXPECT_EQ(got, frames) << "in pieces of " << step;
    }
}

TEST(Frame, TheWireIsLittleEndianWhateverTheMachine)
{
    EXPECT_EQ(encode(StdinEnd{0x0102030405060708}),
              std::string("\x03\x08\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01", 13));
    EXPECT_EQ(encode(Output{Stream::err, 1, "hi"}),
              std::string("\x43\x0b\0\0\0\x01\x01\0\0\0\0\0\0\0hi", 16));
}

TEST(Frame, AnUnknownTypeIsSkipped)
{
    Decoder decoder;
    decoder.feed(std::string("\x7b\x03\0\0\0abc", 8) + encode(Bye{}));
    EXPECT_EQ(all_from(decoder), std::vector<Frame>{Bye{}});
}

TEST(Frame, AFlushIsNothingButALineEnd)
{
    Decoder decoder;
    decoder.feed(encode(Started{1}) + std::string(k_flush) + std::string(k_flush) + encode(Bye{}));
    EXPECT_EQ(all_from(decoder), (std::vector<Frame>{Started{1}, Bye{}}));
    EXPECT_EQ(k_flush.back(), '\n');
}

TEST(Frame, FieldsThatANewerSideAddsAreIgnored)
{
    Decoder decoder;
    decoder.feed(std::string("\x03\x0a\0\0\0\x05\0\0\0\0\0\0\0zz", 15));
    EXPECT_EQ(all_from(decoder), std::vector<Frame>{StdinEnd{5}});
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

TEST(Frame, AnOlderSupervisorDoesNotCountTheInput)
{
    std::string bytes = encode(Ended{Ending{1, Cause::finished, "", Time{}}, 0, 0, "", 7});
    bytes.resize(bytes.size() - sizeof(std::uint64_t));
    bytes[1] = static_cast<char>(bytes.size() - k_header);
    Decoder decoder;
    decoder.feed(bytes);
    const auto next = decoder.next();
    ASSERT_TRUE(next && *next);
    EXPECT_EQ(std::get<Ended>(**next).stdin_read, Ended::k_unknown);
}

TEST(Frame, ALengthBeyondTheLimitBreaksTheConnectionForGood)
{
    Decoder decoder;
    decoder.feed(std::string("\x02\x01\0\x10\0", 5));
    EXPECT_FALSE(decoder.next());
    decoder.feed(encode(Bye{}));
    EXPECT_FALSE(decoder.next());
}

TEST(Frame, APayloadTooShortOrWithAnImpossibleValueBreaksIt)
{
    const std::vector<std::string> bad = {
        std::string("\x03\x07\0\0\0\x05\0\0\0\0\0\0", 12),     // 7 of 8 bytes
        std::string("\x05\x04\0\0\0\xff\xff\xff\xff", 9),      // text of 4 GiB
        std::string("\x05\x05\0\0\0\x02\0\0\0a", 10),          // text truncated
        std::string("\x43\x09\0\0\0\x02\0\0\0\0\0\0\0\0", 14), // stream 2
        std::string("\x01\x15\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 26), // role 3
    };
    for (const std::string& bytes : bad) {
        Decoder decoder;
        decoder.feed(bytes);
        EXPECT_FALSE(decoder.next()) << testing::PrintToString(bytes);
    }
}

TEST(Frame, HostileBytesNeverDoMoreThanBreakIt)
{
    std::mt19937 random(20261120);
    const std::string good = bytes_of(one_of_each());
    int broken = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string bytes = good.substr(random() % 200, random() % 2000);
        if (round % 3 == 0) {
            for (char& c : bytes) {
                c = static_cast<char>(random());
            }
        }
        for (std::size_t i = 0; !bytes.empty() && i < random() % 8; ++i) {
            bytes[random() % bytes.size()] = static_cast<char>(random());
        }
        Decoder decoder;
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t step = 1 + random() % 50;
            decoder.feed(std::string_view(bytes).substr(at, step));
            at += step;
            while (true) {
                const auto next = decoder.next();
                broken += !next;
                if (!next || !*next) {
                    break;
                }
                // A decoded frame can be encoded.
                EXPECT_FALSE(encode(**next).empty());
            }
        }
    }
    EXPECT_GT(broken, 100);
}

} // namespace
} // namespace gpuq::wire
