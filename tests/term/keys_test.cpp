// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuq {
namespace {

using Kind = KeyEvent::Kind;

std::vector<KeyEvent> all_of(std::string_view bytes, KeyReader& reader)
{
    std::vector<KeyEvent> events;
    while (auto event = reader.take(bytes)) {
        events.push_back(*std::move(event));
    }
    return events;
}

std::vector<KeyEvent> all_of(std::string_view bytes)
{
    KeyReader reader;
    return all_of(bytes, reader);
}

/// `a ^c <enter> <other> (report) [pasted]`: one word per event.
std::string shown(const std::vector<KeyEvent>& events)
{
    std::string text;
    for (const KeyEvent& event : events) {
        text += text.empty() ? "" : " ";
        if (event.kind == Kind::report) {
            text += "(report)";
        } else if (event.kind == Kind::pasted) {
            text += "[" + event.text + "]";
        } else if (event.is_enter()) {
            text += "<enter>";
        } else if (event.is_interrupt()) {
            text += "<interrupt>";
        } else if (event.character == 0) {
            text += "<other>";
        } else {
            text += (event.control ? "^" : "") + std::string(event.other_modifier ? "M-" : "") +
                    (event.text.empty() ? std::string(1, static_cast<char>(event.character))
                                        : event.text);
        }
    }
    return text;
}

std::string shown(std::string_view bytes)
{
    return shown(all_of(bytes));
}

/// The kitty keyboard protocol, as a terminal sends it:
/// https://sw.kovidgoyal.net/kitty/keyboard-protocol/
enum : unsigned { k_disambiguate = 1, k_events = 2, k_alternate = 4, k_all_keys = 8, k_text = 16 };
struct Typed {
    const char* name;
    char32_t code;       ///< of the key without modifiers
    char32_t with_shift; ///< 0: Shift is not pressed
    bool control;
    const char* legacy;
    const char* is;
};
constexpr Typed k_keys[] = {
    {"tilde", '`', '~', false, "~", "~"},       {"d", 'd', 0, false, "d", "d"},
    {"percent", '5', '%', false, "%", "%"},     {"D", 'd', 'D', false, "D", "D"},
    {"Enter", '\r', 0, false, "\r", "<enter>"}, {"Ctrl-C", 'c', 0, true, "\x03", "<interrupt>"},
    {"Ctrl-D", 'd', 0, true, "\x04", "^d"},     {"question mark", '/', '?', false, "?", "?"},
};

std::string kitty(const Typed& key, unsigned flags, int event, unsigned locks = 0)
{
    const unsigned modifiers = (key.with_shift != 0 ? 1U : 0U) | (key.control ? 4U : 0U) | locks;
    const bool enter = key.code == '\r';
    const bool escaped =
        (flags & k_all_keys) != 0 || (key.control && (flags & k_disambiguate) != 0);
    if (event == 3 &&
        ((flags & k_events) == 0 || !escaped || (enter && (flags & k_all_keys) == 0))) {
        return "";
    }
    if (!escaped) {
        return key.legacy;
    }
    std::string text = fmt::format("\x1b[{}", static_cast<unsigned>(key.code));
    if ((flags & k_alternate) != 0 && key.with_shift != 0) {
        text += fmt::format(":{}", static_cast<unsigned>(key.with_shift));
    }
    const bool has_event = (flags & k_events) != 0 && event != 1;
    const bool has_text =
        (flags & k_text) != 0 && (flags & k_all_keys) != 0 && event != 3 && !key.control && !enter;
    if (modifiers != 0 || has_event || has_text) {
        text += modifiers != 0 || has_event ? fmt::format(";{}", modifiers + 1) : ";";
        text += has_event ? fmt::format(":{}", event) : "";
    }
    if (has_text) {
        text += fmt::format(";{}",
                            static_cast<unsigned>(key.with_shift != 0 ? key.with_shift : key.code));
    }
    return text + "u";
}

TEST(Keys, AreTheSameWithEachSetOfKittyFlags)
{
    for (const Typed& key : k_keys) {
        for (unsigned flags = 0; flags < 32; ++flags) {
            SCOPED_TRACE(fmt::format("{} with flags {}", key.name, flags));
            EXPECT_EQ(shown(kitty(key, flags, 1)), key.is);
            const std::string again = kitty(key, flags, 2);
            EXPECT_EQ(shown(again), key.is);
            const std::string release = kitty(key, flags, 3);
            EXPECT_EQ(shown(release), release.empty() ? "" : "(report)");
            EXPECT_EQ(shown(kitty(key, flags, 1, 128)), key.is) << "with Num Lock";
        }
    }
}

TEST(Keys, ComeInAnyPieces)
{
    for (const Typed& key : k_keys) {
        for (unsigned flags = 0; flags < 32; ++flags) {
            KeyReader reader;
            std::string raw;
            std::vector<KeyEvent> events;
            const std::string bytes = kitty(key, flags, 1) + kitty(key, flags, 3);
            for (const char c : bytes) {
                for (KeyEvent& event : all_of({&c, 1}, reader)) {
                    raw += event.raw;
                    events.push_back(std::move(event));
                }
            }
            EXPECT_EQ(raw, bytes);
            EXPECT_EQ(shown(events), shown(bytes));
        }
    }
}

TEST(Keys, OfXtermsModifyOtherKeys)
{
    EXPECT_EQ(shown("\x1b[27;5;99~"), "<interrupt>"); // modifyOtherKeys 2
    EXPECT_EQ(shown("\x1b[99;5u"), "<interrupt>");    // the same, formatOtherKeys 1
    EXPECT_EQ(shown("\x1b[27;6;67~"), "<interrupt>"); // with Shift
    EXPECT_EQ(shown("\x1b[27;2;13~"), "<enter>");
    EXPECT_EQ(shown("\x1b[27;1;126~\x1b[27;2;126~\x1b[126;2u"), "~ ~ ~"); // 3: all keys
    EXPECT_EQ(shown("\x1b[27;1;100~"), "d");
    EXPECT_EQ(shown("\x1b[27;3;99~"), "M-c");
}

TEST(Keys, OfWin32InputMode)
{
    EXPECT_EQ(shown("\x1b[17;29;0;1;8;1_\x1b[67;46;3;1;8;1_\x1b[67;46;3;0;8;1_"),
              "(report) <interrupt> (report)");
    EXPECT_EQ(shown("\x1b[13;28;13;1;0;1_\x1b[192;41;126;1;16;1_\x1b[37;75;0;1;0;1_"),
              "<enter> ~ <other>");
}

TEST(Keys, OfOtherLettersAreThoseOfTheirPlace)
{
    EXPECT_EQ(shown("\x1b[1089::99;5u"), "<interrupt>");
    EXPECT_EQ(shown("\x1b[1089;;1089u"), "с");
    EXPECT_EQ(shown("\x1b[0;;126u"), "~");             // composed
    EXPECT_EQ(shown("\x1b[97;65u\x1b[97;66u"), "A a"); // Caps Lock
    EXPECT_EQ(all_of("\x1b[0;;104:105u")[0].text, "hi");
}

TEST(Keys, OfTheKeypad)
{
    EXPECT_EQ(shown("\x1b[57414u\x1bOM"), "<enter> <enter>");
    EXPECT_EQ(shown("\x1b[57401u\x1bOr\x1b[57413;129u"), "2 2 +");
}

TEST(Keys, ThatTypeNothing)
{
    EXPECT_EQ(shown("\x1b[A\x1bOP\x1b[1;5C\x1b[3~\x1b[15;2~\x1b[Z\x1b[[A\x1b[57352u"),
              "<other> <other> <other> <other> <other> <other> <other> <other>");
    EXPECT_EQ(shown("\x1b[1;1:3A\x1b[3;1:3~\x1b[57441;2u\x1b[57441;1:3u\x1b[57358u"),
              "(report) (report) (report) (report) (report)");
}

TEST(Keys, AreNotFoundInReports)
{
    EXPECT_EQ(shown("\x1b[M ~d"), "(report)"); // a mouse, at column 94 and row 68
    EXPECT_EQ(shown("\x1b[<0;126;100M\x1b[<0;126;100m\x1b[32;126;100M\x1b[I\x1b[O"),
              "(report) (report) (report) (report) (report)");
    EXPECT_EQ(
        shown(
            "\x1b[?62;22c\x1b[24;80R\x1b[?1u\x1b]11;rgb:~~/dd/dd\x07\x1bP1$r0~d\x1b\\\x1b[?997;1n"),
        "(report) (report) (report) (report) (report) (report)");
}

TEST(Keys, AreNotFoundInWhatIsPasted)
{
    EXPECT_EQ(shown("a\x1b[200~\r~d\x03 \x1b[2 x\x1b[201~b"),
              "a (report) [\r~d\x03 ] [\x1b[2] [ x] (report) b");
    KeyReader reader;
    std::string all;
    for (const char c : std::string_view("\x1b[200~\x03\x1b\x1b[201~\x03")) {
        all += shown(all_of({&c, 1}, reader)) + ",";
    }
    EXPECT_NE(all.find("[\x03]"), std::string::npos);
    EXPECT_TRUE(all.ends_with("(report),<interrupt>,")) << all;
}

TEST(Keys, AControlByteCountsInsideWhatWasNeverEnded)
{
    for (const char* const begun :
         {"\x1b", "\x1b[", "\x1b[12;3", "\x1bO", "\x1b[M~", "\x1b]11;", "\x1bPabc", "\x1b]x\x1b"}) {
        const auto events = all_of(std::string(begun) + "\x03" + "a");
        ASSERT_EQ(events.size(), 3U) << begun;
        EXPECT_TRUE(events[1].is_interrupt()) << begun;
        EXPECT_TRUE(events[2].is('a')) << begun;
    }
    EXPECT_EQ(shown("\x1b\r"), "\x1b <enter>");
    EXPECT_EQ(shown("\x1bx\x1b\x1b[A"), "M-x \x1b <other>");
}

TEST(Keys, OfGarbageStayBounded)
{
    KeyReader reader;
    std::size_t bytes = 0;
    for (const KeyEvent& event : all_of("\x1b]" + std::string(64 << 10, 'x'), reader)) {
        bytes += event.raw.size();
    }
    EXPECT_GE(bytes, (64U << 10) - 4096U);
    EXPECT_LE(reader.pending().size(), 4096U);
    EXPECT_EQ(all_of("\x1b[99999999999999999999;5u").size(), 1U);
}

} // namespace
} // namespace gpuq
