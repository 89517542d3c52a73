// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>
#include <optional>
#include <utility>

namespace gpuq::cli {

/// INT, TERM, HUP and QUIT, and changes of the terminal, as a descriptor to poll. Blocks these
/// signals during its lifetime; those that were ignored at the start (nohup) stay ignored.
class Signals {
public:
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    /// Readable when a signal is pending.
    int descriptor() const { return m_descriptor; }
    /// The next pending signal, if any.
    std::optional<int> next();
    /// True once after the terminal has changed its size or the process was continued (SIGCONT).
    /// Updated by next().
    bool terminal_changed() { return std::exchange(m_terminal_changed, false); }

private:
    sigset_t m_before = {};
    int m_descriptor = -1;
    bool m_terminal_changed = false;
};

} // namespace gpuq::cli
