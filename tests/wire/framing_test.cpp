// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/framing.h"

#include "core/fnv.h"
#include "wire/one_of_each.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace gpuq::wire {
namespace {

struct OfRun {
    using Frame = wire::Frame;
    static std::vector<Frame> samples() { return one_of_each(); }
    static constexpr std::uint64_t k_digest = 14296799789648997920U;
};
struct OfHost {
    using Frame = remote::Frame;
    static std::vector<Frame> samples() { return remote::one_of_each(); }
    static constexpr std::uint64_t k_digest = 17164289530290449104U;
};

/// Both protocols.
template <typename Protocol>
class Framing : public testing::Test {
protected:
    using Frame = typename Protocol::Frame;
    using Frames = std::vector<Frame>;

    static Frames all_from(FrameDecoder<Frame>& decoder)
    {
        Frames frames;
        while (true) {
            const auto next = decoder.next();
            EXPECT_TRUE(next);
            if (!next || !*next) {
                return frames;
            }
            frames.push_back(**next);
        }
    }
    static bool breaks(const std::string& bytes)
    {
        FrameDecoder<Frame> decoder;
        decoder.feed(bytes);
        while (true) {
            const auto next = decoder.next();
            if (!next || !*next) {
                return !next;
            }
        }
    }
    static std::string bytes_of(const Frames& frames)
    {
        std::string bytes;
        for (const Frame& frame : frames) {
            bytes += encode(frame);
        }
        return bytes;
    }
};
using Protocols = testing::Types<OfRun, OfHost>;
TYPED_TEST_SUITE(Framing, Protocols);

std::size_t size_of_rest(const Rest& rest)
{
    return rest.size();
}
std::size_t size_of_rest(const auto&)
{
    return 0;
}
/// The part of a payload that may be missing without a trace: the bytes of a Rest.
std::size_t rest_of(const auto& frame)
{
    return std::visit(
        [](const auto& each) {
            return std::apply(
                [](const auto&... member) { return (std::size_t{0} + ... + size_of_rest(member)); },
                codec::members_of(each));
        },
        frame);
}

TYPED_TEST(Framing, EachTypeOfFrameHasASampleAndSurvivesEncoding)
{
    std::set<std::size_t> types;
    for (const auto& frame : TypeParam::samples()) {
        types.insert(frame.index());
        FrameDecoder<typename TypeParam::Frame> decoder;
        decoder.feed(encode(frame));
        EXPECT_EQ(this->all_from(decoder), std::vector{frame}) << frame.index();
    }
    EXPECT_EQ(types.size(), std::variant_size_v<typename TypeParam::Frame>);
}

TYPED_TEST(Framing, NoTwoTypesShareANumber)
{
    std::set<char> numbers;
    for (const auto& frame : TypeParam::samples()) {
        numbers.insert(encode(frame).front());
    }
    EXPECT_EQ(numbers.size(), std::variant_size_v<typename TypeParam::Frame>);
    EXPECT_FALSE(numbers.contains(0)) << "k_flush";
}

/// If this fails, peers of this version no longer understand each other: set a new k_version. A new
/// kind of frame changes the digest too, and needs none: unknown ones are skipped.
TYPED_TEST(Framing, EncodesAsVersionOneDoes)
{
    EXPECT_EQ(fnv1a(this->bytes_of(TypeParam::samples())), TypeParam::k_digest);
}

TYPED_TEST(Framing, AnyDivisionOfTheBytesGivesTheSameFrames)
{
    const auto frames = TypeParam::samples();
    const std::string bytes = this->bytes_of(frames);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{64}, bytes.size()}) {
        FrameDecoder<typename TypeParam::Frame> decoder;
        typename TestFixture::Frames found;
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            decoder.feed(std::string_view(bytes).substr(at, step));
            for (auto& frame : this->all_from(decoder)) {
                found.push_back(std::move(frame));
            }
        }
        EXPECT_EQ(found, frames) << "in pieces of " << step;
    }
}

TYPED_TEST(Framing, APayloadTruncatedAtAnyByteBreaksTheConnection)
{
    for (const auto& frame : TypeParam::samples()) {
        const std::string bytes = encode(frame);
        const std::size_t least = bytes.size() - k_header - rest_of(frame);
        for (std::size_t size = 0; size < least; ++size) {
            std::string shortened = bytes.substr(0, k_header + size);
            set_payload_size(shortened, size);
            EXPECT_TRUE(this->breaks(shortened)) << frame.index() << " at " << size;
        }
    }
}

TYPED_TEST(Framing, WhatANewerSideAddsIsSkipped)
{
    for (const auto& frame : TypeParam::samples()) {
        if (rest_of(frame) == 0 && encode(frame).size() < k_piece) {
            std::string longer = encode(frame) + "new";
            set_payload_size(longer, longer.size() - k_header);
            FrameDecoder<typename TypeParam::Frame> decoder;
            decoder.feed("\x7b\x03" + std::string("\0\0\0abc", 6) + longer);
            const auto frames = this->all_from(decoder);
            ASSERT_EQ(frames.size(), 1U) << "a frame of unknown type";
            EXPECT_EQ(frames[0].index(), frame.index());
        }
    }
}

TYPED_TEST(Framing, ALengthBeyondTheLimitBreaksTheConnectionForGood)
{
    FrameDecoder<typename TypeParam::Frame> decoder;
    decoder.feed(std::string("\x02\x01\0\x10\0", 5));
    EXPECT_FALSE(decoder.next());
    decoder.feed(encode(TypeParam::samples().front()));
    EXPECT_FALSE(decoder.next());
}

TYPED_TEST(Framing, HostileBytesNeverDoMoreThanBreakIt)
{
    std::mt19937 random(20261120);
    const std::string good = this->bytes_of(TypeParam::samples());
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
        FrameDecoder<typename TypeParam::Frame> decoder;
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t step = 1 + random() % 50;
            decoder.feed(std::string_view(bytes).substr(at, step));
            at += step;
            auto next = decoder.next();
            for (; next && *next; next = decoder.next()) {
                EXPECT_FALSE(encode(**next).empty()) << "a decoded frame can be encoded";
            }
            broken += !next;
        }
    }
    EXPECT_GT(broken, 100);
}

} // namespace
} // namespace gpuq::wire
