// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "tui/base/canvas.h"
#include "tui/model.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <wchar.h>

namespace gpuq::tui {

/// The terminal of standard input and output, using ncurses. One object at a time, used by one
/// thread. Restored by the destructor, and when this process dies of a signal that can be caught.
class Terminal {
public:
    /// `usage` if there is none, or if its type is unknown on this machine.
    static Result<std::unique_ptr<Terminal>> open(Colours colours);
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    const Theme& theme() const { return m_theme; }
    Resized size() const;
    /// Draws the differences from the current content.
    void show(const Canvas& canvas);
    /// Makes the next show() draw everything.
    void redraw();
    /// The next key, or nothing; a new size counts as a key here. Never waits.
    std::optional<Message> next();

    /// Hands the terminal to another process for a while, and takes it back.
    void leave();
    void enter();
    /// Discards the keys that have been typed but not read, for another program for instance.
    void drop_keys();
    /// Copies to the clipboard, if the terminal allows it (OSC 52).
    void copy(const std::string& text);
    /// Rings the bell and asks the terminal for a desktop notification (OSC 777 or OSC 9), which
    /// terminals without them ignore. `text` is sanitised here.
    void notify(const std::string& text);

private:
    /// The characters that can be shown: ASCII, the letters of most languages, or all.
    enum class Characters { ascii, letters, all };
    Terminal(void* screen, Colours colours, Characters characters);
    void draw_row(const Canvas& canvas, int row);
    void set_style(const Style& wanted);
    int number_of(std::uint32_t colour) const;
    int pair(const Style& style);
    std::optional<Message> mouse_event();
    std::optional<Message> pasted(int kind, wint_t code);

    void* m_screen; ///< ncurses' SCREEN, known only to terminal.cpp
    bool m_colour;
    Characters m_characters;
    Theme m_theme;
    std::optional<Canvas> m_shown;
    /// The last click that was not the second of a double click, and its row and column.
    std::optional<std::pair<std::chrono::steady_clock::time_point, std::pair<int, int>>> m_click;
    std::map<std::pair<int, int>, int> m_pairs;        ///< numbers of ncurses by both colours
    std::optional<std::u32string> m_paste;             ///< pasted text that has not ended
    std::chrono::steady_clock::time_point m_pasted_at; ///< its last part
};

} // namespace gpuq::tui
