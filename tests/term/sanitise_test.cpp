// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/sanitise.h"

#include <gtest/gtest.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace gpuq {
namespace {

/// Reference: the C library's UTF-8 decoder.
std::optional<std::vector<char32_t>> points_by_iconv(std::string bytes)
{
    std::vector<char32_t> points(bytes.size() + 1);
    char* in = bytes.data();
    std::size_t in_left = bytes.size();
    auto* out = reinterpret_cast<char*>(points.data());
    std::size_t out_left = points.size() * sizeof(char32_t);
    const iconv_t converter = iconv_open("UTF-32LE", "UTF-8");
    const std::size_t rc = iconv(converter, &in, &in_left, &out, &out_left);
    iconv_close(converter);
    if (rc == static_cast<std::size_t>(-1)) {
        return std::nullopt;
    }
    points.resize(points.size() - out_left / sizeof(char32_t));
    return points;
}

bool may_reach_a_terminal(char32_t p)
{
    const bool control = p < 0x20 || (p >= 0x7f && p < 0xa0);
    const bool invisible = (p >= 0x200b && p <= 0x200f) || (p >= 0x2028 && p <= 0x202e) ||
                           (p >= 0x2060 && p <= 0x206f) || p == 0xfeff || p == 0x00ad ||
                           p == 0x061c || (p >= 0xfe00 && p <= 0xfe0f) || p == 0x3164 ||
                           (p >= 0xe0000 && p <= 0xe0fff);
    return !control && !invisible;
}

TEST(Sanitised, LeavesOrdinaryTextAlone)
{
    const std::string plain = "train_résumé 最終.py --lr 1e-3 {~} \\n 👩 e\u0301";
    EXPECT_EQ(sanitised(plain), plain);
}

TEST(TakeGlyph, KeepsMarksWithTheirBase)
{
    std::string_view text = "ae\u0301\u0300最";
    EXPECT_EQ(take_glyph(text), "a");
    EXPECT_EQ(take_glyph(text), "e\u0301\u0300");
    EXPECT_EQ(take_glyph(text), "最");
    EXPECT_EQ(take_glyph(text), "");
}

TEST(Sanitised, DisarmsEveryKnownAttack)
{
    EXPECT_EQ(sanitised("\033]0;title\a"), "^[]0;title^G");
    EXPECT_EQ(sanitised("\033]52;c;ZXZpbA==\a"), "^[]52;c;ZXZpbA==^G");
    EXPECT_EQ(sanitised("\033[2J\033[1A\033[2K\033[6n"), "^[[2J^[[1A^[[2K^[[6n");
    EXPECT_EQ(sanitised("\033P+q\033\\"), "^[P+q^[\\");
    EXPECT_EQ(sanitised("\x9b"
                        "31m"),
              "\\x9b31m");
    EXPECT_EQ(sanitised("\u009b31m"), "\\u{9b}31m");
    EXPECT_EQ(sanitised("a\rb\bc\td\ne\x7f"), "a^Mb^Hc^Id^Je^?");
    EXPECT_EQ(sanitised(std::string("a\0b", 3)), "a^@b");
    EXPECT_EQ(sanitised("gpj.\u202egnp"), "gpj.\\u{202e}gnp");
    EXPECT_EQ(sanitised("a\u2028b\u2029c\u200bd\ufeffe"),
              "a\\u{2028}b\\u{2029}c\\u{200b}d\\u{feff}e");
}

TEST(Sanitised, SpellsBytesThatAreNotUtf8)
{
    EXPECT_EQ(sanitised("\xc0\xaf"), "\\xc0\\xaf");                   // overlong
    EXPECT_EQ(sanitised("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");          // overlong
    EXPECT_EQ(sanitised("\xed\xa0\x80"), "\\xed\\xa0\\x80");          // surrogate
    EXPECT_EQ(sanitised("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"); // beyond Unicode
    EXPECT_EQ(sanitised("caf\xe9"), "caf\\xe9");                      // Latin-1
    EXPECT_EQ(sanitised("\xe6\x9c"), "\\xe6\\x9c");                   // truncated
}

TEST(Utf8, IsFoundWhereItEnds)
{
    EXPECT_EQ(first_not_utf8(""), std::nullopt);
    EXPECT_EQ(first_not_utf8("d\xc3\xa9\U0001f600"), std::nullopt);
    EXPECT_EQ(first_not_utf8("d\xe9 a"), 1U) << "Latin-1";
    EXPECT_EQ(first_not_utf8("a\xc3"), 1U) << "cut off";
    EXPECT_EQ(first_not_utf8("ab\xc0\x80"), 2U) << "overlong";
    EXPECT_EQ(first_not_utf8("\xed\xa0\x80"), 0U) << "a surrogate";
}

TEST(Sanitised, AllowsFourMarksOnABaseAndNoneWithoutOne)
{
    EXPECT_EQ(sanitised("\u0301x"), "\\u{301}x");
    EXPECT_EQ(sanitised("e\u0301\u0301\u0301\u0301\u0301"), "e\u0301\u0301\u0301\u0301\\u{301}");
    EXPECT_EQ(sanitised("\n\u0301"), "^J\\u{301}");
}

TEST(Sanitised, NeverLetsAnythingElseThrough)
{
    std::mt19937 random(20261120);
    const std::array<std::string, 12> spice = {"\033",     "\x9b",   "\u009b", "\u202e",
                                               "\u2066",   "\u0301", "\r",     "\xf0\x9f\x91\xa9",
                                               "\xed\xa0", "\xc2",   "\ufe0f", "最"};
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        for (auto i = random() % 24; i > 0; --i) {
            text += random() % 2 == 0 ? spice[random() % spice.size()]
                                      : std::string(1, static_cast<char>(random() % 256));
        }
        const std::string shown = sanitised(text);
        const auto points = points_by_iconv(shown);
        ASSERT_TRUE(points) << "not UTF-8 any more: " << shown;
        for (const char32_t point : *points) {
            ASSERT_TRUE(may_reach_a_terminal(point)) << unsigned(point) << " in " << shown;
        }
        ASSERT_EQ(sanitised(shown), shown);
        const auto before = points_by_iconv(text);
        const bool clean = before && std::all_of(before->begin(), before->end(),
                                                 [](char32_t p) { return p >= 0x20 && p < 0x7f; });
        ASSERT_TRUE(!clean || shown == text);
        const std::size_t width = random() % 12;
        ASSERT_LE(cells(clipped(shown, width)), width);
    }
}

TEST(Cells, CountsWideAndCombiningCharacters)
{
    EXPECT_EQ(cells("abc"), 3u);
    EXPECT_EQ(cells("最終"), 4u);
    EXPECT_EQ(cells("e\u0301"), 1u);
    EXPECT_EQ(cells("👩"), 2u);
}

TEST(Clipped, CutsAtACellAndSaysSo)
{
    EXPECT_EQ(clipped("abcdef", 6), "abcdef");
    EXPECT_EQ(clipped("abcdef", 5), "abcd…");
    EXPECT_EQ(clipped("最終回", 5), "最終…");
    EXPECT_EQ(clipped("最終回", 4), "最…"); // never half a wide character
    EXPECT_EQ(clipped("e\u0301fg", 2), "e\u0301…");
    EXPECT_EQ(clipped("abc", 0), "");
}

} // namespace
} // namespace gpuq
