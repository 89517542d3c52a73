// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Tracks the terminal modes that a program has changed, from its output: screen, cursor, keys,
/// mouse, character sets, colours, margins, title stack. This allows switching a newly attached
/// terminal to the same modes, and restoring one that detaches. Memory use is bounded.
class TerminalModes {
public:
    void feed(std::string_view bytes);

    /// Switches a terminal from its default state to the current modes.
    std::string to_set() const;
    /// Switches a terminal from the current modes to its default state; empty if nothing has
    /// changed.
    std::string to_undo() const;
    /// For input that gpuq itself reads while the program is on the screen: switches the terminal
    /// to plain keys without reports, and back. Empty if no change is needed.
    std::string to_plain_keys() const;
    std::string to_program_keys() const;
    /// True on the alternate screen: full-screen programs use it and redraw it when needed.
    bool on_other_screen() const;
    /// True if keys may arrive as sequences (term/keys.h) that a terminal does not send by default.
    bool encodes_keys() const;
    /// True within a string, such as a title or an image, which ends with ESC \ or BEL.
    bool is_within_string() const
    {
        return m_state == State::string || m_state == State::string_escape;
    }
    /// Changes whenever the result of to_undo() may change.
    std::uint64_t version() const { return m_version; }

private:
    /// The kitty keyboard protocol keeps flags and a stack of flags per screen.
    struct KittyKeys {
        unsigned flags = 0;
        std::vector<unsigned> stack;
        std::string to_set() const;
        std::string to_undo() const;
    };
    struct Charsets {
        std::array<std::string, 4> sets{"(B", ")B", "*B", "+B"}; ///< without the leading ESC
        std::string shift{"\x0f"};
    };
    enum class State { text, escape, intermediate, sequence, string, string_escape };

    void escape(char c);
    void end_escape(char final);
    void end_sequence(char final);
    void end_string();
    void set_private(bool on);
    void set_ansi(bool on);
    void set_attributes();
    void set_kitty(char how);
    void set_colour(std::string_view text);
    void stack_title();
    void soft_reset();
    void reset();
    KittyKeys& kitty() { return m_kitty[on_other_screen() ? 1 : 0]; }

    State m_state = State::text;
    std::string m_sequence; ///< without its introducer
    bool m_cut = false;     ///< m_sequence is truncated
    std::uint64_t m_version = 0;

    std::map<int, bool> m_modes; ///< private modes (DECSET) that differ from the default
    std::map<int, bool> m_ansi;  ///< ANSI modes (SM) that differ from the default
    bool m_keypad = false;
    std::map<std::string, std::string>
        m_key_options; ///< xterm: `4m` for ESC [ > 4 ; 2 m, and its value
    std::array<KittyKeys, 2> m_kitty;
    Charsets m_charsets;
    bool m_not_utf8 = false, m_eight_bit = false, m_printing = false;
    std::map<int, std::string> m_attributes; ///< SGR: the parameter that set each attribute
    std::string m_cursor_shape;
    std::string m_rows, m_columns; ///< margins
    std::vector<std::string> m_titles;
    std::map<int, std::string> m_palette;
    std::map<int, std::string> m_colours; ///< foreground, background, cursor ..., by OSC number
    bool m_link = false, m_progress = false;
};

} // namespace gpuq
