// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/chain_work.h"
#include "supervisor/helper.h"
#include "supervisor/poll_set.h"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace gpuq::supervisor {

/// What the loop around a program does so that its run goes on in a next link: has it submitted
/// early, watches the checkpoints, tells when the program is to be told and when it may be
/// stopped, and at the end settles what follows. Never blocks: the work is done in helper processes
/// (supervisor/chain_work.h).
class ChainKeeper {
public:
    using Steady = std::chrono::steady_clock::time_point;
    using Journal = std::function<void(Event)>;

    /// The references outlive the object.
    ChainKeeper(Doors& doors, const Options& options, const Run& run, Turn turn, Journal journal);
    ChainKeeper(const ChainKeeper&) = delete;
    ChainKeeper& operator=(const ChainKeeper&) = delete;
    /// Whatever is under way is given up.
    ~ChainKeeper();

    const Turn& turn() const { return m_turn; }
    /// The program runs.
    void begin(Steady now);

    void add_to(PollSet& polls);
    void handle(const PollSet& polls, Steady now);
    /// When something is to be done next; nothing while only an answer is awaited.
    std::optional<Steady> next_wake() const;
    /// The helpers, which are no processes of the program's.
    std::vector<pid_t> pids() const;

    /// The program is told now, as a job of higher priority wants the place or for another reason.
    void noticed(Time at, bool preempted, Steady now);
    bool was_noticed() const { return m_self.noticed_at.has_value(); }
    bool has_saved() const { return !m_saved.empty(); }
    /// It has saved since it was told, this long ago: nothing is lost when it is stopped.
    std::optional<Steady> saved_since() const { return m_saved_since; }
    /// The last checkpoint was made so late that another one like it would not fit before `end`.
    /// Only for programs that nobody can tell (no listener, no GPUQ_STOP_FILE).
    bool is_last_that_fits(Time now, Time end) const;

    /// The program has ended so. Once.
    void settle(const Ending& ending, bool by_itself, Steady now);
    /// What follows; nothing while that is being found out.
    const std::optional<Settled>& settled() const { return m_settled; }
    /// Nobody can wait longer.
    void give_up_settling();

    /// The end of the run has been recorded: its next link is not needed.
    void withdraw(Steady now);
    bool is_withdrawing() const { return m_withdrawal.helper.has_value(); }

private:
    struct Running {
        std::optional<Helper> helper;
        std::size_t polled = 0;
        Steady until{};
    };

    void start(Running& running, Steady now, std::chrono::seconds patience,
               const std::function<std::string()>& work);
    std::optional<std::string> answer(Running& running, const PollSet& polls, Steady now);
    void submit(Steady now);
    void submitted(const std::string& answer, Steady now);
    void look(Steady now);
    void looked(Sights sights, Steady now);
    void drop(Running& running);

    Doors& m_doors;
    const Options& m_options;
    const Run& m_run;
    Turn m_turn;
    Journal m_journal;
    LinkPast m_self; ///< this link as its journal will have it
    Sights m_sights;
    std::vector<Time> m_saved; ///< when checkpoints were completed, oldest first
    std::optional<Steady> m_saved_since;
    std::optional<Settled> m_settled;
    bool m_began = false, m_ended = false;
    std::optional<Steady> m_submit_at, m_look_at;
    std::chrono::milliseconds m_period{0};
    bool m_told_failure = false;
    Running m_submission, m_looking, m_settling, m_withdrawal;
};

} // namespace gpuq::supervisor
