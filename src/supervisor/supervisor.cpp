// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "core/exit_status.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/sampler/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

// The loop of the supervisor: a single thread, and nothing in it may block. The log writer is a
// thread (stream/log_writer.h); the sampler and the ticket keeper are processes that live as long
// as the program; each request to Slurm and each search of a disk is a short-lived helper process
// (base/helper_call.h).
//
// A round waits until something has arrived or a time passed to m_loop.wake_at() has come. Handlers
// then take the data (watch()), and round() derives the rest from the state, always in the
// same order. So a step must not rely on a handler having been called: it checks its own condition
// and asks for the next round itself. Output is sent to the clients at the end of the round, before
// the log writer is woken, because the echo of a key should not wait for a disk.
//
// The phases only move forward: running, leftovers, settling (in a chain), recording, parting,
// done. Of several reasons to end the program the first is kept (m_observed.termination), except
// that a stop by the owner replaces others. A helper's exit status belongs to its HelperCall;
// reap() takes those of all other children.
namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_read = 64 << 10;
/// While output from the program is not read: a client may have to be given up.
constexpr auto k_full_pause = 500ms;

/// A terminal returns at most 4 KiB per read, however much is available.
ssize_t read_more(int fd, char* bytes, std::size_t size)
{
    constexpr std::size_t k_of_a_terminal = 4096;
    const ssize_t first = ::read(fd, bytes, size);
    ssize_t all = first;
    ssize_t more = first;
    while (more > 0 && more <= static_cast<ssize_t>(k_of_a_terminal) &&
           size - static_cast<std::size_t>(all) >= k_of_a_terminal) {
        more = ::read(fd, bytes + all, size - static_cast<std::size_t>(all));
        all += std::max<ssize_t>(more, 0);
    }
    return all;
}

} // namespace

Supervisor::Supervisor(Services& services, const Options& options, int guardian)
    : m_services(services)
    , m_options(options)
    , m_loop(services.clock)
    , m_guardian{.pipe = guardian}
    , m_terminal(m_loop)
    , m_slurm(m_loop, options)
    , m_leaving{.elsewhere = {m_loop, options}}
    , m_use(m_loop, options)
{
}

int Supervisor::run(const std::optional<LinkStart>& link_start)
{
    watch();
    start(link_start);
    while (m_progress.phase != Phase::done) {
        round();
    }
    m_clients.reset();
    if (!m_ending.continues) {
        return m_ending.status;
    }
    // For Slurm, a link whose run continues has succeeded. Without a record, readers have only this
    // status: after a success they would take the run as finished.
    return m_progress.recorded ? 0 : k_status_continue_me;
}

void Supervisor::watch()
{
    const auto add = [&](auto descriptor, auto handle) {
        m_loop.add([=] { return EventLoop::to_read(descriptor()); }, handle);
    };
    m_loop.on_terminate([this] { terminated(); });
    add([this] { return m_guardian.gone ? -1 : m_guardian.pipe; }, [this] { guardian_gone(); });
    add([this] { return m_program ? m_program->report() : -1; }, [this] { read_report(); });
    for (const Stream stream : {Stream::out, Stream::err}) {
        add(
            [=, this] {
                const bool wanted = m_program && !m_output.backlog.full();
                return wanted ? m_program->output()[index_of(stream)].get() : -1;
            },
            [=, this] { read_output(stream); });
    }
    m_loop.add(
        [this] {
            const short events = m_input.has_bytes() ? POLLOUT : 0;
            return Loop::Interest{m_program ? m_input.pipe() : -1, events};
        },
        [this](short ready) {
            if ((ready & (POLLERR | POLLNVAL)) != 0) {
                m_input.give_up();
            }
        });
    add([this] { return m_idle ? m_idle->fd() : -1; }, [] {}); // update_idle() reads it
    add([this] { return m_credentials.news(); }, [this] { report_tickets(); });
}

