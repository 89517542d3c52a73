// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "runs/records/record.h"
#include "supervisor/base/process_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

// Ending the program for an outside reason: a stop by the owner, lost input, or TERM from Slurm.
// Slurm sends the same TERM for a cancellation, the time limit and preemption, so the reason is
// looked up in steps (enum Term): first a stop request in the inbox, then the deadline, then a
// query to Slurm.
namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_stop_check_patience = 2s;
constexpr auto k_most_grace = 20s;
/// Time needed to end a run, reserved from Slurm's KillWait.
constexpr auto k_time_to_end = 2s;
/// A controller that is busy ending jobs may not answer the first query.
constexpr auto k_ask_again = 250ms;
constexpr auto k_most_asking = 5s;
/// Slurm's own timeout for its controller is ten seconds.
constexpr auto k_slurm_patience = 15s;

} // namespace

std::string requester_of(const std::optional<std::string>& stop_json)
{
    const auto request = stop_request_from_json(stop_json.value_or(""));
    return request ? request->by : "a request in its inbox";
}

void Supervisor::signal_program(int number)
{
    if (number <= 0 || number >= NSIG || !m_program || m_observed.wait_status) {
        return;
    }
    m_observed.asked_signals.set(static_cast<std::size_t>(number));
    m_program->signal(number);
}

void Supervisor::stop(const std::string& by)
{
    if (!m_leaving.stop_asked) {
        m_leaving.stop_asked = by;
        journal(Event::Kind::stop_asked, by);
        kill_for({Cause::stopped, "by " + by}, m_options.patience.stop);
    }
}

/// Sends TERM now and KILL after `grace`. The first reason is kept, except that a stop by the owner
/// replaces it.
void Supervisor::kill_for(Termination termination, Clock::duration grace)
{
    if (m_progress.phase != Phase::running || !m_program) {
        return;
    }
    if (!m_observed.termination || termination.cause == Cause::stopped) {
        m_observed.termination = std::move(termination);
    }
    m_leaving.kill_by(now() + grace);
    m_program->signal(SIGTERM);
    m_program->signal(SIGCONT);
    if (m_run->request.pty && m_run->request.pty->shell) {
        m_program->hang_up(); // an interactive shell ignores TERM
    }
}

void Supervisor::kill_when_due()
{
    if (!m_leaving.kill_at || m_progress.phase != Phase::running) {
        return;
    }
    if (m_leaving.term_at && now() >= *m_leaving.term_at) {
        m_leaving.term_at.reset();
        m_program->signal(SIGTERM);
        m_program->signal(SIGCONT);
    } else if (m_leaving.term_at) {
        m_loop.wake_at(*m_leaving.term_at);
    }
    if (now() < *m_leaving.kill_at) {
        m_loop.wake_at(*m_leaving.kill_at);
        return;
    }
    m_program->signal(SIGKILL);
    // A program that has changed its process group is still a descendant.
    for (const pid_t pid : descendants(own_helpers())) {
        ::kill(pid, SIGKILL);
    }
    m_leaving.kill_at = now() + 1s;
    m_loop.wake_at(*m_leaving.kill_at);
}

/// Handles TERM from outside: sent by Slurm to all processes of the job, or with `scancel -s TERM`.
void Supervisor::terminated()
{
    if (m_term.state != Term::State::none) {
        return;
    }
    journal(Event::Kind::signalled, "TERM", Urgency::now);
    m_term.state = Term::State::checking_stop;
    m_term.at = now();
    m_log->check_stop();
    m_term.check_until = now() + k_stop_check_patience;
    m_loop.wake_at(m_term.check_until);
}

Termination Supervisor::limit_reached() const
{
    return m_limit ? m_limit->reached() : Termination{Cause::time_limit, ""};
}

void Supervisor::find_term_reason()
{
    if (m_leaving.stop_asked) {
        // The stop request may have been read after the program died from the same TERM.
        conclude_term(Termination{Cause::stopped, "by " + *m_leaving.stop_asked});
        return;
    }
    if (m_limit && m_limit->is_reached(m_services.clock.now())) {
        conclude_term(limit_reached());
        return;
    }
    m_term.state = Term::State::asking_slurm;
    m_slurm.drop();
    if (!ask_slurm()) {
        conclude_term(Termination{Cause::cancelled, "ended by a signal from outside"});
    }
}

/// Handles the answer to the query for the reason of a TERM, or the lack of an answer.
void Supervisor::term_explained(const std::optional<JobNews>& news)
{
    const auto time =
        std::clamp<Clock::duration>(m_term.kill_wait - k_time_to_end, 0ms, k_most_asking);
    if (news && m_limit) {
        m_limit->take_walltime(*news);
    }
    if (news && news->has_grace) {
        take_grace(*news);
        m_term.state = Term::State::none; // the one that ends the job comes later
    } else if (news) {
        auto termination = why_terminated(news->state);
        conclude_term(termination && termination->cause == Cause::time_limit
                          ? limit_reached()
                          : std::move(termination));
    } else if (now() + k_ask_again < m_term.at + time) {
        m_term.ask_again_at = now() + k_ask_again;
    } else {
        conclude_term(Termination{Cause::cancelled, "ended by a signal; Slurm gives no reason"});
    }
}

void Supervisor::query_again_when_due()
{
    if (!m_term.ask_again_at) {
        return;
    }
    if (now() < *m_term.ask_again_at) {
        m_loop.wake_at(*m_term.ask_again_at);
        return;
    }
    m_term.ask_again_at.reset();
    if (!ask_slurm()) {
        term_explained({});
    }
}

