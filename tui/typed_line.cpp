// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/typed_line.h"

#include <cstddef>
#include <string>

namespace gpuq::tui {
namespace {

constexpr char32_t k_ctrl_a = 1, k_ctrl_e = 5, k_ctrl_u = 21, k_ctrl_w = 23, k_delete = 127;

std::string in_utf8(char32_t point)
{
    std::string text;
    const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
    if (point < 0x80) {
        add(point);
    } else if (point < 0x800) {
        add(0xc0 | point >> 6U);
        add(0x80 | (point & 0x3fU));
    } else if (point < 0x10000) {
        add(0xe0 | point >> 12U);
        add(0x80 | (point >> 6U & 0x3fU));
        add(0x80 | (point & 0x3fU));
    } else {
        add(0xf0 | point >> 18U);
        add(0x80 | (point >> 12U & 0x3fU));
        add(0x80 | (point >> 6U & 0x3fU));
        add(0x80 | (point & 0x3fU));
    }
    return text;
}

bool is_inside_character(const std::string& text, std::size_t at)
{
    return at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80;
}

std::size_t one_left(const std::string& text, std::size_t at)
{
    do {
        at -= at > 0 ? 1 : 0;
    } while (is_inside_character(text, at));
    return at;
}

std::size_t one_right(const std::string& text, std::size_t at)
{
    do {
        at += at < text.size() ? 1 : 0;
    } while (is_inside_character(text, at));
    return at;
}

/// The beginning of the word before the cursor.
std::size_t word_left(const std::string& text, std::size_t at)
{
    while (at > 0 && text[at - 1] == ' ') {
        --at;
    }
    while (at > 0 && text[at - 1] != ' ') {
        --at;
    }
    return at;
}

/// Deletes the bytes between two positions; the cursor moves to the first.
void take_away(Prompt& prompt, std::size_t from, std::size_t to)
{
    prompt.typed.erase(from, to - from);
    prompt.cursor = from;
}

} // namespace

void edit(Prompt& prompt, const Key& key)
{
    const std::string& typed = prompt.typed;
    std::size_t& cursor = prompt.cursor;
    if (key.special == Special::left) {
        cursor = one_left(typed, cursor);
    } else if (key.special == Special::right) {
        cursor = one_right(typed, cursor);
    } else if (key.special == Special::home || key.character == k_ctrl_a) {
        cursor = 0;
    } else if (key.special == Special::end || key.character == k_ctrl_e) {
        cursor = typed.size();
    } else if (key.special == Special::backspace || key.character == k_delete) {
        take_away(prompt, one_left(typed, cursor), cursor);
    } else if (key.special == Special::erase) {
        take_away(prompt, cursor, one_right(typed, cursor));
    } else if (key.character == k_ctrl_u) {
        take_away(prompt, 0, cursor);
    } else if (key.character == k_ctrl_w) {
        take_away(prompt, word_left(typed, cursor), cursor);
    } else if (key.character >= 0x20) {
        insert(prompt, {&key.character, 1});
    }
}

void insert(Prompt& prompt, std::u32string_view text)
{
    const std::size_t end = text.find_last_not_of(U"\r\n");
    text = text.substr(0, end == std::u32string_view::npos ? 0 : end + 1);
    std::string inserted;
    for (const char32_t point : text) {
        inserted += point < 0x20 || point == k_delete ? " " : in_utf8(point);
    }
    prompt.typed.insert(prompt.cursor, inserted);
    prompt.cursor += inserted.size();
}

} // namespace gpuq::tui
