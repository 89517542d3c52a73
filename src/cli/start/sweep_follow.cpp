// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/sweep_follow.h"

#include "cli/base/message.h"
#include "cli/base/notices.h"
#include "cli/base/signals.h"
#include "cli/base/table_output.h"
#include "cli/queries/code_snapshot.h"
#include "cli/queries/sweep_query.h"
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
            const auto tally = sweeps::tally_of(m_board.tries());
            const bool may_be_over = tally.waiting + tally.running == 0 || m_board.is_stopped();
            if (may_be_over || m_services.clock().steady() >= m_query_at) {
                TRY_ASSIGN(const SweepStatus status, query_sweep(m_services, m_store, m_sweep));
                m_query_at = m_services.clock().steady() + k_query_period;
                if (const auto left = outcome(status)) {
                    notice_end(status, *left);
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
        using State = SweepStatus::State;
        if (status.state == State::waiting || status.state == State::running) {
            return std::nullopt;
        }
        if (m_is_owner) {
            withdraw_waiting(m_services, m_store, status.workers);
        }
        show(status);
        if (status.state == State::stalled) {
            print_note(
                m_invocation.globals.quiet,
                fmt::format("sweep {} has no workers left: {}; gpuq sweep retry {} starts new ones",
                            m_sweep.name, sweep_summary(status), shell_quoted(m_sweep.name)));
            return static_cast<int>(ExitStatus::lost);
        }
        print_note(m_invocation.globals.quiet,
                   fmt::format("sweep {}: {}", m_sweep.name, sweep_summary(status)));
        if (const std::string missing = missing_metric_text(status); !missing.empty()) {
            print_note(m_invocation.globals.quiet, missing);
        }
        if (status.state == State::spent) {
            print_note(
                m_invocation.globals.quiet,
                fmt::format("it has used its {:.3g} GPU-hours",
                            k_minute_in_hours * static_cast<double>(m_sweep.gpu_time->count())));
            return static_cast<int>(ExitStatus::stopped);
        }
        if (status.state == State::stopped) {
            return static_cast<int>(ExitStatus::stopped);
        }
        if (m_board.is_stopped() && status.tally.stopped > 0) {
            return static_cast<int>(ExitStatus::stopped);
        }
        if (!status.proposal_failure.empty()) {
            print_note(m_invocation.globals.quiet,
                       fmt::format("no more proposals: {}; gpuq sweep retry {} asks again",
                                   status.proposal_failure, shell_quoted(m_sweep.name)));
            return k_some_failed;
        }
        return status.tally.succeeded + status.tally.stopped_early == status.tries.size()
                   ? 0
                   : k_some_failed;
    }

    /// Not of a sweep that had ended before it was followed.
    void notice_end(const SweepStatus& status, int exit)
    {
        if (m_was_active) {
            m_notices.give({exit == k_some_failed || exit == static_cast<int>(ExitStatus::lost)
                                ? RunNotice::Event::failure
                                : RunNotice::Event::end,
                            m_sweep.run.key.text(), m_sweep.name,
                            fmt::format("sweep {}: {}", m_sweep.name, sweep_summary(status))});
        }
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

Result<int> wait_for_try(Invocation& invocation, Store& store, const Sweep& sweep,
                         std::size_t number)
{
    sweeps::Board board(store, sweep.run.key);
    Signals signals;
    Clock& clock = invocation.services.clock();
    std::chrono::steady_clock::time_point query_at;
    while (true) {
        TRY(board.refresh());
        const Try::State state = board.tries().at(number - 1).state;
        const bool may_be_over =
            state == Try::State::ended || (state == Try::State::waiting && board.is_stopped());
        if (may_be_over || clock.steady() >= query_at) {
            TRY_ASSIGN(const SweepStatus status, query_sweep(invocation.services, store, sweep));
            query_at = clock.steady() + k_query_period;
            const Try& entry = status.tries.at(number - 1);
            const auto left = entry.state == Try::State::ended
                                  ? std::optional(entry.end->status)
                                  : outcome_without_worker(status, number);
            if (left && invocation.globals.json) {
                TRY(print_text(report::json_document(
                    sweep_document(status, number, std::nullopt, clock.now()))));
            } else if (left) {
                print_note(invocation.globals.quiet,
                           entry.state == Try::State::ended
                               ? end_text(sweep, number, entry)
                               : fmt::format("try {} has not run: sweep {} is {}", number,
                                             sweep.name, word(status.state)));
            }
            if (left) {
                return *left;
            }
        }
        pollfd wait{signals.descriptor(), POLLIN, 0};
        ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(k_round).count()));
        if (const auto signal = signals.next()) {
            return 128 + *signal;
        }
    }
}

} // namespace gpuq::cli