void Supervisor::round()
{
    make_space();
    m_loop.run_once();
    reap();
    m_input.flush();
    m_clients->update();
    take_news();
    slurm_answered();
    query_again_when_due();
    kill_when_due();
    check_input_owner();
    if (m_program) {
        m_terminal.update(*m_program);
    }
    check_abandoned();
    update_chain();
    sample_when_due();
    check_memory_when_due();
    update_idle();
    noticed_elsewhere();
    if (m_progress.phase == Phase::running) {
        warn();
    } else if (m_progress.phase == Phase::leftovers) {
        clear_leftovers();
    }
    note_use();
    if (m_progress.phase == Phase::settling) {
        conclude_when_ended();
    }
    if (m_progress.phase == Phase::recording) {
        report_end();
    }
    m_clients->transmit();
    // Not before the clients have the output: waking the writer would delay the echo of a key.
    if (std::exchange(m_output.to_be_logged, false)) {
        m_log->poke();
    }
    m_output.backlog.trim(m_clients->needed(m_options.patience.stalled));
    if (m_progress.phase == Phase::parting) {
        part();
    }
}

/// While the backlog is full the program's output is not read.
void Supervisor::make_space()
{
    if (m_program && m_output.backlog.full()) {
        m_log->report_space();
        m_output.backlog.trim(m_clients->needed(m_options.patience.stalled));
        if (m_output.backlog.full()) {
            m_loop.wake_at(now() + k_full_pause);
        }
    }
}

void Supervisor::guardian_gone()
{
    m_guardian.gone = true;
    kill_for({Cause::lost, "the guardian of the supervisor was killed"}, 0s);
}

void Supervisor::reap()
{
    // A helper's status is left for the helper's owner; only other children are reaped.
    siginfo_t child{};
    while (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid > 0) {
        const std::vector<pid_t> helpers = own_helpers();
        if (m_use.sampler().pid() == child.si_pid) {
            m_use.sampler().reaped();
        } else if (m_credentials.pid() == child.si_pid) {
            m_credentials.reaped();
        } else if (std::find(helpers.begin(), helpers.end(), child.si_pid) != helpers.end()) {
            return;
        }
        const bool of_program =
            m_program && child.si_pid == m_program->pid() && !m_observed.wait_status;
        if (of_program) {
            // An interactive shell catches it and stays.
            m_term.program_caught_it = !(m_run->request.pty && m_run->request.pty->shell) &&
                                       catches(child.si_pid, SIGTERM);
        }
        int status = 0;
        ::waitpid(child.si_pid, &status, 0);
        if (of_program) {
            m_observed.wait_status = status;
            m_progress.program_ended_at = now();
            m_input.give_up();
            m_program->let_terminal_go();
            m_progress.phase =
                m_progress.phase == Phase::running ? Phase::leftovers : m_progress.phase;
        }
        child = {};
    }
}

void Supervisor::read_report()
{
    if (auto reason = m_program->read_report()) {
        not_started(*std::move(reason));
        return;
    }
    Event started = event(Event::Kind::program_started);
    started.pid = m_program->pid();
    m_log->record(started);
    m_clients->started(m_program->pid());
    if (m_idle) {
        m_idle->began(now());
    }
    m_use.begin();
    if (m_chain) {
        m_chain->begin();
    }
}

void Supervisor::read_output(Stream stream)
{
    Descriptor& pipe = m_program->output()[index_of(stream)];
    char bytes[k_read];
    const ssize_t size = read_more(pipe.get(), bytes, sizeof bytes);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        pipe.reset();
        return;
    }
    const std::string_view text(bytes, static_cast<std::size_t>(size));
    m_output.last_at = now();
    if (m_idle) {
        m_idle->printed(now());
    }
    if (m_run->request.pty) {
        m_terminal.feed(text);
    }
    m_output.tail.add(stream, text);
    m_output.backlog.append(stream, text);
    m_output.to_be_logged = true;
}

