// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/supervisor.h"

#include "supervisor/base/process_tree.h"
#include "supervisor/sampler/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

// The event loop. Each round polls all descriptors, at most until the earliest time passed to
// wake_at(), and handles signals, the program, the clients, the log writer and the helpers; output
// is sent to the clients at its end. The phases only move forward: running, leftovers, settling (in
// a chain), recording, parting, done.
namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_read = 64 << 10;
/// The loop's own timers need no longer wait than this.
constexpr auto k_longest_wait = 60'000ms;
/// While output from the program is not read: a client may have to be given up.
constexpr auto k_full_pause = 500ms;

Descriptor open_signals()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    return Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

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

Supervisor::Supervisor(Services& services, const Options& options,
                       const std::optional<LinkStart>& link_start, int guardian)
    : m_services(services)
    , m_options(options)
    , m_guardian(guardian)
    , m_signals(open_signals())
    , m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    , m_slurm(options)
    , m_link_start(link_start)
    , m_elsewhere(options)
    , m_use_note(options)
    , m_now(services.clock.steady())
    , m_started_at(m_now)
    , m_next_wake(m_now)
    , m_phase_since(m_now)
{
}

int Supervisor::run()
{
    start();
    while (m_phase != Phase::done) {
        round();
    }
    m_clients.reset();
    // For Slurm, a link whose run continues has succeeded.
    return m_ending.continues ? 0 : m_ending.status;
}

void Supervisor::round()
{
    prepare_polls();
    m_polls.wait(time_to_wait());
    m_now = m_services.clock.steady();
    m_next_wake = m_now + k_longest_wait;
    take_signals();
    check_guardian();
    check_program();
    m_clients->handle(m_polls, m_now);
    take_news();
    slurm_answered();
    query_again_when_due();
    kill_when_due();
    check_input_owner();
    restore_size();
    check_abandoned();
    update_chain();
    sample_when_due();
    check_memory_when_due();
    update_idle();
    noticed_elsewhere();
    report_tickets();
    if (m_phase == Phase::running) {
        warn();
    } else if (m_phase == Phase::leftovers) {
        clear_leftovers();
    }
    note_use();
    if (m_phase == Phase::settling) {
        conclude_when_ended();
    }
    if (m_phase == Phase::recording) {
        report_end();
    }
    if (const auto again = m_clients->transmit(m_now)) {
        wake_at(*again);
    }
    // Not before the clients have the output: waking the writer would delay the echo of a key.
    if (std::exchange(m_to_be_logged, false)) {
        m_log->poke();
    }
    m_backlog.trim(m_clients->needed(m_now, m_options.patience.stalled));
    if (m_phase == Phase::parting) {
        part();
    }
}

void Supervisor::prepare_polls()
{
    m_polls.clear();
    m_polled = {};
    m_polled.signals = m_polls.add(m_signals.get(), POLLIN);
    m_polled.wake = m_polls.add(m_wake.get(), POLLIN);
    m_polled.guardian = m_polls.add(m_guardian_gone ? -1 : m_guardian, POLLIN);
    m_polled.slurm = m_polls.add(m_slurm.fd(), POLLIN);
    m_polled.idle = m_polls.add(m_idle ? m_idle->fd() : -1, POLLIN);
    m_polled.tickets = m_polls.add(m_credentials.news(), POLLIN);
    m_polled.elsewhere = m_polls.add(m_elsewhere.fd(), POLLIN);
    m_polled.note = m_polls.add(m_use_note.fd(), POLLIN);
    m_clients->add_to(m_polls);
    if (m_chain) {
        m_chain->add_to(m_polls);
    }
    if (!m_program) {
        return;
    }
    if (m_backlog.full()) {
        m_log->report_space();
        m_backlog.trim(m_clients->needed(m_now, m_options.patience.stalled));
    }
    if (m_backlog.full()) {
        wake_at(m_now + k_full_pause);
    } else {
        m_polled.out = m_polls.add(m_program->output()[0].get(), POLLIN);
        m_polled.err = m_polls.add(m_program->output()[1].get(), POLLIN);
    }
    m_polled.input = m_polls.add(m_input.pipe(), m_input.has_bytes() ? short{POLLOUT} : short{0});
    m_polled.report = m_polls.add(m_program->report(), POLLIN);
}

void Supervisor::check_guardian()
{
    if (m_polls.ready(m_polled.guardian) != 0) {
        m_guardian_gone = true;
        kill_for({Cause::lost, "the guardian of the supervisor was killed"}, 0s);
    }
}

void Supervisor::check_program()
{
    if (!m_program) {
        return;
    }
    if (m_polls.ready(m_polled.report) != 0) {
        read_report();
    }
    read_output(Stream::out, m_polls.ready(m_polled.out));
    read_output(Stream::err, m_polls.ready(m_polled.err));
    if ((m_polls.ready(m_polled.input) & (POLLERR | POLLNVAL)) != 0) {
        m_input.give_up();
    } else {
        m_input.flush();
    }
}

std::chrono::milliseconds Supervisor::time_to_wait()
{
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(m_next_wake - m_services.clock.steady());
    return std::clamp<std::chrono::milliseconds>(wait, 0ms, k_longest_wait);
}

void Supervisor::wake_at(Clock::time_point when)
{
    m_next_wake = std::min(m_next_wake, when);
}

void Supervisor::take_signals()
{
    signalfd_siginfo signal{};
    while (::read(m_signals.get(), &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGTERM) {
            terminated();
        }
    }
    reap();
}

