// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/helper_call.h"
#include "supervisor/chain/chain_work.h"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace gpuq::supervisor {

/// The loop's side of a chain: submits the next link early, watches the checkpoints, reports
/// whether the program may be stopped, and at the end settles how the run continues. Never blocks:
/// the work is done in helper processes (supervisor/chain/chain_work.h).
class ChainKeeper {
public:
    using Steady = std::chrono::steady_clock::time_point;
    using Journal = std::function<void(Event)>;

    /// The references must outlive the object.
    ChainKeeper(Loop& loop, Clock& clock, const Options& options, const Run& run,
                LinkStart link_start, Journal journal);

    const LinkStart& link_start() const { return m_link_start; }
    /// The link ends at another time than at its start.
    void set_end(Time at);
    /// Call when the program runs.
    void begin();
    /// Call in each round.
    void update();
    /// The helper processes, which do not belong to the program.
    std::vector<pid_t> pids() const;

    /// The program is being notified now, because of preemption or for another reason.
    void noticed(Time at, bool preempted);
    bool was_noticed() const { return m_self.noticed_at.has_value(); }
    bool has_saved() const { return !m_saved.empty(); }
    /// When a checkpoint was first seen that was written after the notice: from then on stopping
    /// the program loses nothing.
    std::optional<Steady> saved_since() const { return m_saved_since; }
    /// True if the last checkpoint was made so late that another one after the same interval would
    /// not fit before `end`. Only for programs that cannot be notified (no listener, no
    /// GPUQ_STOP_FILE).
    bool is_last_that_fits(Time now, Time end) const;

    /// The program has ended with `ending`. Call once.
    void conclude(const Ending& ending, bool by_itself);
    /// The result of conclude(); nullopt until it is available.
    const std::optional<LinkOutcome>& outcome() const { return m_outcome; }
    /// Stops waiting for that answer and decides with the information at hand.
    void give_up_settling();

    /// The end of the run has been recorded: cancels the job of the next link.
    void withdraw();
    bool is_withdrawing() const { return m_withdrawal.in_progress(); }

private:
    bool is_due(std::optional<Steady>& at, const HelperCall& call);
    void submit();
    /// Nullopt: the helper gave no answer.
    void submitted(const std::optional<NextSubmission>& next);
    void check_checkpoints();
    void on_checkpoints(CheckpointSet candidates);

    Loop& m_loop;
    Clock& m_clock;
    const Run& m_run;
    LinkStart m_link_start;
    Journal m_journal;
    LinkPast m_self; ///< this link, as its journal will describe it
    CheckpointSet m_checkpoints;
    std::vector<Time> m_saved; ///< completion times of checkpoints, oldest first
    std::optional<Steady> m_saved_since;
    std::optional<LinkOutcome> m_outcome;
    bool m_began = false, m_ended = false;
    std::optional<Steady> m_submit_at, m_check_at;
    std::chrono::milliseconds m_period{0};
    bool m_reported_failure = false;
    HelperCall m_submission, m_search, m_settling, m_withdrawal;
};

} // namespace gpuq::supervisor