void Supervisor::sample_when_due()
{
    if (m_progress.phase != Phase::running || !m_use.is_due()) {
        return;
    }
    m_credentials.start(m_options, m_use.directory());
    Descriptor activities = m_use.start(*m_run, m_idle.has_value());
    if (m_idle) {
        m_idle->watch(std::move(activities));
    }
}

/// The program may continue, or hang, after one of its processes was killed.
void Supervisor::check_memory_when_due()
{
    if (m_progress.phase != Phase::running || !m_program) {
        return;
    }
    if (m_memory->is_due(now(), m_options.patience.memory)) {
        check_memory(ReportTo::clients);
        if (m_run && has_ranks(m_run->request) && !std::exchange(m_ranks.asked, true)) {
            m_log->request_rank_notes();
        }
    }
    m_loop.wake_at(m_memory->next_check());
}

void Supervisor::check_memory(ReportTo report_to)
{
    for (const auto& [node, kills] :
         m_memory->update(m_options.node, m_services.memory(), m_ranks.notes)) {
        for (const auto& [kind, count] :
             {std::pair(Event::Kind::memory_kill, kills.ours),
              std::pair(Event::Kind::memory_kill_nearby, kills.nearby)}) {
            if (count > 0) {
                Event killed = event(kind);
                killed.host = node;
                killed.to = count;
                m_log->record(std::move(killed));
            }
        }
        if (report_to == ReportTo::clients) {
            m_clients->note(fmt::format("{} ({})", to_sentence(kills), node));
        }
    }
    m_observed.memory = m_memory->all();
}

void Supervisor::report_tickets()
{
    for (const std::string& line : m_credentials.take_news()) {
        journal(Event::Kind::credentials, line);
    }
}

void Supervisor::take_news()
{
    LogWriter::News news = m_log->take_news();
    for (LogWriter::Answer& answer : news.answers) {
        m_clients->history_came(std::move(answer));
    }
    for (const std::string& note : news.notes) {
        m_clients->note(note);
    }
    if (news.stop_request) {
        stop(requester_of(news.stop_request));
    }
    if (news.save_request) {
        save_and_stop(requester_of(news.save_request));
    }
    if (news.rehearsal_request) {
        rehearse(*news.rehearsal_request);
    }
    if (news.exemption) {
        take_exemption(*news.exemption);
    }
    if (news.may_release) {
        release_answered(*news.may_release);
    }
    if (news.extension && m_limit) {
        m_limit->set_raised(extension_in(*news.extension));
    }
    if (news.fenced) {
        fenced();
    }
    if (news.rank_notes) {
        m_ranks.notes = std::move(news.rank_notes);
        m_ranks.asked = false;
    }
    if (m_term.state == Term::State::checking_stop &&
        (news.checked || now() >= m_term.check_until)) {
        find_term_reason();
    }
    m_progress.written = m_progress.written || news.written;
    m_progress.recorded = m_progress.recorded || news.recorded;
    m_progress.synced = m_progress.synced || news.synced;
}

Event Supervisor::event(Event::Kind kind) const
{
    Event made;
    made.kind = kind;
    made.at = m_services.clock.now();
    return made;
}

void Supervisor::journal(Event::Kind kind, const std::string& detail, Urgency urgency)
{
    Event made = event(kind);
    made.detail = detail;
    m_log->record(std::move(made), urgency);
}

void run_program(Services& services, const Options& options,
                 const std::optional<LinkStart>& link_start, int goodbye, int guardian)
{
    Supervisor supervisor(services, options, guardian);
    const int status = supervisor.run(link_start);
    write_all(goodbye, std::string_view(reinterpret_cast<const char*>(&status), sizeof status));
    if (supervisor.has_to_complete()) {
        complete_for_ever(completion_by_exec(options, status));
    }
    // No destructors: a thread may still hang in a write.
    ::_exit(status);
}

} // namespace gpuq::supervisor
