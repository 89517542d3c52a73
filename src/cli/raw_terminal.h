// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "core/terminal_modes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// The person's terminal, handed to a program that has a terminal elsewhere: every key and every
/// byte passes unchanged. Given back as it was, with what the program had switched on switched off,
/// by leave(), by the destructor, and when this process exits or dies of any signal that can be
/// caught. One at a time.
class RawTerminal {
public:
    /// `keys` and `screen` stay the caller's.
    RawTerminal(int keys, int screen)
        : m_keys(keys)
        , m_screen(screen)
    {
    }
    ~RawTerminal() { leave(); }
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;

    /// Does nothing where keys are no terminal, or one of which we are in the background; to be
    /// called again when that has changed.
    void enter();
    /// Also switches off what the program had switched on.
    void leave();
    bool is_raw() const { return m_raw; }
    /// We were stopped and go on: a shell may have changed the modes meanwhile.
    void continued();

    /// From now on gpuq itself reads keys: one by one, not echoed, as plain bytes. Also where the
    /// terminal is not raw; Ctrl-C and Ctrl-Z are signals there.
    void begin_own_keys();
    void end_own_keys();

    /// What passes to the screen.
    void watch(std::string_view bytes);
    /// Keys come as sequences (core/keys.h).
    bool encodes_keys() const { return m_modes.encodes_keys(); }
    /// A full-screen program has drawn it.
    bool on_other_screen() const { return m_modes.on_other_screen(); }
    /// Of the terminal; nothing when there is none.
    std::optional<TerminalSize> size() const;

private:
    bool is_ours() const;
    bool save_modes() const;
    void write_to_screen(const std::string& bytes) const;

    int m_keys, m_screen;
    bool m_raw = false;
    bool m_own_keys = false;
    std::uint64_t m_undo_version = 0;
    TerminalModes m_modes;
};

} // namespace gpuq::cli
