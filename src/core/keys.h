// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// One event that a terminal reports.
struct KeyEvent {
    enum class Kind {
        press,  ///< a key was pressed, or repeats
        pasted, ///< a piece of pasted text, where the program asked for brackets around it
        report, ///< no key press: a release, a modifier alone, mouse, focus, an answer to a query
    } kind = Kind::report;
    /// What the key types without Ctrl and Alt: `~`, `d`. Enter, Tab, Escape and Backspace are 13,
    /// 9, 27 and 127; 0: the key types nothing (an arrow). A byte of 0x80 and above stands for
    /// itself.
    char32_t character = 0;
    bool control = false;
    bool other_modifier = false; ///< Alt, Super, Hyper or Meta
    std::string text;            ///< what a line editor inserts, as UTF-8; empty with a modifier
    std::string raw;             ///< the bytes of the event

    /// Of an unmodified key; of Shift only where that makes the character.
    bool is(char key) const;
    bool is_enter() const { return kind == Kind::press && character == U'\r'; }
    bool is_interrupt() const; ///< Ctrl-C
};

/// Decodes what a terminal sends: legacy bytes, xterm's modifyOtherKeys and formatOtherKeys, the
/// kitty keyboard protocol with any flags, win32-input-mode. Bytes may come in any pieces. A
/// control byte is a key even inside a sequence that was never ended, so that Ctrl-C always counts.
class KeyReader {
public:
    /// Takes the first complete event off `bytes`; nothing when the rest is incomplete, which is
    /// then kept for the next call.
    std::optional<KeyEvent> take(std::string_view& bytes);
    /// The bytes of an event that is not complete yet: Escape alone, too.
    std::string_view pending() const { return m_raw; }

private:
    enum class State { ground, escape, sequence, keypad, mouse, string, string_escape, paste };
    /// True when `c` ends the event.
    bool add(char c);
    KeyEvent finish();
    KeyEvent given_up();
    KeyEvent decode() const;

    State m_state = State::ground;
    bool m_pasting = false;
    std::string m_raw;
};

} // namespace gpuq
