// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace gpuq::core_test {

using namespace std::chrono_literals;

// Not in an unnamed namespace: the conversions of codec::AnyMember to types without linkage would
// have to be defined.
enum class Colour { red, green, blue };
constexpr Colour last_of(Colour)
{
    return Colour::blue;
}
enum class Animal { cat, dog, other };
constexpr Animal last_of(Animal)
{
    return Animal::other;
}
constexpr Animal unknown_of(Animal)
{
    return Animal::other;
}

struct Even {
    int number = 0;
    bool operator==(const Even&) const = default;
};
bool is_valid(const Even& even)
{
    return even.number % 2 == 0;
}

struct Nothing {
    bool operator==(const Nothing&) const = default;
};
struct Inner {
    std::optional<Time> at;
    std::optional<std::string> text;
    std::chrono::minutes length{0};
    bool operator==(const Inner&) const = default;
};
struct Outer {
    std::int64_t number = 0;
    Colour colour = Colour::red;
    bool flag = false;
    std::string text;
    std::vector<Inner> inner;
    std::array<bool, 3> flags{};
    std::optional<Inner> one;
    JobId job;
    Nothing nothing;
    Rest rest;
    bool operator==(const Outer&) const = default;
};

namespace {

Outer sample()
{
    const std::string bytes("a\0\xff", 3);
    return {-7,
            Colour::blue,
            true,
            bytes,
            {{Time{5s}, "", 90min}, {std::nullopt, std::nullopt, 0min}},
            {true, false, true},
            Inner{Time{-1us}, bytes, 1min},
            JobId{4'000'000'000U},
            {},
            bytes};
}

TEST(Codec, ValuesOfEachTypeComeBack)
{
    EXPECT_EQ(decoded<Outer>(encoded(sample())), sample());
    EXPECT_EQ(decoded<Outer>(encoded(Outer())), Outer());
}

TEST(Codec, IsLittleEndianWhateverTheMachine)
{
    EXPECT_EQ(encoded(std::uint16_t{0x0102}, true, Colour::green, std::string("ab"), 3ms),
              std::string("\2\1\1\1\2\0\0\0ab\3\0\0\0\0\0\0\0", 18));
}

TEST(Codec, ATruncatedEncodingIsNoValue)
{
    Outer outer = sample();
    outer.rest.clear();
    const std::string bytes = encoded(outer);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(decoded<Outer>(bytes.substr(0, size))) << size;
    }
}

TEST(Codec, BytesLeftOverAreNoValue)
{
    EXPECT_TRUE(decoded<Inner>(encoded(Inner())));
    EXPECT_FALSE(decoded<Inner>(encoded(Inner()) + '\0'));
}

TEST(Codec, SeveralValuesAreATuple)
{
    const auto both = decoded<std::tuple<int, std::string>>(encoded(3, std::string("x")));
    EXPECT_EQ(both, std::tuple(3, std::string("x")));
    EXPECT_FALSE((decoded<std::tuple<int, std::string>>(encoded(3))));
}

TEST(Codec, ImpossibleValuesAreNone)
{
    EXPECT_FALSE(decoded<bool>("\2"));
    EXPECT_FALSE(decoded<Colour>("\3"));
    EXPECT_EQ(decoded<Animal>("\1"), Animal::dog);
    EXPECT_EQ(decoded<Animal>("\3"), Animal::other);
    EXPECT_EQ(decoded<Even>(encoded(2)), Even{2});
    EXPECT_FALSE(decoded<Even>(encoded(3)));
    EXPECT_FALSE(decoded<std::vector<Even>>("\xff\xff\xff\xff")) << "four thousand million";
    EXPECT_FALSE(decoded<std::vector<Even>>(encoded(std::vector{Even{2}, Even{3}})));
}

TEST(Codec, ADurationThatWouldOverflowIsNone)
{
    const std::chrono::seconds longest = k_longest_duration;
    EXPECT_EQ(decoded<std::chrono::seconds>(encoded(longest)), longest);
    EXPECT_FALSE(decoded<std::chrono::seconds>(encoded(longest + 1s)));
    EXPECT_FALSE(decoded<std::chrono::seconds>(encoded(-1s)));
}

} // namespace
} // namespace gpuq::core_test
