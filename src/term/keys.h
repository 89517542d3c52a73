// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// One input event from a terminal.
struct KeyEvent {
    enum class Kind {
        press,  ///< key pressed or auto-repeated
        pasted, ///< a piece of pasted text, when bracketed paste is enabled
        report, ///< not a key press: a release, a modifier alone, mouse, focus, the reply to a
                ///< query
    } kind = Kind::report;
    /// The character that the key produces without Ctrl and Alt: `~`, `d`. Enter, Tab, Escape and
    /// Backspace are 13, 9, 27 and 127; 0 for keys that produce none (arrows). A byte of 0x80 or
    /// above is its own value.
    char32_t character = 0;
    bool control = false;
    bool other_modifier = false; ///< Alt, Super, Hyper or Meta
    std::string text;            ///< text that a line editor inserts, in UTF-8; empty with a
                                 ///< modifier
    std::string raw;             ///< the bytes of the event

    /// True for `key` pressed without modifiers; Shift is accepted if it produces the character.
    bool is(char key) const;
    bool is_enter() const { return kind == Kind::press && character == U'\r'; }
    bool is_interrupt() const; ///< Ctrl-C
};

/// Decodes terminal input: legacy bytes, xterm's modifyOtherKeys and formatOtherKeys, the kitty
/// keyboard protocol with any flags, win32-input-mode. Input may be split at any byte. A control
/// byte counts as a key even inside an unterminated sequence, so Ctrl-C always works.
class KeyReader {
public:
    /// Removes the first complete event from `bytes` and returns it. Otherwise returns nullopt and
    /// keeps the incomplete rest for the next call.
    std::optional<KeyEvent> take(std::string_view& bytes);
    /// The bytes of an incomplete event, including a lone Escape.
    std::string_view pending() const { return m_raw; }

private:
    enum class State { ground, escape, sequence, keypad, mouse, string, string_escape, paste };
    /// True when `c` completes the event.
    bool add(char c);
    KeyEvent finish();
    KeyEvent given_up();
    KeyEvent decode() const;

    State m_state = State::ground;
    bool m_pasting = false;
    std::string m_raw;
};

} // namespace gpuq
