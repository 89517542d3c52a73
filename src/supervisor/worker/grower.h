// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/event_loop.h"
#include "ports/clock.h"
#include "ports/store.h"
#include "sweeps/growth.h"
#include "sweeps/taker.h"

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// Adds workers to a sweep that grows, each by a child process, because Slurm may not respond. That
/// costs nothing until a worker is missing: the rest is known from the disk.
class Grower {
public:
    /// All must outlive the object. `command`: adds a worker, with the two arguments of
    /// parse_vacancy; empty: none is added.
    Grower(Store& store, const sweeps::Sweep& sweep, sweeps::TryTaker& taker,
           const std::vector<std::string>& command);
    Grower(const Grower&) = delete;
    Grower& operator=(const Grower&) = delete;
    /// Ends the child.
    ~Grower() { end(); }

    /// Call in each round while tries run, and while is_adding().
    void update(EventLoop::Moment now, Time wall_clock);
    /// The next update() checks, whenever the last one was. Call it before this worker ends.
    void check_at_once() { m_check_at = {}; }
    /// A child is adding a worker.
    bool is_adding() const { return m_pid > 0; }
    /// Ends the child. A worker that it has registered may have been submitted.
    void end();

private:
    void reap(EventLoop::Moment now);
    void start(const sweeps::Vacancy& vacancy);

    const sweeps::Sweep& m_sweep;
    sweeps::TryTaker& m_taker;
    const std::vector<std::string>& m_command;
    sweeps::Growth m_growth;
    pid_t m_pid = -1; ///< of the child; -1: none
    EventLoop::Moment m_check_at;
    bool m_has_failed = false; ///< reported once
};

/// A vacancy in two arguments. `usage`.
Result<sweeps::Vacancy> parse_vacancy(const std::string& behind, const std::string& number);

} // namespace gpuq::supervisor
