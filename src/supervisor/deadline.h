// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::supervisor {

/// When a link ends, and the warnings 15, 5 and 1 minutes before. A limit that is not longer
/// than a warning's lead has no such warning.
class Deadline {
public:
    Deadline(Time started, std::chrono::minutes walltime, std::optional<Time> as_slurm_says);

    Time at() const { return m_at; }
    /// Slurm's answer, which wins over what was computed.
    void correct(Time at) { m_at = at; }

    /// When the next warning is due; nothing when all are given.
    std::optional<Time> next_warning() const;
    /// The warning that is due at `now`, once: `15 minutes left`. One whose time passed unseen, as
    /// when the limit was shortened, gives way to the later one.
    std::optional<std::string> warning(Time now);

private:
    Time m_at;
    std::chrono::minutes m_walltime;
    std::chrono::minutes m_last = std::chrono::minutes::max();
};

/// KillWait in the text of a slurm.conf; Slurm's default when it is not there.
std::chrono::seconds kill_wait_in(std::string_view slurm_conf);

} // namespace gpuq::supervisor
