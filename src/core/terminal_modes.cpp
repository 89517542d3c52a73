// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/terminal_modes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace gpuq {
namespace {

constexpr char k_escape = '\x1b';
constexpr char k_bell = '\x07';
constexpr char k_cancel = '\x18';
constexpr std::size_t k_longest_sequence = 64;
constexpr int k_cursor_shown = 25;

/// DECSET modes that matter to whoever sits at the terminal: keys, cursor, screen, mouse, focus,
/// pasting.
constexpr std::array k_known = {1,    7,    k_cursor_shown, 47,   66,   1000, 1002, 1003,
                                1004, 1005, 1006,           1015, 1047, 1049, 2004};
constexpr std::array k_screens = {47, 1047, 1049};

bool is_usual(int mode)
{
    return mode == 7 || mode == k_cursor_shown;
}

std::vector<int> numbers_in(std::string_view text)
{
    std::vector<int> numbers;
    while (true) {
        int number = 0;
        const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
        numbers.push_back(number);
        const std::size_t next = text.find(';', static_cast<std::size_t>(end - text.data()));
        if (next == std::string_view::npos) {
            return numbers;
        }
        text.remove_prefix(next + 1);
    }
}

std::string set_mode(int mode, bool on)
{
    return "\x1b[?" + std::to_string(mode) + (on ? "h" : "l");
}

} // namespace

void TerminalModes::feed(std::string_view bytes)
{
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (m_state == State::text) {
            at = std::min(bytes.find(k_escape, at), bytes.size());
            m_state = at < bytes.size() ? State::escape : State::text;
            continue;
        }
        const char c = bytes[at];
        switch (m_state) {
        case State::text:
            break;
        case State::escape:
            m_sequence.clear();
            m_state = c == '['                                                   ? State::sequence
                      : c == k_escape                                            ? State::escape
                      : c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_' ? State::string
                                                                                 : State::text;
            if (c == '=' || c == '>') {
                m_keypad = c == '=';
            } else if (c == 'c') {
                forget();
            }
            break;
        case State::sequence:
            if (c >= '@' && c <= '~') {
                end_sequence(c);
                m_state = State::text;
            } else if (c == k_escape) {
                m_state = State::escape;
            } else if (c == k_cancel || m_sequence.size() >= k_longest_sequence) {
                m_state = State::text;
            } else {
                m_sequence += c;
            }
            break;
        case State::string: // a title and the like: up to BEL or ESC \.
            m_state = c == k_bell || c == k_cancel ? State::text
                      : c == k_escape              ? State::string_escape
                                                   : State::string;
            break;
        case State::string_escape:
            m_state = State::text;
            if (c != '\\') {
                --at; // not the string's end: an escape of its own
                m_state = State::escape;
            }
            break;
        }
    }
}

void TerminalModes::end_sequence(char final)
{
    if (m_sequence.starts_with('?') && (final == 'h' || final == 'l')) {
        set_private(final == 'h');
    } else if (m_sequence.starts_with('>') && final == 'm') {
        const auto numbers = numbers_in(std::string_view(m_sequence).substr(1));
        m_other_keys = numbers[0] != 4 ? m_other_keys : numbers.size() > 1 ? numbers[1] : 0;
    } else if (m_sequence == "!" && final == 'p') { // DECSTR
        m_modes.erase(1);
        m_modes.erase(k_cursor_shown);
        m_keypad = false;
    }
}

void TerminalModes::set_private(bool on)
{
    for (const int mode : numbers_in(std::string_view(m_sequence).substr(1))) {
        if (std::find(k_known.begin(), k_known.end(), mode) == k_known.end()) {
            continue;
        }
        if (on == is_usual(mode)) {
            m_modes.erase(mode);
        } else {
            m_modes[mode] = on;
        }
    }
}

void TerminalModes::forget()
{
    m_modes.clear();
    m_keypad = false;
    m_other_keys = 0;
}

bool TerminalModes::on_other_screen() const
{
    return std::any_of(k_screens.begin(), k_screens.end(),
                       [this](int mode) { return m_modes.contains(mode); });
}

std::string TerminalModes::to_set() const
{
    std::string bytes;
    for (const auto& [mode, on] : m_modes) {
        bytes += set_mode(mode, on);
    }
    bytes += m_keypad ? "\x1b=" : "";
    bytes += m_other_keys != 0 ? "\x1b[>4;" + std::to_string(m_other_keys) + "m" : "";
    return bytes;
}

std::string TerminalModes::to_undo() const
{
    std::string bytes;
    for (const auto& [mode, on] : m_modes) {
        bytes += set_mode(mode, !on);
    }
    bytes += m_keypad ? "\x1b>" : "";
    bytes += m_other_keys != 0 ? "\x1b[>4m" : "";
    return bytes;
}

} // namespace gpuq
