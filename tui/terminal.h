// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "tui/canvas.h"
#include "tui/model.h"

#include <memory>
#include <optional>
#include <string>

namespace gpuq::tui {

/// The terminal of standard input and output, by ncurses. One object at a time, used by one thread.
/// It is given back as it was by the destructor, and when this process dies of a signal that can be
/// caught.
class Terminal {
public:
    /// `usage` when there is none, or it is of a kind that this machine does not know.
    static Result<std::unique_ptr<Terminal>> open(bool colour);
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    /// It shows ASCII alone: the locale is not one of UTF-8.
    bool ascii() const { return m_ascii; }
    Resized size() const;
    /// Draws what differs from what is there.
    void show(const Canvas& canvas);
    /// All of it, the next time that something is shown.
    void redraw();
    /// The next key, or nothing; a new size counts as a key here. Never waits.
    std::optional<Message> next();

    /// Gives it to somebody else for a while, and takes it back.
    void leave();
    void enter();
    /// Into the clipboard, where the terminal allows it (OSC 52).
    void copy(const std::string& text);

private:
    Terminal(void* screen, bool colour, bool ascii);
    void draw_row(const Canvas& canvas, int row);
    void set_style(const Style& wanted);
    int pair(const Style& style);

    void* m_screen; ///< ncurses' SCREEN, which is seen by terminal.cpp alone
    bool m_colour;
    bool m_ascii;
    bool m_light = false;
    std::optional<Canvas> m_shown;
    std::vector<std::pair<int, int>> m_pairs;
};

} // namespace gpuq::tui
