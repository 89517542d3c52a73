// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// What a program has switched on in its terminal, out of the bytes that it wrote: screen, cursor,
/// keys, mouse, character sets, colours, margins, title stack. So a terminal that comes later can
/// be switched the same way, and one that leaves early can be switched back. Memory is bounded.
class TerminalModes {
public:
    void feed(std::string_view bytes);

    /// Brings a terminal in its usual state to the present modes.
    std::string to_set() const;
    /// Brings a terminal in the present modes to its usual state; empty when it is there.
    std::string to_undo() const;
    /// For a line that gpuq reads while the program is on the screen: makes the terminal send plain
    /// keys and no reports, and back. Empty when it does so anyway.
    std::string to_plain_keys() const;
    std::string to_program_keys() const;
    /// Full-screen programs use it, and draw it anew by themselves.
    bool on_other_screen() const;
    /// Keys may come as sequences (core/keys.h) that a terminal in its usual state does not send.
    bool encodes_keys() const;
    /// Changes with everything that to_undo() may depend on.
    std::uint64_t version() const { return m_version; }

private:
    /// The kitty keyboard protocol keeps flags and a stack of them for each screen.
    struct KittyKeys {
        unsigned flags = 0;
        std::vector<unsigned> stack;
        std::string to_set() const;
        std::string to_undo() const;
    };
    struct Charsets {
        std::array<std::string, 4> sets{"(B", ")B", "*B", "+B"}; ///< behind their ESC
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
    std::string m_sequence; ///< without what introduces it
    bool m_cut = false;     ///< m_sequence is not whole
    std::uint64_t m_version = 0;

    std::map<int, bool> m_modes; ///< private ones (DECSET) that differ from usual
    std::map<int, bool> m_ansi;  ///< others (SM) that differ from usual
    bool m_keypad = false;
    std::map<std::string, std::string>
        m_key_options; ///< xterm: `4m` of ESC [ > 4 ; 2 m, and its value
    std::array<KittyKeys, 2> m_kitty;
    Charsets m_charsets;
    bool m_not_utf8 = false, m_eight_bit = false, m_printing = false;
    std::map<int, std::string> m_attributes; ///< SGR: of each attribute the parameter that set it
    std::string m_cursor_shape;
    std::string m_rows, m_columns; ///< margins
    std::vector<std::string> m_titles;
    std::map<int, std::string> m_palette;
    std::map<int, std::string> m_colours; ///< foreground, background, cursor ...: by their OSC
    bool m_link = false, m_progress = false;
};

} // namespace gpuq
