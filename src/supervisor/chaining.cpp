// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "core/exit_status.h"
#include "ports/job.h"
#include "runs/insight/rehearsal.h"
#include "supervisor/base/check_command.h"
#include "supervisor/base/job_environment.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/notice.h"
#include "supervisor/notice_elsewhere.h"

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
constexpr auto k_check_listeners = 5s;
constexpr auto k_listeners_stay = 1s;

} // namespace

/// Called when the record of the run has been read.
void Supervisor::join_chain(const std::optional<LinkStart>& link_start)
{
    if (!m_run->request.chain) {
        return;
    }
    if (m_options.link > LinkNumber{1}) {
        m_run->request.input = Input::none; // its client may be long gone
    }
    const Time time = m_services.clock.now();
    m_chain.emplace(m_loop, m_services.clock, m_options, *m_run,
                    link_start ? *link_start : first_link_start(m_run->request, time),
                    [this](Event event) { m_log->record(std::move(event)); });
    if (const auto why = link_start ? std::nullopt : why_no_link(m_run->request, {}, time)) {
        not_started({static_cast<int>(ExitStatus::time_limit), *why});
    }
}

void Supervisor::report_link_start()
{
    if (!m_chain || m_options.link == LinkNumber{1}) {
        return;
    }
    const LinkStart& link_start = m_chain->link_start();
    Event resumed = event(Event::Kind::resumed);
    resumed.detail = link_start.checkpoint;
    if (link_start.previous) {
        resumed.cause = link_start.previous->cause;
        resumed.status = link_start.previous->status;
    }
    m_log->record(std::move(resumed));
    if (!link_start.changed.empty()) {
        journal(Event::Kind::code_changed, link_start.changed);
    }
}

/// The program of this link, with the arguments that make it resume if there is a checkpoint.
std::vector<std::string> Supervisor::program_arguments(const Run& run) const
{
    Request request = run.request;
    const std::string checkpoint = m_chain ? m_chain->link_start().checkpoint : "";
    if (!checkpoint.empty() && !request.chain->resume_args.empty()) {
        const auto arguments = with_path(request.chain->resume_args, checkpoint);
        request.program.insert(request.program.end(), arguments.begin(), arguments.end());
    }
    return m_services.program_argv(request);
}

void Supervisor::describe_link_start(Environment& variables) const
{
    if (m_chain) {
        const LinkStart& link_start = m_chain->link_start();
        describe_link(variables, *m_run, link_start.restart, link_start.checkpoint);
    }
}

std::vector<pid_t> Supervisor::own_helpers() const
{
    std::vector<pid_t> pids = m_chain ? m_chain->pids() : std::vector<pid_t>{};
    for (const auto helper : {m_slurm.pid(), m_leaving.elsewhere.pid(), m_use.sampler().pid(),
                              m_credentials.pid(), m_use.noting_pid()}) {
        if (helper) {
            pids.push_back(*helper);
        }
    }
    return pids;
}

void Supervisor::update_chain()
{
    if (m_chain) {
        m_chain->update();
    }
    if (m_progress.phase == Phase::running && m_program && !m_observed.wait_status) {
        notice_when_due();
        end_when_saved();
    }
}

/// Considers this node only: listeners on the other nodes are unknown until they are notified.
/// Because this scans all processes, and a program that writes a lot keeps the loop busy, the last
/// answer is reused for a moment.
bool Supervisor::has_listeners()
{
    if (m_leaving.listened_at && now() < *m_leaving.listened_at + k_listeners_stay) {
        return m_leaving.has_listeners;
    }
    const auto all =
        listeners("GPUQ_RUN_ID=" + m_options.key.text(), m_options.node, own_helpers());
    const std::vector<int> signals = signals_of(m_run->request.chain->notice);
    m_leaving.has_listeners = std::any_of(signals.begin(), signals.end(), [&](int signal) {
        return !processes_to_notify(all, signal).empty();
    });
    m_leaving.listened_at = now();
    return m_leaving.has_listeners;
}

/// True for a program that saves but cannot be notified: it is terminated right after the last
/// checkpoint that fits.
bool Supervisor::saves_in_its_own_time()
{
    return !m_run->request.chain->aware && m_chain->has_saved() && !has_listeners();
}

/// Notifies the program to save and leave; if it has not left by `until` it is killed. The first
/// reason is kept. Returns the number of processes on this node that got a signal from this call.
std::size_t Supervisor::notice(Termination termination, Clock::time_point until)
{
    if (m_progress.phase != Phase::running || !m_program) {
        return 0;
    }
    const auto kill_at = std::max(until, now() + 1s);
    m_leaving.kill_by(kill_at);
    m_leaving.term_at = *m_leaving.kill_at -
                        std::min<Clock::duration>(k_time_to_die, (*m_leaving.kill_at - now()) / 2);
    if (m_leaving.notice) {
        return 0;
    }
    m_leaving.notice = std::move(termination);
    Event notice_event = event(Event::Kind::noticed);
    notice_event.detail = m_leaving.notice->cause == Cause::stopped     ? "stop"
                          : m_leaving.notice->cause == Cause::preempted ? "preempted"
                                                                        : "limit";
    if (m_chain) {
        m_chain->noticed(notice_event.at, m_leaving.notice->cause == Cause::preempted);
    }
    m_log->drop_stop_file();
    const Notice how = m_run->request.chain ? m_run->request.chain->notice : Notice::automatic;
    if (m_run->request.nodes > 1 && how != Notice::none && m_options.job) {
        m_leaving.elsewhere.start({HelperWork::Kind::notice, encoded(m_run->request.nodes, how)},
                                  k_notice_patience);
    }
    const std::size_t signalled =
        notify_processes(
            listeners("GPUQ_RUN_ID=" + m_options.key.text(), m_options.node, own_helpers()), how)
            .size();
    notice_event.to = signalled;
    m_log->record(std::move(notice_event), Urgency::now);
    return signalled;
}

