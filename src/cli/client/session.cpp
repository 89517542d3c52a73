// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/session.h"

#include "cli/base/message.h"
#include "cli/client/end_job.h"
#include "cli/client/step_messages.h"
#include "cli/queries/site_context.h"
#include "core/layout.h"
#include "ports/cluster.h"
#include "remote/verb_process.h"
#include "report/ending_text.h"
#include "runs/records/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <vector>

// One process, one thread, one event loop. Its children are the sruns of up to three connections
// (connections.cpp); the run itself belongs to the cluster.
//
// States: connecting or disconnected (no current connection: output and the end come from disk,
// DiskView, every second), connected, ended (m_ended: only printing remains), and left. The loop
// ends with m_left (the user leaves; its value is the exit status), m_ended and all output printed,
// or m_turned_away (the supervisor refuses a visitor). After m_left and m_turned_away no watch has
// an interest, so that no other handler of the same round reads input or prints.
//
// Invariants: output is identified by its offset in the stream, and input by the offset that the
// supervisor has acknowledged, so that a new connection neither loses nor repeats a byte. Nothing
// is read from a connection while the printer is full. The next client continues at
// ShownPosition.
//
// Order in a round: signals first, since they may end the session, then printing, which makes room,
// then the connections, and stdin last. The terminal and the right to read stdin depend on the
// shell's job control, which no descriptor reports: they are checked once a second.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_second_interrupt = 2s;
constexpr auto k_query_again = 1s;
constexpr auto k_connecting_patience = 10s;
constexpr auto k_read_again = 20ms;
/// A supervisor that is asked to stop kills after 10 s; after this time the job is cancelled.
constexpr auto k_stop_patience = 15s;
constexpr int k_closed_output = 128 + SIGPIPE;
/// The position in the output of a shorter run is not recorded at its end.
constexpr auto k_short_run = 10s;
constexpr std::size_t k_most_notes = 20;
constexpr auto k_check_terminal = 1s;

} // namespace

Session::Session(Services& services, Signals& signals, const Run& run, JobId job,
                 SessionOptions options)
    : m_services(services)
    , m_signals(signals)
    , m_run(run)
    , m_job(job)
    , m_options(options)
    , m_printer(STDOUT_FILENO, STDERR_FILENO)
    , m_terminal(STDIN_FILENO, STDOUT_FILENO)
    , m_connections(m_loop, services, run, options.link, job, options.handover,
                    [this] { return greeting(); })
    , m_disk(services, run, options.link, m_printer,
             options.shown ? DiskView::What::log_and_end : DiskView::What::end)
    , m_detach_timer(m_loop, [this] { leave(static_cast<int>(ExitStatus::interrupted)); })
    , m_query_timer(m_loop, [this] { check_disk(); })
    , m_cancel_timer(m_loop, [this] { cancel_job(); })
    , m_shown(m_loop, services, run, options.shown,
              [this] {
                  return Shown{m_printer.shown(Stream::out), m_printer.shown(Stream::err),
                               m_options.link};
              })
    , m_stdin(m_loop, run, m_terminal, {is_owner(), options.link, options.detach_key},
              {[this](const std::string& text) { print_message(text); },
               [this](ExitStatus status) { leave(static_cast<int>(status)); },
               [this] { send_input(); },
               [this](std::uint64_t left) {
                   m_services.send_to_serve(remote::line_of_left(left));
                   return m_services.is_served();
               }})
{
    watch_all();
    m_printer.begin_at(Stream::out, options.shown ? options.shown->out : wire::k_from_now);
    m_printer.begin_at(Stream::err, options.shown ? options.shown->err : wire::k_from_now);
}

std::vector<wire::Frame> Session::greeting() const
{
    const std::uint64_t out = m_printer.wanted(Stream::out);
    std::vector<wire::Frame> frames{
        wire::Attach{wire::k_version, is_owner() ? wire::Role::owner : wire::Role::viewer, out,
                     m_printer.wanted(Stream::err)}};
    // Messages of gpuq may have overwritten parts of a full-screen program.
    const bool spoiled = m_reported_lost && m_terminal.on_other_screen();
    if (const auto size = terminal(out == wire::k_from_now || spoiled)) {
        frames.emplace_back(*size);
    }
    if (m_options.take && !m_connections.was_connected()) {
        frames.emplace_back(wire::Take{fmt::format("{}@{}", m_run.user, host_name())});
    }
    return frames;
}

std::optional<wire::Terminal> Session::terminal(bool redraw) const
{
    if (!has_terminal()) {
        return std::nullopt;
    }
    return wire::Terminal{m_connections.client(),
                          m_terminal.size().value_or(m_run.request.pty->size), redraw};
}

