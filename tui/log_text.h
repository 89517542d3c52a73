// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "tui/canvas.h"

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace gpuq::tui {

/// What a program wrote, as lines for a screen: colours are kept, progress bars drawn over with CR,
/// BS and cursor movements become the one line that a terminal would show, all other control
/// sequences vanish, and everything else is sanitised. Bytes may come in any pieces. Memory is
/// bounded: the newest k_most_lines lines, k_longest cells of each.
class LogText {
public:
    static constexpr std::size_t k_most_lines = 5000;
    static constexpr std::size_t k_longest = 4000;

    void feed(std::string_view bytes);
    /// So many lines have gone at the beginning.
    std::size_t gone() const { return m_gone; }
    /// All of them, the last one unfinished. Never empty.
    const std::deque<Line>& lines();

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

    enum class State { text, escape, sequence, string, string_escape } m_state = State::text;
    std::string m_sequence;  ///< of an ESC [
    std::string m_character; ///< a beginning of one in UTF-8
    Style m_style;
    std::deque<Row> m_open{1}; ///< the last ones, which a program may still draw over
    std::size_t m_at = 0;      ///< which of them the cursor is in
    std::size_t m_column = 0;
    std::deque<Line> m_lines{1}; ///< the finished ones, then the open ones
    std::size_t m_gone = 0;
    bool m_stale = false; ///< m_lines does not show m_open as it is
};

/// What report::to_text or our own words give, colours in them, as one line for the canvas.
Line styled(std::string_view text);

} // namespace gpuq::tui
