// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/event_loop.h"
#include "ports/clock.h"
#include "ports/store.h"
#include "sweeps/growth.h"
#include "sweeps/taker.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpuq::supervisor {

/// Exit status of both commands of a Grower: other jobs wait for the GPUs.
constexpr int k_status_give_way = 4;
/// Third argument of the command that adds a worker, if it replaces the one that executes it:
/// whether other jobs wait does not matter then.
constexpr std::string_view k_replaces = "replaces";

/// The child processes of a worker that query Slurm.
struct GrowthCommands {
    std::vector<std::string> add_worker; ///< with the arguments of parse_vacancy and k_replaces
    std::vector<std::string> check_queue;
    std::chrono::milliseconds first_check = std::chrono::minutes(1); ///< after the first try
};

/// Adds workers to a sweep that grows, and has its newest one end while other jobs wait for the
/// GPUs. Child processes query Slurm, because it may not respond. That costs nothing until a worker
/// is missing, and for the newest one of several a query every two minutes: the rest is known from
/// the disk.
class Grower {
public:
    /// All must outlive the object. Without commands, it does nothing.
    Grower(Store& store, const sweeps::Sweep& sweep, sweeps::TryTaker& taker, const RunKey& self,
           const std::optional<GrowthCommands>& commands);
    Grower(const Grower&) = delete;
    Grower& operator=(const Grower&) = delete;
    /// Ends the child.
    ~Grower() { end(); }

    /// Call in each round while tries run, and while is_busy().
    void update(EventLoop::Moment now, Time wall_clock);
    /// This worker ends at its time limit and leaves tries: the next update() adds another one,
    /// also while other jobs wait.
    void replace_this_worker();
    /// A child runs.
    bool is_busy() const { return m_pid > 0; }
    /// This worker takes no more tries: the others continue.
    bool gives_way() const { return m_gives_way; }
    /// Call while this worker runs no tries. Whether it gives way, tries are left, and it is not
    /// certain yet that another one continues. If none does, this one no longer gives way.
    bool must_stay(Time wall_clock);
    /// Whether another one certainly runs that gives way after this one.
    bool leaves_another(Time wall_clock);
    /// Ends the child. A worker that it has registered may have been submitted.
    void end();

private:
    void reap(EventLoop::Moment now);
    void start(std::vector<std::string> argv, EventLoop::Moment now);

    const sweeps::Sweep& m_sweep;
    sweeps::TryTaker& m_taker;
    const RunKey& m_self;
    const std::optional<GrowthCommands>& m_commands;
    sweeps::Growth m_growth;
    pid_t m_pid = -1; ///< of the child; -1: none
    bool m_is_adding = false;
    EventLoop::Moment m_started_at;
    EventLoop::Moment m_check_at;
    EventLoop::Moment m_add_at;
    std::optional<EventLoop::Moment> m_query_at; ///< for the queue; unset: a while after the start
    bool m_has_failed = false;                   ///< reported once
    bool m_gives_way = false;
    bool m_replaces = false; ///< the next worker, this one
};

/// A vacancy in two arguments. `usage`.
Result<sweeps::Vacancy> parse_vacancy(const std::string& behind, const std::string& number);

} // namespace gpuq::supervisor
