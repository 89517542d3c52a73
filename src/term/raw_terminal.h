// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "term/terminal_modes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::cli {

/// The user's terminal in raw mode, for a program whose own terminal is elsewhere: every key and
/// every byte passes unchanged. Restored, with everything switched off that the program had
/// switched on, by leave(), by the destructor, and when this process exits or dies of a signal that
/// can be caught. One object at a time.
class RawTerminal {
public:
    /// Does not take ownership of `keys` and `screen`.
    RawTerminal(int keys, int screen)
        : m_keys(keys)
        , m_screen(screen)
    {
    }
    ~RawTerminal() { leave(); }
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;

    /// Does nothing if `keys` is not a terminal, or if this process is in its background; to be
    /// called again when that has changed.
    void enter();
    /// Also switches off everything that the program had switched on.
    void leave();
    bool is_raw() const { return m_raw; }
    /// To be called after SIGCONT: a shell may have changed the modes meanwhile.
    void continued();

    /// From now on gpuq itself reads the keys: one by one, without echo, as plain bytes. Also works
    /// if the terminal is not raw; Ctrl-C and Ctrl-Z are signals then.
    void begin_own_keys();
    void end_own_keys();

    /// To be called with all output to the screen, which may change its modes.
    void watch(std::string_view bytes);
    /// Whether keys arrive as sequences (term/keys.h).
    bool encodes_keys() const { return m_modes.encodes_keys(); }
    /// Whether a full-screen program has drawn the screen.
    bool on_other_screen() const { return m_modes.on_other_screen(); }
    /// The terminal's size; nothing if there is none.
    std::optional<TerminalSize> size() const;

private:
    bool is_ours() const;
    bool save_modes() const;
    void write_to_screen(const std::string& bytes) const;
    std::string undo() const;

    int m_keys, m_screen;
    bool m_raw = false;
    bool m_own_keys = false;
    std::uint64_t m_undo_version = 0;
    TerminalModes m_modes;
};

} // namespace gpuq::cli
