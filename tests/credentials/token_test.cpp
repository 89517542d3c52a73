// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/token.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuq::credentials {
namespace {

using namespace std::chrono_literals;

constexpr Time at(std::int64_t second)
{
    return Time(std::chrono::seconds(second));
}

/// A JWT with header {"alg":"none"}, these claims and no signature.
std::string jwt(const std::string& payload)
{
    return "eyJhbGciOiJub25lIn0." + payload + ".x";
}

TEST(TokenText, IsWithoutTheBlanksAround)
{
    EXPECT_EQ(*token_text(" \t\n\v\f\rab.c-_~+/=\r\n"), "ab.c-_~+/=");
    EXPECT_EQ(token_text(" \n").error().kind, Error::Kind::missing);
    EXPECT_EQ(token_text("").error().kind, Error::Kind::missing);
    for (const char* const none : {"a b", "a\nb", "a\x1b[2J", "\xc3\xa9", "a;b"}) {
        EXPECT_EQ(token_text(none).error().kind, Error::Kind::usage) << none;
    }
    EXPECT_EQ(token_text(std::string(1, '\0') + "a").error().kind, Error::Kind::usage);
    EXPECT_TRUE(token_text(std::string(k_largest_token, 'a')));
    EXPECT_FALSE(token_text(std::string(k_largest_token + 1, 'a')));
}

TEST(TokenFacts, AreTheClaimsOfAJwt)
{
    // {"exp":1700003600,"iat":1700000000}
    const std::string claims = "eyJleHAiOjE3MDAwMDM2MDAsImlhdCI6MTcwMDAwMDAwMH0";
    EXPECT_EQ(token_facts(jwt(claims)), (Token{at(1700000000), at(1700003600)}));
    // {"nbf":1700000100,"exp":1700003600.5,"iat":1}
    EXPECT_EQ(token_facts(jwt("eyJuYmYiOjE3MDAwMDAxMDAsImV4cCI6MTcwMDAwMzYwMC41LCJpYXQiOjF9")),
              (Token{at(1700000100), at(1700003600)}));
    for (const std::string& other :
         {std::string("opaque"), std::string("a.b"), jwt(""), jwt("!!"), jwt("W10"),
          jwt("eyJleHAiOiJub3cifQ"), // {"exp":"now"}
          jwt("eyJleHAiOjFlOTl9"),   // {"exp":1e99}
          jwt("eyJleHAiOi01fQ"),     // {"exp":-5}
          std::string("..")}) {
        EXPECT_EQ(token_facts(other), Token{}) << other;
    }
}

TEST(TokenFacts, SurviveAnything)
{
    std::mt19937 random(5);
    for (int i = 0; i < 20000; ++i) {
        std::string text(random() % 60, ' ');
        for (char& c : text) {
            c = static_cast<char>(random());
        }
        (void)token_facts("." + text + ".");
        (void)token_text(text);
    }
}

TEST(Token, TheOneThatLastsLongerIsBetter)
{
    EXPECT_TRUE(is_better({{}, at(20)}, {{}, at(10)}));
    EXPECT_FALSE(is_better({{}, at(10)}, {{}, at(10)}));
    EXPECT_TRUE(is_better({}, {{}, at(10)}));
    EXPECT_TRUE(is_better({{}, at(10)}, {}));
}

TEST(Token, IsAskedForAgainAtHalfOfItsLife)
{
    EXPECT_EQ(refreshed_at({at(1000), at(4600)}, at(1300)), at(2800));
    EXPECT_EQ(refreshed_at({{}, at(4600)}, at(1000)), at(2800));
    EXPECT_EQ(refreshed_at({at(9000), at(4600)}, at(1000)), at(4600));
    EXPECT_EQ(refreshed_at({}, at(1000)), at(1600));
}

} // namespace
} // namespace gpuq::credentials
