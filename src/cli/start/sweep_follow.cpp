// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/sweep_follow.h"

#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/base/table_output.h"
#include "cli/queries/code_snapshot.h"
#include "cli/start/sweep_start.h"
#include "core/layout.h"
#include "core/quote.h"
#include "ports/clock.h"
#include "sweeps/arguments.h"
#include "sweeps/changes.h"

#include <fmt/format.h>

#include <csignal>
#include <poll.h>

// Reads the files of the sweep, as ls and show do, and asks Slurm only about workers whose
// heartbeats are old, at most every k_query_period.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using sweeps::Sweep;
using sweeps::Try;
using sweeps::TryEnd;

constexpr auto k_round = 500ms;
constexpr auto k_query_period = 20s;
constexpr auto k_second_interrupt = 2s;
constexpr std::size_t k_shown_at_end = 10;
constexpr int k_some_failed = 1;
constexpr double k_minute_in_hours = 1.0 / 60;

/// A line about a try that has ended.
std::string end_text(const Sweep& sweep, std::size_t number, const Try& entry)
{
    const std::string end = entry.end->end != TryEnd::finished ? sweeps::text_of(entry.end->end)
                            : entry.end->status == 0
                                ? "done"
                                : fmt::format("exit status {}", entry.end->status);
    const std::string value =
        entry.reached.best
            ? fmt::format(", best {} {:.5g}", name_of(sweep.metric), *entry.reached.best)
            : "";
    return fmt::format("try {} ({}): {}{}", number,
                       sweeps::values_text(sweep.parameters, entry.values), end, value);
}

/// Whether the files show that the sweep has ended, or is about to. Of one whose program will
/// propose tries they don't while its workers wait for GPUs: Slurm would be queried in each round.
bool may_have_ended(const Sweep& sweep, const sweeps::Board& board)
{
    const auto tally = sweeps::tally_of(board.tries());
    const bool is_open = sweep.propose && !board.is_closed();
    return board.is_stopped() || (tally.waiting + tally.running == 0 && !is_open);
}

/// The exit status, once there is nothing left to wait for.
std::optional<int> exit_of_sweep(const SweepStatus& status, bool is_stopped)
{
    using State = SweepStatus::State;
    switch (status.state) {
    case State::waiting:
    case State::running:
        return std::nullopt;
    case State::stalled:
        return static_cast<int>(ExitStatus::lost);
    case State::spent:
    case State::stopped:
        return static_cast<int>(ExitStatus::stopped);
    case State::ended:
        break;
    }
    if (is_stopped && status.tally.stopped > 0) {
        return static_cast<int>(ExitStatus::stopped);
    }
    const bool all_succeeded =
        status.tally.succeeded + status.tally.stopped_early == status.tries.size();
    return status.proposal_failure.empty() && all_succeeded ? 0 : k_some_failed;
}

/// Messages about a sweep whose exit status is `exit`.
std::vector<std::string> end_messages(const SweepStatus& status, int exit)
{
    const std::string& name = status.sweep.name;
    if (status.state == SweepStatus::State::stalled) {
        return {fmt::format("sweep {} has no workers left: {}; gpuq sweep retry {} starts new ones",
                            name, sweep_summary(status), shell_quoted(name))};
    }
    std::vector<std::string> messages{fmt::format("sweep {}: {}", name, sweep_summary(status))};
    if (std::string missing = missing_metric_text(status); !missing.empty()) {
        messages.push_back(std::move(missing));
    }
    if (status.state == SweepStatus::State::spent) {
        messages.push_back(
            fmt::format("it has used its {:.3g} GPU-hours",
                        k_minute_in_hours * static_cast<double>(status.sweep.gpu_time->count())));
    } else if (exit == k_some_failed && !status.proposal_failure.empty()) {
        messages.push_back(fmt::format("no more proposals: {}; gpuq sweep retry {} asks again",
                                       status.proposal_failure, shell_quoted(name)));
    }
    return messages;
}

RunNotice end_notice(const SweepStatus& status, int exit)
{
    const bool failed = exit == k_some_failed || exit == static_cast<int>(ExitStatus::lost);
    const std::string& name = status.sweep.name;
    return {failed ? RunNotice::Event::failure : RunNotice::Event::end, status.sweep.run.key.text(),
            name, fmt::format("sweep {}: {}", name, sweep_summary(status))};
}

