// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "core/exit_status.h"
#include "runs/insight/rehearsal.h"
#include "supervisor/base/check_command.h"
#include "supervisor/base/job_environment.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/notice.h"

#include <algorithm>
#include <csignal>

// The loop's part of a chain. Some time before the end of the link the program is notified to save.
// It is then ended when it has saved, or at the end of the link. Submitting links and watching
// checkpoints is left to ChainKeeper.
namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

/// Time for a program that has saved to exit on its own before it gets TERM, and then until KILL.
constexpr auto k_time_to_leave = 1500ms;
constexpr auto k_time_to_die = 3s;
/// Grace period at the end of a link for a program that did not save in time.
constexpr auto k_last_grace = 5s;
constexpr auto k_look_for_listeners = 5s;
constexpr auto k_listeners_stay = 1s;

} // namespace

/// Called when the record of the run has been read.
void Supervisor::join_chain()
{
    if (!m_run->request.chain) {
        m_turn.reset();
        return;
    }
    if (!m_turn) {
        m_turn = first_turn(m_run->request);
    }
    if (m_options.link > LinkNumber{1}) {
        m_run->request.input = Input::none; // its client may be long gone
    }
    m_chain.emplace(m_doors.clock, m_options, *m_run, *m_turn,
                    [this](Event event) { m_log->record(std::move(event)); });
}

void Supervisor::tell_turn()
{
    if (!m_turn || m_options.link == LinkNumber{1}) {
        return;
    }
    Event resumed = event(Event::Kind::resumed);
    resumed.detail = m_turn->checkpoint;
    if (m_turn->previous) {
        resumed.cause = m_turn->previous->cause;
        resumed.status = m_turn->previous->status;
    }
    m_log->record(std::move(resumed));
    if (!m_turn->changed.empty()) {
        journal(Event::Kind::code_changed, m_turn->changed);
    }
}

/// The program of this link, with the arguments that make it resume if there is a checkpoint.
std::vector<std::string> Supervisor::words_of(const Run& run) const
{
    Request request = run.request;
    if (m_turn && !m_turn->checkpoint.empty() && !request.chain->resume_args.empty()) {
        const auto words = with_path(request.chain->resume_args, m_turn->checkpoint);
        request.program.insert(request.program.end(), words.begin(), words.end());
    }
    return m_doors.program_argv(request);
}

void Supervisor::describe_turn(Environment& variables) const
{
    if (m_turn) {
        describe_link(variables, *m_run, m_turn->restart, m_turn->checkpoint);
    }
}

std::vector<pid_t> Supervisor::own_helpers() const
{
    std::vector<pid_t> pids = m_chain ? m_chain->pids() : std::vector<pid_t>{};
    for (const auto helper : {m_slurm.pid(), m_elsewhere.pid(), m_sampler.pid(),
                              m_credentials.pid(), m_use_note.pid()}) {
        if (helper) {
            pids.push_back(*helper);
        }
    }
    return pids;
}

void Supervisor::look_after_chain()
{
    if (m_chain) {
        m_chain->handle(m_polls, m_now);
        if (const auto next = m_chain->next_wake()) {
            wake_at(*next);
        }
    }
    if (m_phase == Phase::running && m_program && !m_observed.wait_status) {
        notice_when_due();
        end_when_saved();
    }
}

/// Considers this node only: listeners on the other nodes are unknown until they are notified.
/// Because this scans all processes, and a program that writes a lot keeps the loop busy, the last
/// answer is reused for a moment.
bool Supervisor::anybody_listens()
{
    if (m_listened_at && m_now < *m_listened_at + k_listeners_stay) {
        return m_listened;
    }
    const auto all =
        listeners("GPUQ_RUN_ID=" + m_options.key.text(), m_options.node, own_helpers());
    const std::vector<int> signals = signals_of(m_run->request.chain->notice);
    m_listened = std::any_of(signals.begin(), signals.end(),
                             [&](int signal) { return !to_be_told(all, signal).empty(); });
    m_listened_at = m_now;
    return m_listened;
}

/// True for a program that saves but cannot be notified: it is terminated right after the last
/// checkpoint that fits.
bool Supervisor::saves_in_its_own_time()
{
    return !m_run->request.chain->aware && m_chain->has_saved() && !anybody_listens();
}

/// Notifies the program to save and leave; if it has not left by `until` it is killed. The first
/// reason is kept. Returns the number of processes on this node that got a signal from this call.
std::size_t Supervisor::notice(Killing killing, Clock::time_point until)
{
    if (m_phase != Phase::running || !m_program) {
        return 0;
    }
    const auto kill_at = std::max(until, m_now + 1s);
    m_kill_at = m_kill_at ? std::min(*m_kill_at, kill_at) : kill_at;
    m_term_due = *m_kill_at - std::min<Clock::duration>(k_time_to_die, (*m_kill_at - m_now) / 2);
    if (m_notice) {
        return 0;
    }
    m_notice = std::move(killing);
    Event told = event(Event::Kind::noticed);
    told.detail = m_notice->cause == Cause::stopped     ? "stop"
                  : m_notice->cause == Cause::preempted ? "preempted"
                                                        : "limit";
    if (m_chain) {
        m_chain->noticed(told.at, m_notice->cause == Cause::preempted, m_now);
    }
    m_log->drop_stop_file();
    const Notice how = m_run->request.chain ? m_run->request.chain->notice : Notice::automatic;
    m_elsewhere.begin(m_run->request.nodes, how, m_now);
    const std::size_t signalled =
        tell(listeners("GPUQ_RUN_ID=" + m_options.key.text(), m_options.node, own_helpers()), how)
            .size();
    told.to = signalled;
    m_log->record(std::move(told), Urgency::now);
    return signalled;
}

