// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>
#include <optional>

namespace gpuq::cli {

/// INT, TERM, HUP and QUIT of this process as something to wait for. Blocks them while it lives;
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

private:
    sigset_t m_before = {};
    int m_descriptor = -1;
};

} // namespace gpuq::cli
