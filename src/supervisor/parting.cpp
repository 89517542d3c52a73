// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "supervisor/base/helper.h"
#include "supervisor/base/process_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <utility>

// From the end of the program to the end of this process: kill leftover processes, read the ranks'
// notes, determine the ending, settle the chain, complete the log, inform the clients, and wait for
// them to disconnect. Each step has a time limit, and most are cut short if Slurm is about to kill
// the job (out_of_time()).
namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_leftovers_pause = 5ms;
constexpr auto k_leftovers_patience = 10s;
constexpr auto k_complete_first = 3s;
/// For a notice that is still being sent to other nodes.
constexpr auto k_elsewhere_patience = 1s;
/// Slurm kills the processes of a step one after the other, within this time.
constexpr auto k_kill_spread = 250ms;

/// If one of its processes was killed for memory, Slurm reports a task that ended with 0 as failed.
bool is_out_of_memory_of_srun(int wait_status)
{
    constexpr int k_signal_of_slurm = 125;
    return WIFEXITED(wait_status) &&
           (WEXITSTATUS(wait_status) == 1 || WEXITSTATUS(wait_status) == k_signal_of_slurm);
}

} // namespace

/// All processes below the supervisor, except its own helpers.
std::vector<pid_t> Supervisor::left_behind() const
{
    return descendants(own_helpers());
}

bool Supervisor::nothing_left() const
{
    // Without children there are no descendants: all orphans become our children.
    siginfo_t child{};
    const bool childless =
        ::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    return childless || left_behind().empty();
}

/// The program was killed, and Slurm may be killing the whole step: a cause reported now would be
/// wrong, and this process might not live to free the job.
bool Supervisor::may_still_be_killed() const
{
    const bool died_of_kill = m_observed.wait_status && WIFSIGNALED(*m_observed.wait_status) &&
                              WTERMSIG(*m_observed.wait_status) == SIGKILL;
    const bool expected = m_observed.termination || m_observed.asked_signals.test(SIGKILL);
    return died_of_kill && !expected && now() < m_progress.program_ended_at + k_kill_spread;
}

bool Supervisor::left_by_unexplained_term() const
{
    const bool died_of_term = m_observed.wait_status && WIFSIGNALED(*m_observed.wait_status) &&
                              WTERMSIG(*m_observed.wait_status) == SIGTERM;
    const bool expected = m_observed.termination || m_observed.asked_signals.test(SIGTERM);
    return (died_of_term || m_term.program_caught_it) && !expected;
}

/// Our own TERM may still arrive: then the job is being ended.
bool Supervisor::may_still_be_terminated() const
{
    return m_term.is_open() || (left_by_unexplained_term() && m_term.state == Term::State::none &&
                                now() < m_progress.program_ended_at + k_late_term);
}

/// Kills daemons and other processes left by the program: at once if they do not hold its output,
/// otherwise after a moment (`... | tee log` still has to write).
void Supervisor::clear_leftovers()
{
    m_loop.wake_at(now() + k_leftovers_pause);
    const bool silent = !m_program || (!m_program->output()[0] && !m_program->output()[1]);
    const bool patient =
        !silent && now() < m_progress.program_ended_at + m_options.patience.leftover_output;
    if (patient) {
        return;
    }
    if (!nothing_left()) {
        for (const pid_t pid : left_behind()) {
            ::kill(pid, SIGKILL);
        }
    } else if (silent && !may_still_be_terminated() && !may_still_be_killed()) {
        conclude_or_record();
        return;
    }
    // Processes that cannot be killed, or were never below us, may hold the pipes forever, and
    // print. Output that is not read, because a disk hangs, hides the end of the pipes.
    const auto last = std::max(m_progress.program_ended_at, m_output.last_at);
    const bool is_quiet = now() > last + k_leftovers_patience && !m_output.backlog.full();
    const bool is_overdue =
        now() > m_progress.program_ended_at + m_options.patience.disk || out_of_time();
    if (is_quiet || is_overdue) {
        close_output();
        conclude_or_record();
    }
}

/// Reads the output that a full backlog has kept in the pipes. Later output is not part of the run.
void Supervisor::close_output()
{
    for (const Stream stream : {Stream::out, Stream::err}) {
        if (m_program && m_program->output()[index_of(stream)]) {
            read_output(stream);
            m_program->output()[index_of(stream)].reset();
        }
    }
}

/// If the program's process was srun, the ranks' own notes describe their end better. False while
/// the notes are awaited.
bool Supervisor::knows_rank_notes()
{
    if (!m_program || !has_ranks(m_run->request) || m_options.sampler.empty()) {
        return true;
    }
    const bool waits =
        now() <= m_progress.program_ended_at + m_options.patience.disk && !out_of_time();
    if (m_ranks.asked && waits) {
        return false; // may have been read before the end: read them once more
    }
    if (!std::exchange(m_ranks.last, true)) {
        m_ranks.notes.reset();
        m_ranks.asked = true;
        m_log->request_rank_notes();
    }
    return !m_ranks.asked || !waits;
}