bool Supervisor::left_before_term() const
{
    const auto spread = left_by_unexplained_term() ? k_late_term : k_term_spread;
    return m_observed.wait_status && m_progress.program_ended_at + spread < m_term.at;
}

void Supervisor::conclude_term(std::optional<Termination> termination)
{
    m_term.state = Term::State::known;
    if (!termination) {
        // The next TERM is evaluated anew.
        m_term.state = Term::State::none;
        return;
    }
    if (m_progress.phase == Phase::running) {
        const auto grace =
            std::clamp<Clock::duration>(m_term.kill_wait - k_time_to_end, 500ms, k_most_grace);
        const bool may_save =
            termination->cause == Cause::preempted || termination->cause == Cause::time_limit;
        if (m_chain && may_save) {
            // Slurm ends the job: the program's status when it exits is not the cause of the end.
            m_observed.termination = m_observed.termination.value_or(*termination);
            notice(*std::move(termination), m_term.at + grace);
        } else {
            kill_for(*std::move(termination), m_term.at + grace - now());
        }
    } else if (!left_before_term() && !m_observed.termination) {
        m_observed.termination = std::move(termination);
    }
}

/// `queues` as in query_job() (helper.h). False if no query could be started.
bool Supervisor::ask_slurm(const std::string& queues)
{
    return m_options.job &&
           m_slurm.start({HelperWork::Kind::query_job, encoded(queues)}, k_slurm_patience);
}

void Supervisor::slurm_answered()
{
    const auto answer = m_slurm.take();
    if (!answer) {
        return;
    }
    const auto news = decoded<JobNews>(*answer);
    if (m_term.state == Term::State::asking_slurm) {
        term_explained(news);
    } else if (news && m_limit) {
        m_limit->take_walltime(*news);
        take_end(*news);
        m_limit->take_preemption(*news);
        if (news->has_grace && m_progress.phase == Phase::running) {
            take_grace(*news);
        }
    }
}

/// Takes the end of the job from Slurm, whose time limit may have been changed. Once the program
/// has been notified to leave, its link does not become longer.
void Supervisor::take_end(const JobNews& news)
{
    constexpr auto k_change = 30s; // limits are whole minutes
    const Time before = m_limit->at();
    if (m_leaving.notice && news.ends_at > before) {
        return;
    }
    m_limit->take_end(news);
    if (news.has_grace || std::chrono::abs(m_limit->at() - before) < k_change) {
        return;
    }
    Event changed = event(Event::Kind::limit_changed);
    changed.to = m_limit->unix_time();
    m_log->record(std::move(changed));
    m_log->write_deadline(fmt::format("{}\n", m_limit->unix_time()));
    if (m_chain) {
        m_chain->set_end(m_limit->at());
    }
}

void Supervisor::check_input_owner()
{
    const auto since = m_clients->without_owner_since();
    if (m_progress.phase != Phase::running || !since || m_run->request.input != Input::pipe ||
        m_input.ended() || m_input.closed()) {
        return;
    }
    const auto until = *since + (m_clients->had_owner() ? m_options.patience.new_owner
                                                        : m_options.patience.first_owner);
    if (now() < until) {
        m_loop.wake_at(until);
        return;
    }
    kill_for({Cause::input_lost, "its input was cut off: the client that sent it is gone"},
             m_options.patience.stop);
}

/// Ends a shell that no client attaches to, or comes back to.
void Supervisor::check_abandoned()
{
    if (!m_abandonment || m_progress.phase != Phase::running) {
        return;
    }
    const bool attached = m_clients->has_terminal();
    if (m_abandonment->is_due(now(), attached)) {
        const auto processes = attached ? std::vector<pid_t>{} : left_behind();
        if (const auto why = m_abandonment->check({now(), attached, m_clients->had_terminal(),
                                                   m_output.last_at, cpu_time_of(processes)})) {
            kill_for({Cause::stopped, *why}, m_options.patience.stop);
            m_abandonment.reset();
            return;
        }
    }
    m_loop.wake_at(m_abandonment->next_check());
}

/// Gives warnings before the time limit.
void Supervisor::warn()
{
    if (!m_limit) {
        return;
    }
    const auto period = m_chain ? std::optional(m_options.patience.next_check) : std::nullopt;
    if (!m_slurm.in_progress()) { // its answer may be older than the reason for this query
        if (m_limit->query_is_due(now(), period)) {
            const bool is_known = !m_chain || m_limit->knows_preemption();
            ask_slurm(is_known ? "" : m_run->request.queue);
        }
        m_loop.wake_at(m_limit->next_query());
    }
    const auto next = m_limit->next_warning();
    if (!next) {
        return;
    }
    const auto left = *next - m_services.clock.now();
    if (left > 0s) {
        m_loop.wake_at(now() + std::chrono::ceil<std::chrono::milliseconds>(left));
        return;
    }
    if (m_limit->needs_query_to_warn()) {
        ask_slurm();
    }
    if (m_slurm.in_progress()) {
        return;
    }
    const auto text = m_limit->warning(m_services.clock.now());
    if (text && !m_observed.termination) { // a job that is being ended ends now, to Slurm
        journal(Event::Kind::warned, *text);
        if (!m_run->request.pty) {
            m_clients->note(*text); // do not write into the screen drawn by a program
        }
    }
}

} // namespace gpuq::supervisor
