// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpuq {

/// What a program has switched on in its terminal (other screen, mouse, pasting in brackets,
/// keypad, hidden cursor ...), out of the bytes that it wrote: so that a terminal which comes later
/// can be switched the same way, and one that leaves early can be switched back.
class TerminalModes {
public:
    void feed(std::string_view bytes);

    /// Brings a terminal in its usual state to the present modes.
    std::string to_set() const;
    /// Brings a terminal in the present modes to its usual state; empty when it is there.
    std::string to_undo() const;
    /// Full-screen programs use it, and draw it anew by themselves.
    bool on_other_screen() const;

private:
    void end_sequence(char final);
    void set_private(bool on);
    void forget();

    enum class State { text, escape, sequence, string, string_escape } m_state = State::text;
    std::string m_sequence;      ///< of an ESC [, without them
    std::map<int, bool> m_modes; ///< private ones (DECSET) that differ from usual
    bool m_keypad = false;
    int m_other_keys = 0; ///< xterm's modifyOtherKeys
};

} // namespace gpuq
