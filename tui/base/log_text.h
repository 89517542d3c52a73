// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/base/canvas.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace gpuq::tui {

/// Converts program output to lines for a screen: keeps colours, reduces progress bars drawn with
/// CR, BS and cursor movements to the line that a terminal would show, removes all other control
/// sequences, and sanitises everything else. Input may be split anywhere. Memory is bounded: the
/// newest k_most_lines lines, of each k_longest cells, the last one an ellipsis if it is cut, and
/// the first k_most_spans changes of style.
class LogText {
public:
    static constexpr std::size_t k_most_lines = 5000;
    static constexpr std::size_t k_longest = 4000;
    static constexpr std::size_t k_most_spans = 128;

    void feed(std::string_view bytes);
    /// The number of lines dropped at the beginning.
    std::size_t gone() const { return m_gone; }
    /// All lines, the last one unfinished. Never empty.
    const std::deque<Line>& lines() const { return m_lines; }
    /// The number of bytes fed before the line.
    std::uint64_t begin_of(std::size_t line) const { return m_begins[line]; }

private:
    struct Glyph {
        std::string text;
        Style style;
    };
    using Row = std::vector<Glyph>;

    void take(char byte);
    void text_byte(char byte);
    void show(std::string_view character);
    void end_escape(char final);
    void colour();
    void move_up(int rows);
    void new_line();
    Row& row();
    static Line compact(const Row& row);
    void copy_open_lines();

    enum class State {
        text,
        escape,
        sequence,
        string,
        string_escape,
        designation
    } m_state = State::text;
    std::string m_sequence;  ///< after ESC [
    std::string m_character; ///< an incomplete UTF-8 character
    Style m_style;
    std::deque<Row> m_open{1}; ///< the last lines, which a program may still overwrite
    std::size_t m_at = 0;      ///< which of them has the cursor
    std::size_t m_column = 0;
    std::deque<Line> m_lines{1};           ///< the finished lines, then the open ones
    std::deque<std::uint64_t> m_begins{0}; ///< of each line
    std::uint64_t m_fed = 0;
    std::size_t m_gone = 0;
};

} // namespace gpuq::tui
