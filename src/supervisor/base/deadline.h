// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// The end of a link, and the warnings 15, 5 and 1 minutes before it. A warning is skipped if the
/// time limit is not longer than its lead time.
class Deadline {
public:
    Deadline(Time started, std::chrono::minutes walltime, std::optional<Time> end_by_slurm);

    Time at() const { return m_at; }
    /// Sets Slurm's answer, which takes precedence over the computed time. If the limit was raised,
    /// the warnings are given again.
    void correct(Time at);

    /// When the next warning is due; nullopt if none is left.
    std::optional<Time> next_warning() const;
    /// Returns the warning due at `now`, once: `15 minutes left`. If several are due, for example
    /// because the time limit was shortened, only the latest is returned.
    std::optional<std::string> warning(Time now);

private:
    Time m_at;
    std::chrono::minutes m_walltime;
    std::chrono::minutes m_last = std::chrono::minutes::max();
};

/// Reads KillWait from the text of a slurm.conf; Slurm's default if it is not set.
std::chrono::seconds kill_wait_in(std::string_view slurm_conf);

} // namespace gpuq::supervisor
