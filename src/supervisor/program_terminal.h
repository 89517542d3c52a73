// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "supervisor/base/loop.h"
#include "supervisor/base/program.h"
#include "supervisor/stream/backlog.h"
#include "term/terminal_modes.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The state of the program's terminal that a client needs when it attaches: its modes and size.
class ProgramTerminal {
public:
    /// `loop` must outlive the object.
    explicit ProgramTerminal(Loop& loop)
        : m_loop(loop)
    {
    }

    /// Output of the program.
    void feed(std::string_view text) { m_modes.feed(text); }
    bool on_other_screen() const { return m_modes.on_other_screen(); }
    /// What a terminal of this size must print to look like the program's: `backlog` has its
    /// output. A program on the alternate screen redraws it. For others the last lines are shown,
    /// and a line editor redraws its own.
    std::string screen(const Backlog& backlog, TerminalSize size) const;
    /// `anew`: the program should redraw everything. It does so only after a change, so it gets
    /// another size for a moment.
    void resize(const Program& program, TerminalSize size, bool anew);
    /// Call in each round.
    void update(const Program& program);

private:
    Loop& m_loop;
    TerminalModes m_modes;
    TerminalSize m_size;
    std::optional<Loop::Steady> m_restore_size_at;
};

} // namespace gpuq::supervisor
