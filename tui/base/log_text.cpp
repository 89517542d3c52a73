// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/base/log_text.h"

#include "term/sanitise.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace gpuq::tui {
namespace {

/// How many lines above its last one a program may move back to: nested progress bars.
constexpr std::size_t k_most_open = 16;
constexpr std::size_t k_longest_sequence = 64;
constexpr std::size_t k_tab = 8;
constexpr char k_escape = '\x1b';
/// After ESC: one more byte follows, such as that of a character set in `ESC ( B` of tput sgr0.
constexpr std::string_view k_designations = "()*+-./#% ";

/// The size of the UTF-8 character that begins with this byte; 1 if none does.
std::size_t size_of_character(char first)
{
    const auto byte = static_cast<unsigned char>(first);
    return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
}

bool continues_character(char byte)
{
    return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80;
}

/// The numbers of `1;31`; an empty one becomes `missing`.
std::vector<int> numbers_in(std::string_view text, int missing)
{
    std::vector<int> numbers;
    while (true) {
        const std::size_t end = std::min(text.find(';'), text.size());
        int number = missing;
        std::from_chars(text.data(), text.data() + end, number);
        numbers.push_back(number);
        if (end == text.size()) {
            return numbers;
        }
        text.remove_prefix(end + 1);
    }
}

/// The nearest of the 16 colours to an RGB colour.
std::uint8_t nearest(int red, int green, int blue)
{
    const int brightest = std::max({red, green, blue});
    if (brightest < 48) {
        return 0;
    }
    const auto on = [&](int part) { return 2 * part >= brightest; };
    const int colour = (on(red) ? 1 : 0) | (on(green) ? 2 : 0) | (on(blue) ? 4 : 0);
    return static_cast<std::uint8_t>(colour + (brightest > 200 ? 8 : 0));
}

std::uint8_t of_256(int number)
{
    if (number < 16) {
        return static_cast<std::uint8_t>(std::max(number, 0));
    }
    if (number >= 232) {
        const int grey = 8 + 10 * (number - 232);
        return nearest(grey, grey, grey);
    }
    const int cube = number - 16;
    return nearest(51 * (cube / 36), 51 * (cube / 6 % 6), 51 * (cube % 6));
}

} // namespace

LogText::Row& LogText::row()
{
    return m_open[m_at];
}

void LogText::feed(std::string_view bytes)
{
    for (const char byte : bytes) {
        ++m_fed;
        take(byte);
    }
    copy_open_lines();
}

void LogText::take(char byte)
{
    switch (m_state) {
    case State::text:
        return text_byte(byte);
    case State::escape:
        m_sequence.clear();
        m_state = byte == '[' ? State::sequence
                  : byte == ']' || byte == 'P' || byte == '_' || byte == '^' || byte == 'X'
                      ? State::string
                  : k_designations.find(byte) != std::string_view::npos ? State::designation
                                                                        : State::text;
        return;
    case State::designation:
        m_state = State::text;
        return byte == '\n' || byte == k_escape ? text_byte(byte) : void();
    case State::sequence:
        if (byte >= 0x40 && byte <= 0x7e) {
            m_state = State::text;
            return end_escape(byte);
        }
        if (byte == '\n' || byte == k_escape || m_sequence.size() >= k_longest_sequence) {
            m_state = State::text; // not a sequence after all: the text that follows is kept
            return text_byte(byte);
        }
        m_sequence += byte;
        return;
    case State::string:
        if (byte == '\a' || byte == '\n') {
            m_state = State::text;
        } else if (byte == k_escape) {
            m_state = State::string_escape;
        }
        return;
    case State::string_escape:
        m_state = byte == '\\' ? State::text : State::string;
        return;
    }
}

void LogText::text_byte(char byte)
{
    if (!m_character.empty()) {
        if (continues_character(byte)) {
            m_character += byte;
            if (m_character.size() == size_of_character(m_character[0])) {
                show(std::exchange(m_character, {}));
            }
            return;
        }
        for (const char broken : std::exchange(m_character, {})) {
            show({&broken, 1});
        }
    }
    switch (byte) {
    case k_escape:
        m_state = State::escape;
        return;
    case '\n':
        return new_line();
    case '\r':
        m_column = 0;
        return;
    case '\b':
        m_column -= m_column > 0 ? 1 : 0;
        return;
    case '\t':
        do {
            show(" ");
        } while (m_column % k_tab != 0 && m_column < k_longest);
        return;
    case '\a':
        return;
    default:
        break;
    }
    if (size_of_character(byte) > 1) {
        m_character = byte;
    } else {
        show({&byte, 1});
    }
}

