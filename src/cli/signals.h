// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>
#include <optional>
#include <utility>

namespace gpuq::cli {

/// INT, TERM, HUP and QUIT of this process, and what happens to its terminal, as something to wait
/// for. Blocks them while it lives;
/// a HUP that was ignored at the start (nohup) stays ignored.
class Signals {
public:
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    /// Readable when a signal waits.
    int descriptor() const { return m_descriptor; }
    /// The signal that came, if any.
    std::optional<int> next();
    /// True once after the terminal has changed its size, or we were stopped and go on; known when
    /// next() has been asked.
    bool terminal_changed() { return std::exchange(m_terminal_changed, false); }

private:
    sigset_t m_before = {};
    int m_descriptor = -1;
    bool m_terminal_changed = false;
};

} // namespace gpuq::cli