/// Follows a sweep until it has ended.
class SweepFollower {
public:
    SweepFollower(Invocation& invocation, Store& store, Sweep sweep, SweepFollowing following,
                  const std::vector<Try>& before)
        : m_is_owner(following == SweepFollowing::owner)
        , m_invocation(invocation)
        , m_services(invocation.services)
        , m_store(store)
        , m_sweep(std::move(sweep))
        , m_board(store, m_sweep.run.key)
        , m_notices(invocation.services)
    {
        note_ends(before);
    }

    Result<int> run()
    {
        TRY(m_board.refresh());
        if (!m_is_owner) {
            note_ends(m_board.tries());
        }
        while (true) {
            TRY(m_board.refresh());
            report_ends();
            if (may_have_ended(m_sweep, m_board) || m_services.clock().steady() >= m_query_at) {
                TRY_ASSIGN(const SweepStatus status, query_sweep(m_services, m_store, m_sweep));
                m_query_at = m_services.clock().steady() + k_query_period;
                if (const auto left = outcome(status)) {
                    if (m_was_active) { // else it had ended before it was followed
                        m_notices.give(end_notice(status, *left));
                    }
                    return *left;
                }
                m_was_active = true;
            }
            if (const auto left = wait()) {
                return *left;
            }
        }
    }

private:
    /// The exit status, once there is nothing left to follow.
    std::optional<int> outcome(const SweepStatus& status)
    {
        const auto exit = exit_of_sweep(status, m_board.is_stopped());
        if (!exit) {
            return std::nullopt;
        }
        if (m_is_owner) {
            withdraw_waiting(m_services, m_store, status.workers);
        }
        show(status);
        for (const std::string& message : end_messages(status, *exit)) {
            print_note(m_invocation.globals.quiet, message);
        }
        return exit;
    }

    void show(const SweepStatus& status)
    {
        if (m_invocation.globals.json) {
            const auto code = code_facts(m_store, layout::sweep_snapshot(status.sweep.run.key));
            (void)print_text(
                report::json_document(sweep_document(status, {}, code, m_services.clock().now())));
            return;
        }
        (void)print_table(tries_table(status, k_shown_at_end, m_services.clock().now()),
                          m_invocation.globals, m_services);
    }

    /// The ends of these tries are known to the user and are not reported.
    void note_ends(const std::vector<Try>& tries)
    {
        m_reported.resize(tries.size(), 0);
        for (std::size_t i = 0; i < tries.size(); ++i) {
            if (tries[i].state == Try::State::ended) {
                m_reported[i] = tries[i].attempt;
            }
        }
    }

    void report_ends()
    {
        m_reported.resize(m_board.tries().size(), 0);
        for (std::size_t i = 0; i < m_board.tries().size(); ++i) {
            const Try& entry = m_board.tries()[i];
            if (entry.state != Try::State::ended || m_reported[i] == entry.attempt) {
                continue;
            }
            m_reported[i] = entry.attempt;
            print_note(m_invocation.globals.quiet, end_text(m_sweep, i + 1, entry));
        }
    }

    /// The exit status if a signal ends following.
    std::optional<int> wait()
    {
        const int signal = next_signal(k_round);
        if (signal == SIGINT && !m_is_owner) {
            return detached(ExitStatus::interrupted);
        }
        if (signal == SIGINT) {
            print_note(m_invocation.globals.quiet,
                       "Ctrl-C again to stop the sweep; else detaching");
            if (next_signal(k_second_interrupt) != SIGINT) {
                return detached(ExitStatus::interrupted);
            }
            if (const auto stopped = sweeps::stop_sweep(m_store, m_sweep.run.key); !stopped) {
                print_message(stopped.error().text);
            }
            print_note(m_invocation.globals.quiet, fmt::format("stopping sweep {}", m_sweep.name));
            return std::nullopt;
        }
        return signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT
                   ? std::optional(detached(ExitStatus::detached))
                   : std::nullopt;
    }

    int next_signal(std::chrono::milliseconds time)
    {
        pollfd wait{m_signals.descriptor(), POLLIN, 0};
        ::poll(&wait, 1, static_cast<int>(time.count()));
        return m_signals.next().value_or(0);
    }

    int detached(ExitStatus status)
    {
        print_note(m_invocation.globals.quiet,
                   fmt::format("the sweep continues: gpuq show {}, gpuq wait {}",
                               shell_quoted(m_sweep.name), shell_quoted(m_sweep.name)));
        return static_cast<int>(status);
    }