void LogText::show(std::string_view character)
{
    Row& glyphs = row();
    if (m_column > 0 && m_column <= glyphs.size()) { // a combining mark belongs to the character
                                                     // before it
        std::string with = glyphs[m_column - 1].text + std::string(character);
        if (cells(character) == 0 && sanitised(with) == with) {
            glyphs[m_column - 1].text = std::move(with);
            return;
        }
    }
    if (m_column >= k_longest) {
        if (glyphs.size() >= k_longest) {
            glyphs.back().text = "…";
        }
        return;
    }
    if (glyphs.size() <= m_column) {
        glyphs.resize(m_column + 1, {" ", {}});
    }
    glyphs[m_column++] = {sanitised(character), m_style};
}

void LogText::new_line()
{
    m_column = 0;
    if (m_at + 1 < m_open.size()) {
        ++m_at;
        return;
    }
    m_open.emplace_back();
    m_at = m_open.size() - 1;
    m_lines.emplace_back();
    m_begins.push_back(m_fed);
    if (m_open.size() > k_most_open) {
        m_lines[m_lines.size() - m_open.size()] = compact(m_open.front());
        m_open.pop_front();
        --m_at;
    }
    if (m_lines.size() > k_most_lines) {
        m_lines.pop_front();
        m_begins.pop_front();
        ++m_gone;
    }
}

void LogText::move_up(int rows)
{
    m_at -= std::min(m_at, static_cast<std::size_t>(std::max(rows, 1)));
}

void LogText::end_escape(char final)
{
    const int number = numbers_in(m_sequence, 0).front();
    const auto count = static_cast<std::size_t>(std::clamp(number, 1, 10'000));
    switch (final) {
    case 'm':
        return colour();
    case 'K':
        if (number == 0 && m_column < row().size()) {
            row().resize(m_column);
        } else if (number == 2) {
            row().clear();
        }
        return;
    case 'A':
        return move_up(number);
    case 'F':
        m_column = 0;
        return move_up(number);
    case 'B':
        m_at = std::min(m_at + count, m_open.size() - 1);
        return;
    case 'C':
        m_column = std::min(m_column + count, k_longest);
        return;
    case 'D':
        m_column -= std::min(m_column, count);
        return;
    case 'G':
        m_column = std::min(count - 1, k_longest);
        return;
    default:
        return;
    }
}

void LogText::colour()
{
    const std::vector<int> numbers = numbers_in(m_sequence, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const int number = numbers[i];
        const auto of = [](int colour) { return static_cast<std::uint8_t>(colour); };
        if (number == 0) {
            m_style = {};
        } else if (number == 1) {
            m_style.bold = true;
        } else if (number == 2) {
            m_style.dim = true;
        } else if (number == 4) {
            m_style.underline = true;
        } else if (number == 7) {
            m_style.reverse = true;
        } else if (number == 22) {
            m_style.bold = m_style.dim = false;
        } else if (number == 24) {
            m_style.underline = false;
        } else if (number == 27) {
            m_style.reverse = false;
        } else if (number >= 30 && number <= 37) {
            m_style.fg = of(number - 30);
        } else if (number >= 90 && number <= 97) {
            m_style.fg = of(number - 90 + 8);
        } else if (number >= 40 && number <= 47) {
            m_style.bg = of(number - 40);
        } else if (number >= 100 && number <= 107) {
            m_style.bg = of(number - 100 + 8);
        } else if (number == 39) {
            m_style.fg.reset();
        } else if (number == 49) {
            m_style.bg.reset();
        } else if (number == 38 || number == 48) {
            auto& part = number == 38 ? m_style.fg : m_style.bg;
            if (i + 2 < numbers.size() && numbers[i + 1] == 5) {
                part = of_256(numbers[i + 2]);
                i += 2;
            } else if (i + 4 < numbers.size() && numbers[i + 1] == 2) {
                part = nearest(numbers[i + 2], numbers[i + 3], numbers[i + 4]);
                i += 4;
            }
        }
    }
}

Line LogText::compact(const Row& row)
{
    Line line;
    for (const Glyph& glyph : row) {
        if (line.empty() || (line.back().style != glyph.style && line.size() < k_most_spans)) {
            line.push_back({"", glyph.style});
        }
        line.back().text += glyph.text;
    }
    return line;
}

void LogText::copy_open_lines()
{
    const std::size_t first = m_lines.size() - std::min(m_lines.size(), m_open.size());
    const std::size_t hidden = m_open.size() - (m_lines.size() - first);
    for (std::size_t i = first; i < m_lines.size(); ++i) {
        m_lines[i] = compact(m_open[hidden + i - first]);
    }
}

} // namespace gpuq::tui
