// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/escape_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gpuq::cli {
namespace {

/// Feeds the keys one by one. Returns the bytes that reach the program, and `<detach>` or `<help>`.
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

/// Enter, the detach keys and their releases, as a terminal sends them (flags 31) to a program that
/// uses the kitty keyboard protocol.
constexpr std::string_view k_enter = "\x1b[13u\x1b[13;1:3u";
constexpr std::string_view k_tilde = "\x1b[57441;2u\x1b[96:126;2;126u\x1b[96;2:3u\x1b[57441;1:3u";
constexpr std::string_view k_d = "\x1b[100;;100u";

/// Feeds pieces of `size` bytes. Returns the bytes that reach the program, and `<detach>`.
std::string typed_in_pieces(std::string_view keys, std::size_t size)
{
    EscapeKeys escape(DetachKey{});
    std::string all;
    for (; !keys.empty(); keys.remove_prefix(std::min(size, keys.size()))) {
        const auto found = escape.take(keys.substr(0, size), EscapeKeys::Encoding::sequences);
        all += found.bytes + (found.detach ? "<detach>" : "");
    }
    return all + escape.released();
}

TEST(EscapeKeys, AreKnownInSequences)
{
    const std::string enter(k_enter), tilde(k_tilde), d(k_d);
    const std::string shift(k_tilde.substr(0, k_tilde.find("\x1b[96")));
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
        SCOPED_TRACE(size);
        EXPECT_EQ(typed_in_pieces(enter + tilde + d, size), enter + shift + "<detach>");
        EXPECT_EQ(typed_in_pieces(enter + tilde + "\x1b[120;;120u", size),
                  enter + tilde + "\x1b[120;;120u");
        EXPECT_EQ(typed_in_pieces("\x1b[108;;108u" + tilde + d, size),
                  "\x1b[108;;108u" + tilde + d);
        EXPECT_EQ(typed_in_pieces("\x1b[13;1u\x1b[I\x1b[96;2u\x1b[100u", size),
                  "\x1b[13;1u\x1b[I<detach>");
        EXPECT_EQ(typed_in_pieces("\r~\x1b[A", size), "\r~\x1b[A");
    }
    // ~ ~ sends a single ~.
    EXPECT_EQ(typed_in_pieces(enter + "\x1b[96;2u\x1b[96;2u" + d, 1), enter + "\x1b[96;2u" + d);
}

TEST(EscapeKeys, AreNotTakenOutOfAPasteInBrackets)
{
    const std::string paste = "\x1b[200~x\r~d\x1b[201~";
    EXPECT_EQ(typed_in_pieces(paste, 1000), paste);
    EXPECT_EQ(typed_in_pieces(paste, 1), paste);
}

TEST(EscapeKeys, DoNotHoldBackEscape)
{
    EscapeKeys keys(DetachKey{});
    EXPECT_EQ(keys.take("\r\x1b").bytes, "\r\x1b");
    EXPECT_EQ(keys.take("j").bytes, "j");
    EXPECT_EQ(keys.take("\r~\x1b").bytes, "\r~\x1b");
    EXPECT_EQ(keys.take("\r\x1b", EscapeKeys::Encoding::sequences).bytes, "\r");
    EXPECT_TRUE(keys.is_waiting());
    EXPECT_EQ(keys.released(), "\x1b");
    EXPECT_FALSE(keys.is_waiting());
    EXPECT_EQ(keys.take("[A", EscapeKeys::Encoding::sequences).bytes, "[A");
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
