// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/escape_keys.h"

#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

/// Typed key by key: what the program gets, and `<detach>` or `<help>`.
std::string typed(std::string_view keys, DetachKey key = {})
{
    EscapeKeys escape(key);
    std::string all;
    for (const char c : keys) {
        const auto found = escape.take({&c, 1});
        all += found.bytes + (found.detach ? "<detach>" : "") + (found.help ? "<help>" : "");
    }
    return all;
}

TEST(EscapeKeys, DetachOnlyAfterEnter)
{
    EXPECT_EQ(typed("~d"), "<detach>");
    EXPECT_EQ(typed("ls\r~d"), "ls\r<detach>");
    EXPECT_EQ(typed("ls ~d"), "ls ~d");
    EXPECT_EQ(typed("cd ~\r~x"), "cd ~\r~x");
}

TEST(EscapeKeys, TypedTwiceAreTyped)
{
    EXPECT_EQ(typed("\r~~d"), "\r~d");
    EXPECT_EQ(typed("\r~\r~d"), "\r~\r<detach>");
}

TEST(EscapeKeys, Help)
{
    EXPECT_EQ(typed("\r~?~d"), "\r<help><detach>");
}

TEST(EscapeKeys, ArePersonal)
{
    EXPECT_EQ(typed("\r%x", *detach_key_from("%x")), "\r<detach>");
    EXPECT_EQ(typed("\r~d", *detach_key_from("%x")), "\r~d");
    EXPECT_EQ(typed("\r~d", *detach_key_from("off")), "\r~d");
    for (const char* wrong : {"", "d", "~dd", "~\x01", "~ ", "no"}) {
        EXPECT_EQ(detach_key_from(wrong).has_value(), std::string_view(wrong) == "no") << wrong;
    }
    EXPECT_EQ(keys_text(*detach_key_from("%x")), "Enter % x");
}

TEST(EscapeKeys, InWhatIsPastedAreTheProgramsOwn)
{
    EscapeKeys escape(DetachKey{});
    const std::string text = "a line\r~d and more than any person types\r";
    EXPECT_EQ(escape.take("\r~d").detach, true);
    const auto found = escape.take(text);
    EXPECT_EQ(found.bytes, text);
    EXPECT_FALSE(found.detach);
}

TEST(EscapeKeys, APasteAfterTheFirstKeyLosesNothing)
{
    EscapeKeys escape(DetachKey{});
    EXPECT_EQ(escape.take("\r~").bytes, "\r");
    const std::string text(100, 'd');
    EXPECT_EQ(escape.take(text).bytes, "~" + text);
}

TEST(EscapeKeys, AreNotTakenOutOfAShortPaste)
{
    EscapeKeys keys(DetachKey{});
    const auto found = keys.take("first\r~d\rlast");
    EXPECT_FALSE(found.detach);
    EXPECT_EQ(found.bytes, "first\r~d\rlast");
    EXPECT_TRUE(keys.take("\r~d").detach);
}

} // namespace
} // namespace gpuq::cli