void Supervisor::conclude_or_record()
{
    if (!knows_rank_notes()) {
        return;
    }
    if (m_ranks.notes && m_ranks.notes->first) {
        m_observed.wait_status = m_ranks.notes->first->wait_status;
        m_observed.rank =
            fmt::format("rank {} on {}", m_ranks.notes->first->rank, m_ranks.notes->first->node);
    }
    m_credentials.stop();
    m_use.stop(/*noted=*/m_options.job && m_services.note && !m_progress.fenced &&
               !m_guardian.gone && m_run && m_run->request.gpus.count > 0);
    check_memory(ReportTo::journal);
    if (m_ranks.notes && !m_ranks.notes->first && m_observed.memory.ours > 0 &&
        is_out_of_memory_of_srun(m_observed.wait_status.value_or(0))) {
        m_observed.wait_status = 0;
    }
    m_observed.gpu_out_of_memory = m_output.tail.has_gpu_out_of_memory();
    m_ending = decide(m_observed, m_services.clock.now());
    m_ending.continues = m_progress.fenced;
    if (!m_chain) {
        return record_end();
    }
    m_progress.phase = Phase::settling;
    const bool by_itself = m_observed.wait_status && WIFEXITED(*m_observed.wait_status);
    m_chain->conclude(m_ending, by_itself);
}

/// Runs while the log is completed and the clients are informed.
void Supervisor::note_use()
{
    if (m_run) {
        m_use.update(m_run->request,
                     m_term.state == Term::State::known ? JobEnd::over : JobEnd::to_come);
    }
}

void Supervisor::record_end()
{
    if (has_to_complete()) {
        // Before the end is recorded: readers take it for the end of the job, and the cause of the
        // guardian's death may kill this process too before it completes the job.
        m_guardian.completed =
            complete_once(completion_by_exec(m_options, m_ending.status), k_complete_first);
    }
    Event ended = event(Event::Kind::ended);
    ended.status = m_ending.status;
    ended.cause = m_ending.cause;
    ended.continues = m_ending.continues;
    if (m_memory->is_exact()) {
        ended.to = m_observed.memory.ours;
    }
    if (!m_ending.detail.empty()) {
        ended.detail = m_ending.detail;
    }
    if (const std::string tail = m_output.tail.last_lines(); !tail.empty()) {
        ended.tail = tail;
    }
    m_log->finish(std::move(ended));
    m_progress.phase = Phase::recording;
    m_progress.since = now();
}

/// Waits until everything is written: a client that receives Ended may read the whole log.
void Supervisor::report_end()
{
    const auto disk_until = m_progress.since + m_options.patience.disk;
    if (!m_progress.written && now() < disk_until && !out_of_time()) {
        m_loop.wake_at(disk_until);
        return;
    }
    m_clients->ended(wire::Ended{m_ending, m_output.backlog.end()[0], m_output.backlog.end()[1],
                                 m_output.tail.last_lines(), m_input.read_by_program()});
    if (m_chain && !m_ending.continues) {
        m_chain->withdraw();
    }
    m_progress.phase = Phase::parting;
}

/// Clients that read get all the output, and then a moment to disconnect.
void Supervisor::part()
{
    const bool drained_enough = now() > m_progress.since + m_options.patience.draining;
    const bool notified = m_clients->all_notified(m_options.patience.stalled) || drained_enough;
    if (notified && !m_progress.notified_at) {
        m_progress.notified_at = now();
    }
    const bool gone =
        m_progress.notified_at &&
        (m_clients->all_gone() || now() > *m_progress.notified_at + m_options.patience.closing);
    const bool synced = m_progress.synced || now() > m_progress.since + m_options.patience.disk;
    const bool withdrawn = !m_chain || !m_chain->is_withdrawing();
    // A node whose step loses its srun is closed to new jobs for seconds.
    const bool notified_elsewhere =
        !m_leaving.elsewhere.in_progress() || now() > m_progress.since + k_elsewhere_patience;
    if ((gone && synced && withdrawn && notified_elsewhere && !m_use.is_noting()) ||
        out_of_time()) {
        m_progress.phase = Phase::done;
        return;
    }
    m_loop.wake_at(now() + (m_progress.notified_at ? 2ms : 50ms));
}

/// Slurm is about to kill us.
bool Supervisor::out_of_time() const
{
    return m_term.state == Term::State::known && now() > m_term.kill_at() - 1s;
}

} // namespace gpuq::supervisor