/// Processes that were not notified still have the stop file. If the program has ended meanwhile,
/// none is missing.
void Supervisor::noticed_elsewhere()
{
    const auto answer = m_leaving.elsewhere.take();
    if (!answer) {
        return;
    }
    const std::string problem = decoded<std::string>(*answer).value_or("Slurm does not answer");
    if (!problem.empty() && m_progress.phase == Phase::running) {
        journal(Event::Kind::notice_failed, problem);
    }
}

void Supervisor::notice_when_due()
{
    if (!m_chain || !m_limit) {
        return;
    }
    const Time time = m_services.clock.now();
    const auto in = [&](Time when) {
        return now() + std::chrono::ceil<std::chrono::milliseconds>(when - time);
    };
    const Time end = m_limit->at();
    if (!m_leaving.notice && m_chain->is_last_that_fits(time, end) && saves_in_its_own_time()) {
        notice({Cause::time_limit, ""}, now() + k_time_to_die);
        m_observed.termination = Termination{Cause::time_limit, ""};
        m_leaving.saved_at = now() - k_time_to_leave;
        return;
    }
    const Time when = end - m_chain->link_start().lead;
    if (time < when) {
        m_loop.wake_at(in(when));
    } else if (!m_leaving.notice && time < end && saves_in_its_own_time()) {
        m_loop.wake_at(std::min(in(end), now() + k_check_listeners));
    } else if (!m_leaving.notice) {
        notice({Cause::time_limit, ""}, in(end) + k_last_grace);
    }
    if (m_leaving.notice && time >= end && !m_observed.termination) {
        m_observed.termination = *m_leaving.notice; // its time is up
        m_leaving.term_at = now();
    } else if (m_leaving.notice && time < end) {
        m_loop.wake_at(in(end));
    }
}

/// A program that saved after the notice may leave; one that stays has nothing to lose.
void Supervisor::end_when_saved()
{
    if (m_chain && !m_leaving.saved_at) {
        m_leaving.saved_at = m_chain->saved_since();
    }
    if (!m_leaving.saved_at || !m_leaving.notice) {
        return;
    }
    const auto leave_by = *m_leaving.saved_at + k_time_to_leave;
    if (now() < leave_by) {
        m_loop.wake_at(leave_by);
    } else if (!m_leaving.ending_saved) {
        m_leaving.ending_saved = true;
        kill_for(m_observed.termination.value_or(*m_leaving.notice), k_time_to_die);
    }
}

/// Slurm notifies only the steps of a job, and without a reason; a batch job finds out by asking.
/// The program has until the end of the grace period.
void Supervisor::take_grace(const JobNews& news)
{
    if (m_limit) {
        m_limit->take_end(news);
    }
    auto termination = why_terminated(JobState::preempted);
    m_observed.grace = termination;
    if (m_progress.phase == Phase::running && m_chain && news.ends_at) {
        const auto left = *news.ends_at - m_services.clock.now();
        notice(*std::move(termination),
               now() + std::chrono::ceil<std::chrono::milliseconds>(left) + k_last_grace);
    } else if (m_progress.phase != Phase::running && !left_before_term() &&
               !m_observed.termination) {
        m_observed.termination = std::move(termination);
    }
}

void Supervisor::save_and_stop(const std::string& by)
{
    if (m_leaving.stop_asked) {
        return;
    }
    journal(Event::Kind::stop_asked, by + ", with time to save");
    const Termination termination{Cause::stopped, "by " + by + ", with time to save"};
    if (m_progress.phase == Phase::running && m_program) {
        m_observed.termination = termination;
    }
    notice(termination, now() + k_time_to_save);
    if (m_leaving.notice && m_leaving.notice->cause != Cause::stopped) {
        m_leaving.notice =
            termination; // it was notified already, but now the run must not continue
    }
}

/// `gpuq rehearse` triggers an event that normally happens at the end of a link or through a fault.
void Supervisor::rehearse(const std::string& line)
{
    const auto asked = rehearsal_request_in(line);
    if (!asked || asked->link != m_options.link || m_progress.phase != Phase::running ||
        !m_program) {
        return;
    }
    if (asked->act == RehearsalRequest::Act::notice) {
        notice({Cause::time_limit, ""}, now() + k_time_to_save);
    } else {
        journal(Event::Kind::signalled, "KILL for the program: gpuq rehearse", Urgency::now);
        m_program->signal(SIGKILL);
    }
}

/// Slurm has declared this link dead, and the next one has started: this one must not write any
/// more, and no longer decides how the run continues.
void Supervisor::fenced()
{
    m_progress.fenced = true;
    m_chain.reset();
    m_ending.continues = true;
    kill_for({Cause::lost, "the next link has started: Slurm had declared this one dead"}, 0s);
}

void Supervisor::conclude_when_ended()
{
    if (!m_chain) {
        return record_end();
    }
    if (out_of_time()) {
        m_chain->give_up_settling();
    }
    const auto& outcome = m_chain->outcome();
    if (!outcome) {
        if (m_term.state == Term::State::known) {
            m_loop.wake_at(m_term.kill_at() - 1s); // out of time
        }
        return;
    }
    if (outcome->verdict.decision == Verdict::Decision::over) {
        m_ending = outcome->verdict.ending.value_or(m_ending);
        m_ending.continues = false;
    } else {
        m_ending.continues = true;
    }
    record_end();
}

} // namespace gpuq::supervisor