void Supervisor::reap()
{
    // A helper's status is left for the helper's owner; only other children are reaped.
    siginfo_t child{};
    while (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid > 0) {
        const std::vector<pid_t> helpers = own_helpers();
        if (m_sampler.pid() == child.si_pid) {
            m_sampler.reaped();
        } else if (m_credentials.pid() == child.si_pid) {
            m_credentials.reaped();
        } else if (std::find(helpers.begin(), helpers.end(), child.si_pid) != helpers.end()) {
            return;
        }
        const bool of_program =
            m_program && child.si_pid == m_program->pid() && !m_observed.wait_status;
        if (of_program) {
            // An interactive shell catches it and stays.
            m_program_caught_term = !(m_run->request.pty && m_run->request.pty->shell) &&
                                    catches(child.si_pid, SIGTERM);
        }
        int status = 0;
        ::waitpid(child.si_pid, &status, 0);
        if (of_program) {
            m_observed.wait_status = status;
            m_program_ended_at = m_now;
            m_input.give_up();
            m_program->let_terminal_go();
            m_phase = m_phase == Phase::running ? Phase::leftovers : m_phase;
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
        m_idle->began(m_now);
    }
    m_sample_at = m_now + m_options.patience.sampling;
    if (m_chain) {
        m_chain->begin(m_now);
    }
}

void Supervisor::read_output(Stream stream, short ready)
{
    if (ready == 0) {
        return;
    }
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
    m_last_output_at = m_now;
    if (m_idle) {
        m_idle->printed(m_now);
    }
    if (m_run->request.pty) {
        m_modes.feed(text);
    }
    m_tail.add(stream, text);
    m_backlog.append(stream, text);
    m_to_be_logged = true;
}

void Supervisor::sample_when_due()
{
    if (!m_sample_at || m_phase != Phase::running) {
        return;
    }
    if (m_now < *m_sample_at) {
        wake_at(*m_sample_at);
        return;
    }
    m_sample_at.reset();
    m_credentials.start(m_options, m_link_directory.get());
    m_sampler.start({m_options.sampler, m_options.node,
                     m_options.first ? k_gpus_of_step : k_gpus_of_job, m_run->request.gpus.count,
                     std::exchange(m_link_directory, {}).get(), m_idle.has_value()});
    if (m_idle) {
        m_idle->watch(m_sampler.take_activities());
    }
}

/// The program may continue, or hang, after one of its processes was killed.
void Supervisor::check_memory_when_due()
{
    if (m_phase != Phase::running || !m_program) {
        return;
    }
    if (m_now >= m_next_memory) {
        m_next_memory = m_now + m_options.patience.memory;
        check_memory(ReportTo::clients);
        if (m_run && has_ranks(m_run->request) && !std::exchange(m_rank_notes_asked, true)) {
            m_log->request_rank_notes();
        }
    }
    wake_at(m_next_memory);
}

/// Checks this node, and the counts that the ranks have noted for theirs.
void Supervisor::check_memory(ReportTo report_to)
{
    m_memory->add(m_services.memory());
    report_memory(m_options.node, m_memory->all(), report_to);
    for (const auto& [node, kills] :
         m_rank_notes ? m_rank_notes->memory : decltype(RankNotes::memory){}) {
        report_memory(node, kills, report_to);
    }
}

/// Records a node's new kills in the journal; several ranks may have counted on the same node.
void Supervisor::report_memory(const std::string& node, const MemoryKills& all, ReportTo report_to)
{
    MemoryKills& reported = m_reported_memory[node];
    const MemoryKills fresh{all.ours - std::min(all.ours, reported.ours),
                            all.nearby - std::min(all.nearby, reported.nearby)};
    for (const auto& [kind, count] : {std::pair(Event::Kind::memory_kill, fresh.ours),
                                      std::pair(Event::Kind::memory_kill_nearby, fresh.nearby)}) {
        if (count > 0) {
            Event killed = event(kind);
            killed.host = node;
            killed.to = count;
            m_log->record(std::move(killed));
        }
    }
    reported.ours += fresh.ours;
    reported.nearby += fresh.nearby;
    m_observed.memory.ours += fresh.ours;
    m_observed.memory.nearby += fresh.nearby;
    if (report_to == ReportTo::clients && fresh != MemoryKills{}) {
        m_clients->note(fmt::format("{} ({})", to_sentence(fresh), node));
    }
}

void Supervisor::report_tickets()
{
    if (m_polls.ready(m_polled.tickets) == 0) {
        return;
    }
    for (const std::string& line : m_credentials.take_news()) {
        journal(Event::Kind::credentials, line);
    }
}

void Supervisor::take_news()
{
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t woken = ::read(m_wake.get(), &count, sizeof count);
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
    if (news.fenced) {
        fenced();
    }
    if (news.rank_notes) {
        m_rank_notes = std::move(news.rank_notes);
        m_rank_notes_asked = false;
    }
    if (m_term == Term::checking_stop && (news.checked || m_now >= m_check_until)) {
        find_term_reason();
    }
    m_written = m_written || news.written;
    m_synced = m_synced || news.synced;
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
    Supervisor supervisor(services, options, link_start, guardian);
    const int status = supervisor.run();
    write_all(goodbye, std::string_view(reinterpret_cast<const char*>(&status), sizeof status));
    if (supervisor.has_to_complete()) {
        complete_for_ever(completion_by_exec(options, status));
    }
    // No destructors: a thread may still hang in a write.
    ::_exit(status);
}

} // namespace gpuq::supervisor
