// SPDX-License-Identifier: GPL-2.0-or-later
#include "term/terminal_modes.h"

#include <algorithm>
#include <array>
#include <numeric>

/// Generates the sequences that set and undo modes.
namespace gpuq {
namespace {

constexpr int k_synchronised = 2026; ///< suspends drawing while on
constexpr int k_keyboard_locked = 2, k_new_line = 20;
/// DECSET modes that affect keys, and reports sent as input.
constexpr std::array k_of_keys = {1,    9,    66,   67,   1000, 1001, 1002, 1003,
                                  1004, 1036, 1039, 2004, 2031, 2048, 9001};

std::string sequence(const std::string& body, std::string_view final)
{
    return "\x1b[" + body + std::string(final);
}

std::string set_mode(int mode, bool on)
{
    return sequence("?" + std::to_string(mode), on ? "h" : "l");
}

std::string set_ansi_mode(int mode, bool on)
{
    return sequence(std::to_string(mode), on ? "h" : "l");
}

std::string command(const std::string& body)
{
    return "\x1b]" + body + "\x07";
}

/// Setting margins moves the cursor: saves and restores its position.
std::string around(const std::string& bytes)
{
    return bytes.empty() ? ""
                         : "\x1b"
                           "7" +
                               bytes +
                               "\x1b"
                               "8";
}

bool is_of_keys(int mode)
{
    return std::find(k_of_keys.begin(), k_of_keys.end(), mode) != k_of_keys.end();
}

std::string set_kitty_flags(unsigned flags)
{
    return sequence("=" + std::to_string(flags), "u");
}

/// Builds `> 4 ; 2 m` from an option `4m` and its value.
std::string set_key_option(const std::string& option, const std::string& value)
{
    return sequence(">" + option.substr(0, option.size() - 1) + (value.empty() ? "" : ";" + value),
                    option.substr(option.size() - 1));
}

} // namespace

std::string TerminalModes::KittyKeys::to_set() const
{
    std::string bytes;
    for (std::size_t i = 0; i <= stack.size(); ++i) {
        const unsigned each = i < stack.size() ? stack[i] : flags;
        if (i > 0) {
            bytes += sequence(">" + std::to_string(each), "u");
        } else if (each != 0) {
            bytes += set_kitty_flags(each);
        }
    }
    return bytes;
}

std::string TerminalModes::KittyKeys::to_undo() const
{
    const std::string count = stack.size() > 1 ? std::to_string(stack.size()) : "";
    const unsigned first = stack.empty() ? flags : stack[0];
    return (stack.empty() ? "" : sequence("<" + count, "u")) +
           (first != 0 ? set_kitty_flags(0) : "");
}

std::string TerminalModes::to_set() const
{
    std::string bytes = m_kitty[0].to_set();
    for (const auto& [mode, on] : m_modes) {
        bytes += mode == k_synchronised ? "" : set_mode(mode, on);
    }
    bytes += on_other_screen() ? m_kitty[1].to_set() : "";
    for (const auto& [mode, on] : m_ansi) {
        bytes += set_ansi_mode(mode, on);
    }
    bytes += m_keypad ? "\x1b=" : "";
    for (const auto& [option, value] : m_key_options) {
        bytes += set_key_option(option, value);
    }
    bytes += around((m_rows.empty() ? "" : sequence(m_rows, "r")) +
                    (m_columns.empty() ? "" : sequence(m_columns, "s")));
    const Charsets usual;
    for (std::size_t i = 0; i < usual.sets.size(); ++i) {
        bytes += m_charsets.sets[i] == usual.sets[i] ? "" : "\x1b" + m_charsets.sets[i];
    }
    bytes += m_charsets.shift == usual.shift ? "" : m_charsets.shift;
    bytes += m_not_utf8 ? "\x1b%@" : "";
    bytes += m_eight_bit ? "\x1b G" : "";
    bytes += m_cursor_shape.empty() ? "" : sequence(m_cursor_shape, "q");
    for (const std::string& title : m_titles) {
        bytes += sequence("22;" + title, "t");
    }
    for (const auto& [number, colour] : m_palette) {
        bytes += command("4;" + std::to_string(number) + ";" + colour);
    }
    for (const auto& [number, colour] : m_colours) {
        bytes += command(std::to_string(number) + ";" + colour);
    }
    std::string attributes;
    for (const auto& [group, parameters] : m_attributes) {
        attributes += (attributes.empty() ? "" : ";") + parameters;
    }
    return bytes + (attributes.empty() ? "" : sequence(attributes, "m"));
}

std::string TerminalModes::to_undo() const
{
    std::string bytes = m_printing ? sequence("4", "i") : "";
    bytes += m_modes.contains(k_synchronised) ? set_mode(k_synchronised, false) : "";
    bytes += on_other_screen() ? m_kitty[1].to_undo() : "";
    for (const auto& [mode, on] : m_modes) {
        bytes += mode == k_synchronised ? "" : set_mode(mode, !on);
    }
    for (const auto& [mode, on] : m_ansi) {
        bytes += set_ansi_mode(mode, !on);
    }
    bytes += m_keypad ? "\x1b>" : "";
    for (const auto& [option, value] : m_key_options) {
        bytes += set_key_option(option, "");
    }
    bytes += m_kitty[0].to_undo();
    bytes += around(m_rows.empty() ? "" : sequence("", "r"));
    const Charsets usual;
    for (std::size_t i = 0; i < usual.sets.size(); ++i) {
        bytes += m_charsets.sets[i] == usual.sets[i] ? "" : "\x1b" + usual.sets[i];
    }
    bytes += m_charsets.shift == usual.shift ? "" : usual.shift;
    bytes += m_not_utf8 ? "\x1b%G" : "";
    bytes += m_eight_bit ? "\x1b F" : "";
    bytes += m_cursor_shape.empty() ? "" : sequence("0 ", "q");
    for (auto title = m_titles.rbegin(); title != m_titles.rend(); ++title) {
        bytes += sequence("23;" + *title, "t");
    }
    std::string numbers;
    for (const auto& [number, colour] : m_palette) {
        numbers += ";" + std::to_string(number);
    }
    bytes += numbers.empty() ? "" : command("104" + numbers);
    for (const auto& [number, colour] : m_colours) {
        bytes += command(std::to_string(100 + number));
    }
    bytes += m_link ? command("8;;") : "";
    bytes += m_progress ? command("9;4;0") : "";
    return bytes + (m_attributes.empty() ? "" : sequence("", "m"));
}

std::string TerminalModes::to_plain_keys() const
{
    std::string bytes;
    for (const auto& [mode, on] : m_modes) {
        bytes += is_of_keys(mode) ? set_mode(mode, !on) : "";
    }
    for (const int mode : {k_keyboard_locked, k_new_line}) {
        bytes += m_ansi.contains(mode) ? set_ansi_mode(mode, false) : "";
    }
    bytes += m_keypad ? "\x1b>" : "";
    for (const auto& [option, value] : m_key_options) {
        bytes += set_key_option(option, "");
    }
    return bytes + (m_kitty[on_other_screen() ? 1 : 0].flags != 0 ? set_kitty_flags(0) : "");
}

std::string TerminalModes::to_program_keys() const
{
    std::string bytes;
    for (const auto& [mode, on] : m_modes) {
        bytes += is_of_keys(mode) ? set_mode(mode, on) : "";
    }
    for (const int mode : {k_keyboard_locked, k_new_line}) {
        bytes += m_ansi.contains(mode) ? set_ansi_mode(mode, true) : "";
    }
    bytes += m_keypad ? "\x1b=" : "";
    for (const auto& [option, value] : m_key_options) {
        bytes += set_key_option(option, value);
    }
    const unsigned flags = m_kitty[on_other_screen() ? 1 : 0].flags;
    return bytes + (flags != 0 ? set_kitty_flags(flags) : "");
}

} // namespace gpuq