Result<int> Session::run(std::optional<StepProcess> first)
{
    if (m_options.over) {
        m_query_timer.start_in(0s);
    } else {
        m_connections.begin(first);
    }
    if (const auto size = terminal(false); first && size) {
        current()->send(*size);
    } else if (!first && !m_options.over) {
        m_query_timer.start_in(k_query_again);
    }
    send_input();
    while (!has_left() && !(m_ended && m_printer.empty())) {
        m_loop.run_once(k_check_terminal);
        forward_signals();
        if (has_terminal() && m_connections.was_connected() && !m_ended && !m_left) {
            m_terminal.enter(); // this process may have been in the background until now
        }
    }
    if (m_turned_away) {
        return fail(Error::Kind::busy,
                    fmt::format("run {} accepts no more clients: {}. Try again when one has "
                                "detached; gpuq logs -f {} shows its output",
                                m_job.value, *m_connections.refused(), m_job.value));
    }
    return m_left ? *m_left : finish();
}

void Session::watch(std::function<EventLoop::Interest()> interest, void (Session::*handle)())
{
    m_loop.add([this, interest = std::move(
                          interest)] { return has_left() ? EventLoop::Interest{} : interest(); },
               [this, handle] { (this->*handle)(); });
}

/// Watches all descriptors of a connection. After the end only printing remains.
void Session::watch(std::optional<Connection>& (Session::*connection)(), void (Session::*handle)())
{
    const auto watch_one = [&](auto interest) {
        watch(
            [this, connection, interest] {
                const auto& it = (this->*connection)();
                return it && !m_ended ? interest(*it) : EventLoop::Interest{};
            },
            handle);
    };
    watch_one([this](const Connection& it) {
        return EventLoop::to_read(it.output(), !m_printer.full());
    });
    watch_one([](const Connection& it) { return EventLoop::to_read(it.error()); });
    watch_one([](const Connection& it) { return EventLoop::to_write(it.wants_to_write()); });
}

void Session::watch_all()
{
    watch([this] { return EventLoop::to_read(m_signals.descriptor()); }, &Session::on_signals);
    watch(
        [this] {
            return m_printer.empty() ? EventLoop::Interest{}
                                     : EventLoop::to_write(m_printer.next_descriptor());
        },
        &Session::on_printer);
    watch(&Session::current, &Session::on_current);
    watch(&Session::next, &Session::on_next);
    watch(&Session::guard, &Session::on_guard);
    watch([this] { return EventLoop::to_read(STDIN_FILENO, !m_ended && m_stdin.wants_more()); },
          &Session::on_stdin);
}

void Session::on_signals()
{
    while (const std::optional<int> number = m_signals.next()) {
        if (m_terminal.is_raw() || (!is_owner() && !m_options.terminal)) {
            const bool interrupt = *number == SIGINT;
            return leave(
                static_cast<int>(interrupt ? ExitStatus::interrupted : ExitStatus::detached));
        }
        if (!m_options.terminal && is_over()) { // no program is left to send it to: it applies to
                                                // this process
            return leave(128 + *number);
        }
        if (!m_options.terminal && *number != SIGHUP) {
            m_signals_to_send.push_back(*number); // sent after the connections of this round
        } else if (*number == SIGINT) {
            on_interrupt();
        } else if (*number != SIGQUIT) {
            return leave(static_cast<int>(ExitStatus::detached));
        }
    }
    if (m_signals.terminal_changed()) {
        on_terminal_changed();
    }
}

/// Known to this process, or on disk: while output is blocked, nothing is read from the connection.
bool Session::is_over() const
{
    if (m_ended) {
        return true;
    }
    const auto store = m_services.store();
    return store && m_disk.has_ended(**store);
}

void Session::on_terminal_changed()
{
    m_terminal.continued();
    if (const auto size = terminal(false); size && current()) {
        current()->send(*size);
    }
}

/// Sends the program's signals as soon as there is a connection.
void Session::forward_signals()
{
    if (current() && current()->has_greeted) {
        for (const int number : std::exchange(m_signals_to_send, {})) {
            m_connections.send_signal(number);
        }
    }
}

void Session::on_interrupt()
{
    // Without a connection a shell's terminal is not raw yet: Ctrl-C is not for a program in it.
    if (m_stopping || has_terminal()) {
        return leave(static_cast<int>(ExitStatus::interrupted));
    }
    if (m_detach_timer.is_started()) {
        m_detach_timer.stop();
        return stop();
    }
    print_message("press Ctrl-C again to stop the run; detaching otherwise");
    m_detach_timer.start_in(k_second_interrupt);
}

