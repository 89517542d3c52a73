// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "supervisor/helper.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// The notice on the other nodes of a job of several: a helper has Slurm start one step on all of
/// them, whose processes (`gpuq-supervisor notice`) look at their node as the supervisor does at
/// its own. Three requests to slurmctld, however many nodes there are.
class NoticeElsewhere {
public:
    using Clock = std::chrono::steady_clock;

    NoticeElsewhere(Doors& doors, const Options& options)
        : m_doors(doors)
        , m_options(options)
    {
    }
    NoticeElsewhere(const NoticeElsewhere&) = delete;
    NoticeElsewhere& operator=(const NoticeElsewhere&) = delete;
    ~NoticeElsewhere();

    /// In a job of `nodes`. Without other nodes, or with nothing to tell, nothing happens.
    void begin(int nodes, Notice notice, Clock::time_point now);
    bool open() const { return m_helper.has_value(); }
    /// Readable when it is over; -1 when nothing is under way.
    int fd() const { return m_helper ? m_helper->answer() : -1; }
    std::optional<Clock::time_point> gives_up_at() const;
    /// Ends it. Why not all of the other nodes were reached; nothing when they were.
    std::optional<std::string> finish();
    /// The helper's process, with the step's client below it: none of the program's.
    std::optional<pid_t> pid() const;

private:
    Doors& m_doors;
    const Options& m_options;
    std::optional<Helper> m_helper;
    Clock::time_point m_began_at;
};

/// The step's process on one of these nodes: tells the run's processes there, and says so on its
/// stdout. Those of another node whose slurmd is on this machine too are left to that one.
int tell_this_node(const Options& options, Notice notice);

} // namespace gpuq::supervisor