/// Processes that were not notified still have the stop file. If the program has ended meanwhile,
/// none is missing.
void Supervisor::noticed_elsewhere()
{
    const auto until = m_elsewhere.gives_up_at();
    if (!until) {
        return;
    }
    if (m_polls.ready(m_polled.elsewhere) == 0 && m_now < *until) {
        wake_at(*until);
        return;
    }
    const auto problem = m_elsewhere.finish();
    if (problem && m_phase == Phase::running) {
        journal(Event::Kind::notice_failed, *problem);
    }
    wake_at(m_now); // the helper may have hidden the end of the program
}

void Supervisor::notice_when_due()
{
    if (!m_chain || !m_deadline) {
        return;
    }
    const Time now = m_doors.clock.now();
    const auto in = [&](Time when) {
        return m_now + std::chrono::ceil<std::chrono::milliseconds>(when - now);
    };
    const Time end = m_deadline->at();
    if (!m_notice && m_chain->is_last_that_fits(now, end) && saves_in_its_own_time()) {
        notice({Cause::time_limit, ""}, m_now + k_time_to_die);
        m_observed.killing = Killing{Cause::time_limit, ""};
        m_saved_at = m_now - k_time_to_leave;
        return;
    }
    const Time when = end - m_chain->turn().lead;
    if (now < when) {
        wake_at(in(when));
    } else if (!m_notice && now < end && saves_in_its_own_time()) {
        wake_at(std::min(in(end), m_now + k_look_for_listeners));
    } else if (!m_notice) {
        notice({Cause::time_limit, ""}, in(end) + k_last_grace);
    }
    if (m_notice && now >= end && !m_observed.killing) {
        m_observed.killing = *m_notice; // its time is up
        m_term_due = m_now;
    } else if (m_notice && now < end) {
        wake_at(in(end));
    }
}

/// A program that saved after the notice may leave; one that stays has nothing to lose.
void Supervisor::end_when_saved()
{
    if (m_chain && !m_saved_at) {
        m_saved_at = m_chain->saved_since();
    }
    if (!m_saved_at || !m_notice) {
        return;
    }
    const auto leave_by = *m_saved_at + k_time_to_leave;
    if (m_now < leave_by) {
        wake_at(leave_by);
    } else if (!m_ending_saved) {
        m_ending_saved = true;
        kill_for(m_observed.killing.value_or(*m_notice), k_time_to_die);
    }
}

/// Slurm notifies only the steps of a job, and without a reason; a batch job finds out by asking.
/// The program has until the end of the grace period.
void Supervisor::take_grace(const JobNews& news)
{
    take_end(news);
    auto killing = why_terminated(JobState::preempted);
    m_observed.grace = killing;
    if (m_phase == Phase::running && m_chain && news.ends_at) {
        const auto left = *news.ends_at - m_doors.clock.now();
        notice(*std::move(killing),
               m_now + std::chrono::ceil<std::chrono::milliseconds>(left) + k_last_grace);
    } else if (m_phase != Phase::running && !left_before_term() && !m_observed.killing) {
        m_observed.killing = std::move(killing);
    }
}

void Supervisor::save_and_stop(const std::string& by)
{
    if (m_stop_asked) {
        return;
    }
    journal(Event::Kind::stop_asked, by + ", with time to save");
    const Killing killing{Cause::stopped, "by " + by + ", with time to save"};
    if (m_phase == Phase::running && m_program) {
        m_observed.killing = killing;
    }
    notice(killing, m_now + k_time_to_save);
    if (m_notice && m_notice->cause != Cause::stopped) {
        m_notice = killing; // it was notified already, but now the run must not continue
    }
}

/// `gpuq rehearse` triggers an event that normally happens at the end of a link or through a fault.
void Supervisor::rehearse(const std::string& line)
{
    const auto asked = rehearsal_request_in(line);
    if (!asked || asked->link != m_options.link || m_phase != Phase::running || !m_program) {
        return;
    }
    if (asked->act == RehearsalRequest::Act::notice) {
        notice({Cause::time_limit, ""}, m_now + k_time_to_save);
    } else {
        journal(Event::Kind::signalled, "KILL for the program: gpuq rehearse", Urgency::now);
        m_program->signal(SIGKILL);
    }
}

/// Slurm has declared this link dead, and the next one has started: this one must not write any
/// more, and no longer decides how the run continues.
void Supervisor::fenced()
{
    m_fenced = true;
    m_chain.reset();
    m_ending.continues = true;
    kill_for({Cause::lost, "the next link has started: Slurm had declared this one dead"}, 0s);
}

void Supervisor::settle_when_ended()
{
    if (!m_chain) {
        return record_end();
    }
    if (out_of_time()) {
        m_chain->give_up_settling();
    }
    const auto& settled = m_chain->settled();
    if (!settled) {
        if (m_term == Term::known) {
            wake_at(m_term_at + m_kill_wait - 1s); // out of time
        }
        return;
    }
    if (settled->verdict.go == Verdict::Go::over) {
        m_ending = settled->verdict.ending.value_or(m_ending);
        m_ending.continues = false;
    } else {
        m_ending.continues = true;
    }
    record_end();
}

} // namespace gpuq::supervisor