void Session::on_printer()
{
    const int error = m_printer.write_some();
    m_shown.on_printed();
    if (error == EPIPE) {
        return leave(k_closed_output);
    }
    if (error == EIO && m_options.terminal) { // the terminal has hung up; SIGHUP will follow
        return leave(static_cast<int>(ExitStatus::detached));
    }
    if (error != 0) {
        print_message(fmt::format("the output can't be written here: {}", std::strerror(error)));
        leave(static_cast<int>(ExitStatus::internal));
    }
}

/// Prints new output without another iteration of the loop.
void Session::print_fitting()
{
    while (!m_printer.empty() && !m_left) {
        pollfd room{m_printer.next_descriptor(), POLLOUT, 0};
        if (::poll(&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0) {
            return;
        }
        on_printer();
    }
}

void Session::on_stdin()
{
    m_stdin.read();
}

void Session::send_input()
{
    if (current()) {
        m_stdin.send(*current());
    }
}

void Session::on_current()
{
    if (!current()) {
        return;
    }
    current()->read_errors();
    if (current()->wants_to_write() >= 0) {
        current()->write_some();
    }
    if (m_printer.full()) {
        return;
    }
    const bool open = current()->read_some();
    while (current() && !m_ended && !m_left) {
        auto frame = current()->next();
        if (!frame) {
            break;
        }
        on_frame(*std::move(frame));
    }
    print_fitting();
    const bool broken = current() && current()->is_broken();
    if ((!open || broken) && !m_ended && !m_left) {
        on_broken();
    }
}

void Session::on_taken(const std::string& by)
{
    note(fmt::format("{} has taken the run over with gpuq attach --take", by));
    leave(static_cast<int>(ExitStatus::detached));
}

void Session::on_frame(wire::Frame frame)
{
    if (std::holds_alternative<wire::Hello>(frame)) {
        m_connections.greeted();
        if (has_terminal()) {
            m_terminal.enter();
        }
        forward_signals();
    } else if (std::holds_alternative<wire::Started>(frame)) {
        m_connections.started();
    } else if (const auto* output = std::get_if<wire::Output>(&frame)) {
        m_terminal.watch(m_printer.news(output->stream, output->offset, output->bytes));
        const std::uint64_t gap = m_printer.take(output->stream, output->offset, output->bytes);
        if (gap > 0) {
            note(fmt::format("{} bytes of output were lost: the log could not be written", gap));
        }
    } else if (const auto* taken = std::get_if<wire::StdinTaken>(&frame)) {
        m_stdin.taken(*taken);
        send_input();
    } else if (const auto* signal = std::get_if<wire::SignalTaken>(&frame)) {
        m_connections.signal_taken(*signal);
    } else if (const auto* screen = std::get_if<wire::Screen>(&frame)) {
        m_terminal.watch(screen->bytes);
        m_printer.show(screen->bytes);
    } else if (const auto* messages = std::get_if<wire::Note>(&frame)) {
        note(messages->text);
        if (m_options.on_note) {
            m_options.on_note(messages->text);
        }
    } else if (const auto* taken_by = std::get_if<wire::Taken>(&frame)) {
        on_taken(taken_by->by);
    } else if (auto* ended = std::get_if<wire::Ended>(&frame)) {
        m_ended = std::move(*ended);
        current()->send(wire::Bye{}); // everything has been received: the allocation may end
        current()->flush(1s);
    }
}

void Session::on_next()
{
    if (m_connections.on_next()) {
        if (has_terminal()) {
            m_terminal.enter(); // before any output of the program is shown
        }
        if (std::exchange(m_reported_lost, false) && !m_terminal.on_other_screen()) {
            print_message("connected");
        }
        m_query_timer.stop();
        m_stdin.restart();
        send_input();
        forward_signals();
        on_current();
    }
    const auto& refused = m_connections.refused();
    m_turned_away = refused && !is_owner() && !m_connections.was_connected();
}

void Session::on_guard()
{
    m_connections.on_guard();
}

void Session::on_broken()
{
    const Connections::Broken broken = m_connections.drop_current();
    if (broken.never_began) {
        const Ending ending = never_started(broken.messages, m_services.clock().now());
        if (!end_job(m_services, m_run, m_job, ending)) {
            print_message(ending.detail); // the recorded end, once known, may have another reason
        }
    }
    m_query_timer.start_in(0s);
}

/// Without a connection: reads the log on disk and checks whether the run has ended.
void Session::check_disk()
{
    if (current() || m_ended) {
        return;
    }
    m_query_timer.start_in(k_query_again);
    const auto store = m_services.store();
    if (!store) {
        return;
    }
    m_ended = m_disk.poll(**store);
    if (m_disk.knows_ending()) {
        m_connections.give_up();
        m_query_timer.start_in(k_read_again);
    } else if (m_connections.was_connected() && !m_reported_lost) {
        m_reported_lost = true;
        print_message("the connection to the run is lost; the run continues, reconnecting");
    } else if (!m_reported_lost && Clock::now() - m_begun > k_connecting_patience) {
        m_reported_lost = true;
        const std::string why = last_line(m_connections.why());
        print_message(fmt::format(
            "the run can't be reached yet{}; trying again, {}", why.empty() ? "" : " (" + why + ")",
            has_terminal() ? "Ctrl-C detaches" : "gpuq logs shows the output on disk"));
    }
}

void Session::stop()
{
    m_stopping = true;
    print_message("stopping the run");
    const std::string by = fmt::format("{}@{}", m_run.user, m_run.host);
    if (current()) {
        current()->send(wire::Stop{by});
    }
    if (const auto store = m_services.store()) {
        (void)(*store)->write(layout::inbox(m_run.key) + "/" + layout::k_stop_request,
                              to_json(StopRequest{by, m_services.clock().now()}));
    }
    m_cancel_timer.start_in(current() ? k_stop_patience : 0s);
}

/// Repeated until the run has ended.
void Session::cancel_job()
{
    if (m_ended) {
        return;
    }
    m_cancel_timer.start_in(k_stop_patience);
    if (const auto cluster = m_services.cluster()) {
        (void)(*cluster)->cancel(m_job);
    }
}

void Session::stop_timers()
{
    for (EventLoop::Timer* const each : {&m_detach_timer, &m_query_timer, &m_cancel_timer}) {
        each->stop();
    }
    m_stdin.stop();
}

/// The user leaves and the run continues, unless its input from a pipe is incomplete: then it ends.
void Session::leave(int status)
{
    m_left = status;
    stop_timers();
    m_terminal.leave();
    m_shown.wait_until_shown();
    record_shown();
    print_notes();
    if (m_ended) {
        return;
    }
    const bool breaks_off = m_stdin.is_incomplete();
    // Before secure(), which kills the first srun: at its end, the supervisor waits for clients
    // that have not left.
    forward_signals();
    if (current()) {
        current()->send(wire::Bye{});
        current()->flush(200ms);
    }
    // With incomplete input the supervisor must see the connection end, which secure() would
    // prevent.
    if (!breaks_off && !m_connections.secure()) {
        return end_as_lost();
    }
    if (breaks_off) {
        print_message(fmt::format("left; run {} ends because its input was cut off", m_job.value));
    } else if (status != k_closed_output) {
        print_message(fmt::format("detached; run {} continues. Back to it: gpuq attach {}",
                                  m_job.value, m_job.value));
    }
}

/// The run has ended with its step: frees its GPUs. If Slurm does not respond, the next gpuq that
/// queries the run does it.
void Session::end_as_lost()
{
    const Ending ending = lost_with_login(m_services.clock().now());
    m_left = ending.status;
    (void)end_job(m_services, m_run, m_job, ending);
    for (const std::string& line : farewell(m_run, m_job, ending, "")) {
        print_message(line);
    }
}

Cursor Session::cursor() const
{
    if (m_terminal.is_raw()) {
        return m_terminal.on_other_screen() ? Cursor::other_screen : Cursor::raw;
    }
    return m_printer.at_line_start() ? Cursor::line_start : Cursor::middle;
}

void Session::print_message(const std::string& text) const
{
    if (!m_options.quiet) {
        cli::print_message(text, cursor());
    }
}

/// While the terminal is raw, delays messages that the user need not see at once, so that they do
/// not disturb the program's screen.
void Session::note(const std::string& text)
{
    if (!m_terminal.is_raw()) {
        return print_message(text);
    }
    if (m_notes.size() < k_most_notes) {
        m_notes.push_back(text);
    }
}

void Session::print_notes()
{
    for (const std::string& text : std::exchange(m_notes, {})) {
        print_message(text);
    }
}

void Session::record_shown()
{
    const bool short_lived = m_ended && is_owner() && Clock::now() - m_begun < k_short_run;
    if (!short_lived) {
        m_shown.record();
    }
}

int Session::finish()
{
    const Ending& ending = m_ended->ending;
    m_stdin.return_unread(m_ended->stdin_read);
    m_terminal.leave();
    m_shown.wait_until_shown();
    record_shown();
    print_notes();
    if (ending.continues) {
        print_message(fmt::format("link {} is over ({}); the run continues in the next one",
                                  m_options.link.value, ending_text(ending, m_run.request)));
        return 0;
    }
    for (const std::string& line :
         farewell(m_run, m_job, ending, has_terminal() ? "" : m_ended->last_lines)) {
        print_message(line);
    }
    return ending.status;
}

} // namespace gpuq::cli
