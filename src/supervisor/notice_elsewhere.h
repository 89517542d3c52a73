// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "supervisor/base/helper.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Sends the notice on the other nodes of a multi-node job: a helper has Slurm start one step on
/// all of them, and each of its processes (`gpuq-supervisor notice`) notifies the processes on its
/// node. This takes three requests to slurmctld, regardless of the number of nodes.
class NoticeElsewhere {
public:
    using Clock = std::chrono::steady_clock;

    explicit NoticeElsewhere(const Options& options)
        : m_options(options)
    {
    }
    NoticeElsewhere(const NoticeElsewhere&) = delete;
    NoticeElsewhere& operator=(const NoticeElsewhere&) = delete;
    ~NoticeElsewhere();

    /// Starts the notice in a job of `nodes` nodes. Does nothing if there are no other nodes or no
    /// signal is to be sent.
    void begin(int nodes, Notice notice, Clock::time_point now);
    bool open() const { return m_helper.has_value(); }
    /// Readable when it has finished; -1 if it is not running.
    int fd() const { return m_helper ? m_helper->answer() : -1; }
    std::optional<Clock::time_point> gives_up_at() const;
    /// Ends it. Returns why not all other nodes were reached; nullopt if they were.
    std::optional<std::string> finish();
    /// The helper process, which has the step's srun below it and does not belong to the program.
    std::optional<pid_t> pid() const;

private:
    const Options& m_options;
    std::optional<Helper> m_helper;
    Clock::time_point m_began_at;
};

/// The helper's work. Returns why not all nodes were reached; empty: they were.
std::string notify_elsewhere(Services& services, const Options& options, int nodes, Notice notice);

/// The step's process on one of these nodes: notifies the run's processes on this node and reports
/// their number on stdout. Processes of another node whose slurmd shares this machine are left to
/// that node's process.
int notify_this_node(const Options& options, Notice notice);

} // namespace gpuq::supervisor