    bool m_is_owner;
    Invocation& m_invocation;
    Services& m_services;
    Store& m_store;
    Sweep m_sweep;
    sweeps::Board m_board;
    Signals m_signals;
    std::vector<int> m_reported; ///< by try: the attempt whose end was reported
    std::chrono::steady_clock::time_point m_query_at;
    Notices m_notices;
    bool m_was_active = false;
};

} // namespace

Result<int> follow_sweep(Invocation& invocation, Store& store, Sweep sweep,
                         SweepFollowing following, const std::vector<Try>& before)
{
    return SweepFollower(invocation, store, std::move(sweep), following, before).run();
}

std::optional<int> outcome_without_worker(const SweepStatus& status, std::size_t number)
{
    using State = SweepStatus::State;
    if (status.tries.at(number - 1).state == Try::State::ended || status.state == State::waiting ||
        status.state == State::running) {
        return std::nullopt;
    }
    return static_cast<int>(status.state == State::stalled ? ExitStatus::lost
                                                           : ExitStatus::stopped);
}

SweepWait::SweepWait(Invocation& invocation, Store& store, SweepTarget target)
    : m_invocation(invocation)
    , m_store(store)
    , m_target(std::move(target))
    , m_board(store, m_target.sweep.run.key)
    , m_status{m_target.sweep, {}, {}, {}, {}, {}}
    , m_notices(invocation.services)
{
}

Result<std::optional<int>> SweepWait::check()
{
    if (m_exit) {
        return m_exit;
    }
    TRY(m_board.refresh());
    Clock& clock = m_invocation.services.clock();
    if (!may_be_over() && clock.steady() < m_query_at) {
        return std::optional<int>();
    }
    TRY_ASSIGN(m_status, query_sweep(m_invocation.services, m_store, m_target.sweep));
    m_query_at = clock.steady() + k_query_period;
    m_exit = exit_of_target();
    if (m_exit) {
        report();
    }
    m_was_active = true;
    return m_exit;
}

bool SweepWait::may_be_over() const
{
    if (!m_target.number) {
        return may_have_ended(m_target.sweep, m_board);
    }
    const Try::State state = m_board.tries().at(*m_target.number - 1).state;
    return state == Try::State::ended || (state == Try::State::waiting && m_board.is_stopped());
}

std::optional<int> SweepWait::exit_of_target() const
{
    if (!m_target.number) {
        return exit_of_sweep(m_status, m_board.is_stopped());
    }
    const Try& entry = m_status.tries.at(*m_target.number - 1);
    return entry.state == Try::State::ended ? std::optional(entry.end->status)
                                            : outcome_without_worker(m_status, *m_target.number);
}

void SweepWait::report()
{
    const bool is_quiet = m_invocation.globals.quiet || m_invocation.globals.json;
    const Sweep& sweep = m_target.sweep;
    if (!m_target.number) {
        for (const std::string& message : end_messages(m_status, *m_exit)) {
            print_note(is_quiet, message);
        }
        if (m_was_active) {
            m_notices.give(end_notice(m_status, *m_exit));
        }
        return;
    }
    const Try& entry = m_status.tries.at(*m_target.number - 1);
    print_note(is_quiet, entry.state == Try::State::ended
                             ? end_text(sweep, *m_target.number, entry)
                             : fmt::format("try {} has not run: sweep {} is {}", *m_target.number,
                                           sweep.name, word(m_status.state)));
}

report::Json::Members SweepWait::document() const
{
    const auto code = code_facts(m_store, layout::sweep_snapshot(m_target.sweep.run.key));
    return sweep_document(m_status, m_target.number, code, m_invocation.services.clock().now());
}

Result<int> wait_for_try(Invocation& invocation, Store& store, SweepTarget target)
{
    SweepWait waiting(invocation, store, std::move(target));
    Signals signals;
    while (true) {
        TRY_ASSIGN(const auto exit, waiting.check());
        if (exit) {
            if (invocation.globals.json) {
                TRY(print_text(report::json_document(waiting.document())));
            }
            return *exit;
        }
        pollfd wait{signals.descriptor(), POLLIN, 0};
        ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(k_round).count()));
        if (const auto signal = signals.next()) {
            return 128 + *signal;
        }
    }
}

} // namespace gpuq::cli
