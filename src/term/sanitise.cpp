// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace gpuq {
namespace {

struct Range {
    char32_t first;
    char32_t last;
};

#include "term/cell_widths.inc"

constexpr int k_most_marks = 4;

template <std::size_t N>
bool in(const Range (&ranges)[N], char32_t point)
{
    const auto* range = std::lower_bound(std::begin(ranges), std::end(ranges), point,
                                         [](const Range& r, char32_t p) { return r.last < p; });
    return range != std::end(ranges) && range->first <= point;
}

struct Decoded {
    char32_t point;
    std::size_t size; ///< bytes
};

std::size_t sequence_size(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        return 3;
    }
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// Decodes the first character of `text`; nullopt when its bytes are not UTF-8.
std::optional<Decoded> decode(std::string_view text)
{
    constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t size = sequence_size(first);
    if (size == 0 || size > text.size()) {
        return std::nullopt;
    }
    char32_t point = size == 1 ? first : first & (0x7fU >> size);
    for (std::size_t i = 1; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xc0U) != 0x80) {
            return std::nullopt;
        }
        point = (point << 6U) | (byte & 0x3fU);
    }
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < smallest[size] || surrogate || point > 0x10ffff) {
        return std::nullopt;
    }
    return Decoded{point, size};
}

bool has_caret_form(char32_t point)
{
    return point < 0x20 || point == 0x7f;
}

bool must_be_spelled(char32_t point)
{
    return has_caret_form(point) || (point >= 0x80 && point < 0xa0) || in(k_invisible, point);
}

std::string spelled(char32_t point)
{
    if (has_caret_form(point)) {
        return {'^', static_cast<char>(point ^ 0x40U)};
    }
    return fmt::format("\\u{{{:x}}}", static_cast<unsigned>(point));
}

std::size_t width_of(char32_t point)
{
    if (in(k_combining, point)) {
        return 0;
    }
    return in(k_wide, point) ? 2 : 1;
}

} // namespace

std::string sanitised(std::string_view text)
{
    std::string shown;
    shown.reserve(text.size());
    int marks = k_most_marks; // a mark at the start of a text has no base
    while (!text.empty()) {
        const auto character = decode(text);
        const std::size_t size = character ? character->size : 1;
        const bool mark = character && in(k_combining, character->point);
        if (!character) {
            shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
            marks = k_most_marks;
        } else if (mark ? marks >= k_most_marks : must_be_spelled(character->point)) {
            shown += spelled(character->point);
            marks = k_most_marks;
        } else {
            shown += text.substr(0, size);
            marks = mark ? marks + 1 : 0;
        }
        text.remove_prefix(size);
    }
    return shown;
}

std::optional<std::size_t> first_not_utf8(std::string_view text)
{
    for (std::size_t at = 0; at < text.size();) {
        const auto character = decode(text.substr(at));
        if (!character) {
            return at;
        }
        at += character->size;
    }
    return std::nullopt;
}

std::size_t cells(std::string_view sanitised_text)
{
    std::size_t width = 0;
    while (!sanitised_text.empty()) {
        const auto character = decode(sanitised_text);
        width += character ? width_of(character->point) : 1;
        sanitised_text.remove_prefix(character ? character->size : 1);
    }
    return width;
}

std::string_view take_glyph(std::string_view& sanitised_text)
{
    std::size_t size = 0;
    while (size < sanitised_text.size()) {
        const auto character = decode(sanitised_text.substr(size));
        if (size > 0 && !(character && in(k_combining, character->point))) {
            break;
        }
        size += character ? character->size : 1;
    }
    const std::string_view glyph = sanitised_text.substr(0, size);
    sanitised_text.remove_prefix(size);
    return glyph;
}

std::string clipped(std::string_view sanitised_text, std::size_t width)
{
    if (cells(sanitised_text) <= width) {
        return std::string(sanitised_text);
    }
    if (width == 0) {
        return {};
    }
    std::size_t used = 0;
    std::size_t end = 0;
    while (end < sanitised_text.size()) {
        const auto character = decode(sanitised_text.substr(end));
        const std::size_t next = character ? width_of(character->point) : 1;
        if (used + next > width - 1) {
            break;
        }
        used += next;
        end += character ? character->size : 1;
    }
    return std::string(sanitised_text.substr(0, end)) + "…";
}

} // namespace gpuq
