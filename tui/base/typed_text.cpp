// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/typed_text.h"

#include "core/quote.h"
#include "core/result.h"
#include "core/split_arguments.h"
#include "term/sanitise.h"
#include "tui/base/theme.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace gpuq::tui {
namespace {

constexpr char32_t k_ctrl_a = 1, k_ctrl_e = 5, k_ctrl_u = 21, k_ctrl_w = 23, k_delete = 127;
constexpr std::size_t k_most_proposals = 60;

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
void take_away(TypedText& text, std::size_t from, std::size_t to)
{
    text.typed.erase(from, to - from);
    text.cursor = from;
}

/// In quotes if split_arguments() would not read it as one argument otherwise.
std::string as_argument(const std::string& word)
{
    return word.find_first_of(" \t\n'\"\\") == std::string::npos ? word : shell_quoted(word);
}

std::string common_beginning(const std::vector<std::string>& proposals)
{
    std::string common = proposals.empty() ? "" : proposals.front();
    for (const std::string& proposal : proposals) {
        const auto end =
            std::mismatch(common.begin(), common.end(), proposal.begin(), proposal.end()).first;
        common.erase(end, common.end());
    }
    return common;
}

} // namespace

void edit(TypedText& text, const Key& key)
{
    const std::string& typed = text.typed;
    std::size_t& cursor = text.cursor;
    if (key.special == Special::left) {
        cursor = one_left(typed, cursor);
    } else if (key.special == Special::right) {
        cursor = one_right(typed, cursor);
    } else if (key.special == Special::home || key.character == k_ctrl_a) {
        cursor = 0;
    } else if (key.special == Special::end || key.character == k_ctrl_e) {
        cursor = typed.size();
    } else if (key.special == Special::backspace || key.character == k_delete) {
        take_away(text, one_left(typed, cursor), cursor);
    } else if (key.special == Special::erase) {
        take_away(text, cursor, one_right(typed, cursor));
    } else if (key.character == k_ctrl_u) {
        take_away(text, 0, cursor);
    } else if (key.character == k_ctrl_w) {
        take_away(text, word_left(typed, cursor), cursor);
    } else if (key.character >= 0x20) {
        insert(text, {&key.character, 1});
    }
}

void insert(TypedText& text, std::u32string_view inserted)
{
    const std::size_t end = inserted.find_last_not_of(U"\r\n");
    inserted = inserted.substr(0, end == std::u32string_view::npos ? 0 : end + 1);
    std::string bytes;
    for (const char32_t point : inserted) {
        bytes += point < 0x20 || point == k_delete ? " " : in_utf8(point);
    }
    text.typed.insert(text.cursor, bytes);
    text.cursor += bytes.size();
}

std::optional<std::vector<std::string>> arguments_to_complete(const TypedText& line)
{
    auto arguments = split_arguments(line.typed);
    if (!arguments || line.cursor != line.typed.size() ||
        line.typed.find_first_of("'\"\\") != std::string::npos) {
        return std::nullopt;
    }
    if (line.typed.empty() || line.typed.back() == ' ') {
        arguments->emplace_back();
    }
    return *std::move(arguments);
}

bool complete_word(TypedText& line, const std::vector<std::string>& proposals)
{
    const std::size_t begin = line.typed.find_last_of(' ') + 1; // 0 without a blank
    const std::string common = common_beginning(proposals);
    const bool is_whole = proposals.size() == 1 && !common.ends_with('/');
    if (common.size() + (is_whole ? 1 : 0) <= line.typed.size() - begin) {
        return false;
    }
    line.typed.replace(begin, std::string::npos, as_argument(common) + (is_whole ? " " : ""));
    line.cursor = line.typed.size();
    return true;
}

bool complete_text(TypedText& text, const std::vector<std::string>& proposals)
{
    std::string common = common_beginning(proposals);
    if (common.size() <= text.typed.size()) {
        return false;
    }
    text.typed = std::move(common);
    text.cursor = text.typed.size();
    return true;
}

std::vector<std::string> several(std::vector<std::string> proposals)
{
    proposals.resize(proposals.size() > 1 ? std::min(proposals.size(), k_most_proposals) : 0);
    return proposals;
}

Line typed_line(const std::string& label, const TypedText& text, int columns)
{
    const std::string before = sanitised(label + text.typed.substr(0, text.cursor));
    const std::string after = sanitised(text.typed.substr(text.cursor));
    std::string_view rest = after;
    const std::string_view at = take_glyph(rest);
    std::string_view shown = before;
    while (cells(shown) + std::max<std::size_t>(cells(at), 1) > static_cast<std::size_t>(columns)) {
        if (shown.empty()) {
            break;
        }
        (void)take_glyph(shown);
    }
    Line line{{std::string(shown) + (at.empty() ? "_" : ""), {}}};
    if (!at.empty()) {
        line.push_back({std::string(at), marked()});
        line.push_back({std::string(rest), {}});
    }
    return line;
}

} // namespace gpuq::tui
