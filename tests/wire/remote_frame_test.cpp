// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/remote_frame.h"

#include "wire/one_of_each.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <variant>
#include <vector>

namespace gpuq::wire::remote {
namespace {

using namespace std::chrono_literals;

std::vector<Frame> decoded(Decoder& decoder)
{
    std::vector<Frame> frames;
    while (true) {
        auto frame = decoder.next();
        EXPECT_TRUE(frame);
        if (!frame || !*frame) {
            return frames;
        }
        frames.push_back(**frame);
    }
}

TEST(RemoteFrame, TheFuzzersSeedsHoldEveryKind)
{
    std::set<std::size_t> kinds;
    for (const auto& file : std::filesystem::directory_iterator(GPUQ_SEEDS_DIR)) {
        std::ifstream in(file.path(), std::ios::binary);
        std::string bytes(std::istreambuf_iterator<char>(in), {});
        Greeting greeting;
        if (const auto rest = greeting.feed(bytes); rest && *rest) {
            bytes = **rest;
        }
        Decoder decoder;
        decoder.feed(bytes);
        for (const Frame& frame : decoded(decoder)) {
            kinds.insert(frame.index());
        }
    }
    EXPECT_EQ(kinds.size(), std::variant_size_v<Frame>);
}

/// Merges contiguous pieces of output into one frame.
std::vector<Frame> taken(OutputDecoder& decoder, std::string_view bytes, std::vector<Frame> frames)
{
    while (true) {
        auto came = decoder.take(bytes);
        EXPECT_TRUE(came);
        if (!came || std::holds_alternative<std::monostate>(*came)) {
            EXPECT_TRUE(bytes.empty());
            return frames;
        }
        const auto* const part = std::get_if<OutputBytes>(&*came);
        auto* const before = frames.empty() ? nullptr : std::get_if<Output>(&frames.back());
        if (part == nullptr) {
            frames.push_back(std::get<Frame>(*std::move(came)));
        } else if (before != nullptr && before->stream == part->stream &&
                   before->offset + before->bytes.size() == part->offset) {
            before->bytes += part->bytes;
        } else {
            frames.emplace_back(Output{part->stream, part->offset, std::string(part->bytes)});
        }
    }
}

TEST(RemoteFrame, OutputComesInPlaceAndEverythingElseAsItIs)
{
    std::vector<Frame> all = one_of_each();
    all.insert(all.begin() + 3, Output{Stream::out, 7, ""});
    std::string bytes("\x7f\3\0\0\0new", 8); // from a newer gpuq
    for (const Frame& frame : all) {
        bytes += encode(frame);
    }
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{7}, std::size_t{70'000}, bytes.size()}) {
        OutputDecoder decoder;
        std::vector<Frame> found;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            found = taken(decoder, std::string_view(bytes).substr(at, piece), std::move(found));
        }
        EXPECT_EQ(found, all) << piece;
    }
}

TEST(RemoteFrame, WhatIsNoOutputBreaksTheConnectionWhereverItIsCut)
{
    for (const std::string& bytes :
         {std::string("\x42\xff\xff\xff\xff", 5), std::string("\x42\1\0\x20\0", 5),
          std::string("\x42\xa\0\0\0\2\0\0\0\0\0\0\0\0x", 15), std::string("\x42\1\0\0\0\1", 6)}) {
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
            OutputDecoder decoder;
            std::string_view first = std::string_view(bytes).substr(0, cut);
            std::string_view second = std::string_view(bytes).substr(cut);
            const bool broken = !decoder.take(first) || !decoder.take(second);
            EXPECT_TRUE(broken) << cut;
            const std::string more = encode(Output{Stream::out, 0, "x"});
            std::string_view left = more;
            EXPECT_FALSE(decoder.take(left)) << "it stays broken";
        }
    }
}

TEST(RemoteFrame, TheFirstBytesAreAWordThatNoShellReadsAsAnythingElse)
{
    const std::string bytes("\x00\xff$(id)\n'", 9);
    EXPECT_EQ(escape_argument(bytes), "00ff24286964290a27");
    EXPECT_EQ(unescape_argument(escape_argument(bytes)), bytes);
    EXPECT_EQ(unescape_argument(""), "");
    for (const std::string& text : {std::string("0"), std::string("0g"), std::string("--"),
                                    std::string("0A"), std::string(k_longest_argument + 2, '0')}) {
        EXPECT_EQ(unescape_argument(text), std::nullopt) << text;
    }
}

TEST(RemoteFrame, ImpossibleValuesBreakTheConnection)
{
    Decoder lists; // Start with four thousand million arguments
    lists.feed(std::string("\2\4\0\0\0\xff\xff\xff\xff", 9));
    EXPECT_FALSE(lists.next());

    for (const std::chrono::seconds patience : {-1s, k_longest_duration + 1s}) {
        Start start;
        start.patience = patience;
        Decoder decoder;
        decoder.feed(encode(start));
        EXPECT_FALSE(decoder.next()) << patience.count();
    }
}

TEST(RemoteFrame, AKindOfErrorThatThisVersionDoesNotKnowIsInternal)
{
    std::string bytes = encode(Failure{Error::Kind::usage, "why"});
    bytes[k_header] = '\xc8';
    Decoder decoder;
    decoder.feed(bytes);
    EXPECT_EQ(decoded(decoder), (std::vector<Frame>{Failure{Error::Kind::internal, "why"}}));
}

TEST(RemoteFrame, AHeaderAndItsBytesAreAnOutput)
{
    const std::string bytes(k_piece, 'x');
    EXPECT_EQ(output_header(Stream::err, 1ULL << 40, bytes.size()) + bytes,
              encode(Output{Stream::err, 1ULL << 40, bytes}));
}

TEST(Greeting, WhatAShellPrintsBeforeTheMarkerIsSkipped)
{
    const std::string bytes = "Welcome to login1\n\x1dgpuq-" + std::string(k_marker) + "frames";
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        Greeting greeting;
        const auto first = greeting.feed(std::string_view(bytes).substr(0, cut));
        ASSERT_TRUE(first);
        const auto second = greeting.feed(std::string_view(bytes).substr(cut));
        const std::string rest = first->value_or("") + (*first ? bytes.substr(cut) : "");
        ASSERT_TRUE(*first || (second && *second)) << cut;
        EXPECT_EQ(*first ? rest : **second, "frames") << cut;
    }
}

TEST(Greeting, OneWithoutAnEndIsNoGreeting)
{
    Greeting greeting;
    std::size_t fed = 0;
    while (greeting.feed(std::string(5000, 'x')) && fed < 10 * k_most_greeting) {
        fed += 5000;
    }
    EXPECT_LE(fed, k_most_greeting);
}

TEST(SessionName, IsHexadecimalAndNothingElse)
{
    EXPECT_TRUE(is_session_name("0123456789abcdef0123456789abcdef"));
    EXPECT_FALSE(is_session_name("0123456789abcdef0123456789abcde"));
    EXPECT_FALSE(is_session_name("../3456789abcdef0123456789abcdef"));
    EXPECT_FALSE(is_session_name(""));
}

} // namespace
} // namespace gpuq::wire::remote
