// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client.h"

#include "log/log.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

/// The client side of `gpuq --host`: one process with one thread and one event loop. Its child is
/// ssh, started by the Transport, which runs `gpuq serve` on the login host.
///
/// A session runs one verb over any number of successive connections. Lifeline decides when to
/// connect, send a heartbeat or drop a connection; step() carries that out before each round of the
/// loop. Each connection passes through the stages of Connection: preparing (of later ones),
/// connecting (channel), marker found (marked), Hello received (hello). Until the first Hello
/// (m_was_live) an error ends the client; after it, lost connections are replaced, and a host that
/// requires an interactive login is waited for (m_login, client_login.cpp).
///
/// Invariants: output counts as shown only when it is written, and only then the host may discard
/// it (ClientOutput). Input and signals are kept until the host has confirmed them (ClientInput,
/// ClientSignals). So a new connection continues at the same offsets both ways. If the session
/// itself is gone, in_its_place() decides whether a new one can replace it without repeating side
/// effects.
///
/// The client ends by m_ending: exit (the verb has ended, and all output is written), left (the
/// user has left or closed the output) or error. After the latter two, no watch of this class has
/// an interest, so no other handler of the same round runs.
namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr int k_end_of_ssh_ms = 1000;
constexpr auto k_show_again = 1s;

std::chrono::nanoseconds time_of(clockid_t clock)
{
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

/// Total time this machine has been suspended since boot.
std::chrono::nanoseconds asleep()
{
    return time_of(CLOCK_BOOTTIME) - time_of(CLOCK_MONOTONIC);
}

Descriptor open_network()
{
    Descriptor made(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR |
                        RTMGRP_IPV6_ROUTE;
    // If this fails, nothing is received.
    (void)::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    return made;
}

bool may_read(int descriptor)
{
    const pid_t front = ::tcgetpgrp(descriptor);
    return front < 0 || front == ::getpgrp();
}

} // namespace

Client::Client(ClientOptions options, Transport& transport, UserInterface& ui)
    : m_options(std::move(options))
    , m_transport(transport)
    , m_ui(ui)
    , m_reconnect(m_options.pace, std::bit_cast<std::uint64_t>(m_options.random()))
    , m_network(open_network())
    , m_ssh(
          m_loop, [this] { return !m_was_live && !m_connection.marked && !m_transport.is_quiet(); },
          [this](std::string_view line) { m_ui.show_ssh(line); })
    , m_login_timer(m_loop, [this] { poll_login(); })
    , m_state_timer(m_loop, [this] { state_changed(); })
    , m_output(m_loop,
               {{{m_options.out, m_options.shown_as[0]}, {m_options.err, m_options.shown_as[1]}}},
               {[this](const frames::Taken& taken) { return send_frame(taken); },
                [this](std::size_t stream, int error) { on_closed_output(stream, error); }})
    , m_input(m_options.reads_input)
    , m_in_begin(::lseek(m_options.in, 0, SEEK_CUR))
    , m_forwards(m_loop, std::move(m_options.forwards),
                 {[this] { return has_stopped() ? nullptr : open_channel(); },
                  [this] { return m_following.has_value(); },
                  [this](const std::string& why) { m_ui.print_message("--forward: " + why); }})
{
    new_session();
    watch_all();
}

void Client::watch(std::function<EventLoop::Interest()> interest, void (Client::*handle)())
{
    m_loop.add([this, interest = std::move(
                          interest)] { return has_stopped() ? EventLoop::Interest{} : interest(); },
               [this, handle] { (this->*handle)(); });
}

void Client::watch_all()
{
    watch([this] { return EventLoop::to_read(m_ui.signals()); }, &Client::on_signals);
    watch([this] { return EventLoop::to_read(m_network.get()); }, &Client::on_network);
    watch([this] { return EventLoop::to_read(m_connection.preparing); }, &Client::connect);
    watch(
        [this] {
            const auto& channel = m_connection.channel;
            return EventLoop::to_read(channel ? channel->input() : -1);
        },
        &Client::on_connection);
    watch(
        [this] {
            const auto& channel = m_connection.channel;
            return channel ? EventLoop::to_write(channel->output(), channel->wants_to_write())
                           : EventLoop::Interest{};
        },
        &Client::send_input);
    watch(
        [this] {
            const bool reads = m_login && m_options.asks && m_login->has_keys;
            return EventLoop::to_read(m_options.in, reads && may_read(m_options.in));
        },
        &Client::on_login_keys);
    watch(
        [this] {
            const bool reads = !(m_login && m_options.asks) && m_was_live && m_input.wants_more();
            return EventLoop::to_read(m_options.in, reads && may_read(m_options.in));
        },
        &Client::on_input);
    watch(
        [this] {
            const pollfd questions = m_transport.questions();
            return EventLoop::Interest{questions.fd, questions.events};
        },
        &Client::on_question);
}

void Client::new_session()
{
    m_session.id = fmt::format("{:016x}{:016x}", std::bit_cast<std::uint64_t>(m_options.random()),
                               std::bit_cast<std::uint64_t>(m_options.random()));
    m_session.started = false;
    m_output.restart();
    m_signals.restart();
    m_forwards.clear();
    m_following.reset();
    m_ending.exit.reset();
}

Result<int> Client::run()
{
    while (!has_stopped() && !(m_ending.exit && m_output.is_all_written())) {
        step();
        if (!has_stopped()) {
            m_loop.run_once(time_to_wait());
        }
        if (Channel* const channel = open_channel()) {
            (void)channel->write_some(); // frames of streams and confirmations
        }
    }
    return finish();
}

Result<int> Client::finish()
{
    m_ui.take_terminal_back();
    if (m_ending.exit) {
        return_unread_input();
    }
    const bool was_open = is_open();
    if (was_open) {
        if (m_ending.exit) {
            m_output.confirm();
        }
        m_connection.channel->send(frames::Bye{});
        m_connection.channel->flush(k_end_of_ssh_ms / 2);
    }
    m_connection.channel.reset();
    m_transport.end(was_open ? k_end_of_ssh_ms : 0);
    if (m_ending.error) {
        return *std::move(m_ending.error);
    }
    return m_ending.left ? *m_ending.left : m_ending.exit->status;
}

/// Carries out the actions of the lifeline that are due.
void Client::step()
{
    if (only_shows_the_rest()) {
        return;
    }
    const Moment at = now();
    m_reconnect.slept(asleep(), at);
    if (is_silent() && m_transport.is_stuck(at)) {
        go_past_shared();
    }
    while (!has_stopped()) {
        switch (m_reconnect.step(at)) {
        case ReconnectPolicy::Do::nothing:
            return;
        case ReconnectPolicy::Do::connect:
            begin_attempt();
            break;
        case ReconnectPolicy::Do::beat:
            beat();
            break;
        case ReconnectPolicy::Do::drop:
            drop(at);
            break;
        }
    }
}

void Client::beat()
{
    if (send_frame(frames::Beat{m_beats + 1})) {
        ++m_beats;
    }
}

void Client::drop(Moment at)
{
    if (!m_was_live || m_reconnect.is_hopeless() || (!m_options.asks && m_reconnect.is_deaf())) {
        disconnect();
        return stop(no_answer());
    }
    // The shared connection may be the dead part: bypass it in every other attempt.
    m_sharing.hung = m_sharing.hung || !m_sharing.avoided;
    m_sharing.avoided = !m_sharing.avoided;
    log::info(log::Part::remote, "nothing was heard from the host: the connection is dropped");
    disconnect();
    m_reconnect.lost(at);
    state_changed();
}

/// Queues a frame and writes as much as the connection accepts; false if none is open.
bool Client::send_frame(const frames::Frame& frame)
{
    if (!is_open()) {
        return false;
    }
    m_connection.channel->send(frame);
    (void)m_connection.channel->write_some();
    return true;
}

void Client::begin_attempt()
{
    state_changed();
    m_connection = {};
    m_connection.preparing = m_was_live ? m_transport.prepare() : -1;
    if (m_connection.preparing < 0) {
        connect();
    }
}

void Client::connect()
{
    m_connection.preparing = -1;
    log::info(log::Part::remote, "connecting{}",
              m_sharing.avoided ? " without a shared connection (ControlMaster)" : "");
    const Attempt attempt = !m_was_live          ? Attempt::first
                            : m_reconnect.asks() ? Attempt::asked
                                                 : Attempt::again;
    const std::string first = first_bytes();
    auto streams = m_transport.connect(attempt, m_sharing.avoided, first);
    if (!streams) {
        return not_connected(attempt, std::move(streams).error());
    }
    m_outage.failure.clear();
    m_ssh.begin(std::move(streams->errors));
    Channel& channel = m_connection.channel.emplace(std::move(streams->link));
    channel.send_bytes(first, {});
    (void)channel.write_some();
}

/// An attempt fails on this machine, for lack of processes, descriptors or space: it may pass.
void Client::not_connected(Attempt attempt, Error error)
{
    if (attempt == Attempt::first) {
        return stop(std::move(error));
    }
    log::warning(log::Part::remote, "the attempt failed on this machine: {}", error.text);
    if (attempt == Attempt::asked) {
        return needs_user(std::move(error));
    }
    m_outage.failure = sanitised(error.text);
    m_reconnect.lost(now());
    state_changed();
}

/// Open, and also Start for a brief verb as long as no session is known.
std::string Client::first_bytes()
{
    std::string bytes = frames::encode(
        frames::Open{frames::k_version, frames::k_oldest_version, m_session.id,
                     m_output.received(0), m_output.received(1),
                     std::chrono::duration_cast<std::chrono::milliseconds>(m_options.pace.beat),
                     ++m_connections});
    if (!m_session.started) {
        m_options.start.size = m_ui.size().value_or(m_options.start.size);
        bytes += m_options.start.brief ? frames::encode(m_options.start) : "";
    }
    return bytes;
}

/// True once everything has been received and the connection has ended, but a slow reader has not
/// taken all of it yet.
bool Client::only_shows_the_rest() const
{
    return m_ending.exit && !m_connection.channel;
}

/// True while the current attempt has received no data.
bool Client::is_silent() const
{
    return m_connection.channel && !m_connection.marked && m_connection.greeting.text().empty();
}

/// Repeats the attempt without the shared connection.
void Client::go_past_shared()
{
    disconnect();
    m_sharing.avoided = m_sharing.hung = true;
    m_ui.print_message(fmt::format(
        "the shared connection to {} does not answer: connecting without it", m_options.host));
    begin_attempt();
}

void Client::disconnect()
{
    m_forwards.clear();
    m_connection.close();
    m_transport.end(0);
    m_ssh.close();
}

/// Handles the end of a connection that was not closed by this side: evaluates ssh's messages.
void Client::end_of_connection()
{
    const bool had_answered = m_connection.hello;
    m_forwards.clear();
    m_connection.close();
    const int status = m_transport.end(k_end_of_ssh_ms);
    m_ssh.read();
    m_ssh.close();
    log::info(log::Part::remote, "the connection ended with status {}: {}", status,
              last_message(m_ssh.text()));
    if (m_ending.exit) {
        return;
    }
    Verdict verdict = m_transport.classify({status, m_ssh.text(), m_connection.greeting.text()});
    if (had_answered) {
        verdict.what = m_reconnect.is_hopeless() ? Verdict::What::stop : Verdict::What::broken;
    } else if (verdict.what == Verdict::What::other_way) {
        return begin_attempt();
    } else if (verdict.what == Verdict::What::stop && m_was_live &&
               std::exchange(m_sharing.avoided, false)) {
        verdict.what = Verdict::What::broken; // retry with the user's own configuration
    }
    if (verdict.what == Verdict::What::stop || !m_was_live) {
        return stop(std::move(verdict.error));
    }
    if (verdict.what == Verdict::What::needs_user &&
        (m_sharing.hung || !std::exchange(m_sharing.avoided, false))) {
        return needs_user(std::move(verdict.error));
    }
    m_reconnect.lost(now());
    state_changed();
}

/// Error for a first attempt that timed out; such attempts cannot ask for a password. Or for a host
/// that is never heard after its first frame.
Error Client::no_answer() const
{
    if (m_was_live) {
        return fail(Error::Kind::unreachable, m_options.host + ": gpuq there does not respond");
    }
    const auto limit =
        std::chrono::duration_cast<std::chrono::seconds>(m_options.pace.first.value_or(Span{}));
    const std::string errors = last_message(m_ssh.text());
    const std::string message =
        errors.empty() ? last_message(m_connection.greeting.text()) : errors;
    return fail(Error::Kind::unreachable,
                fmt::format("{}: no answer within {} s{}: see whether `ssh {} true` comes back",
                            m_options.host, limit.count(),
                            message.empty() ? "" : " (" + message + ")", m_options.host));
}

void Client::stop(Error error)
{
    if (m_was_live && m_session.started) {
        error.text += m_following ? ". " + way_back() : "";
    }
    m_ui.show_state("");
    end_login();
    m_ending.error = std::move(error);
}

/// How to return to a session that shows a run or its log.
std::string Client::way_back() const
{
    if (!m_options.once_more.empty()) {
        return "Back to it: " + m_options.once_more;
    }
    return m_following->link == 0
               ? fmt::format("Back to it: {} logs -f {}", m_options.called, m_following->job)
               : fmt::format("Run {0} continues. Back to it: {1} attach {0}", m_following->job,
                             m_options.called);
}

void Client::leave(int status, std::string_view message)
{
    m_ui.show_state("");
    end_login();
    m_ui.take_terminal_back();
    if (!message.empty()) {
        m_ui.print_message(message);
    }
    m_ending.left = status;
}

/// The longest time until step() is called again.
std::optional<Span> Client::time_to_wait() const
{
    constexpr Span k_to_ask_again = 200ms; ///< interval for checking is_stuck()
    constexpr Span k_to_notice_sleep = 5s;
    if (only_shows_the_rest()) {
        return k_to_notice_sleep;
    }
    if (is_silent()) {
        return k_to_ask_again;
    }
    if (const auto next = m_reconnect.next()) {
        return std::clamp<Span>(*next - now(), Span{}, k_to_notice_sleep);
    }
    // An attempt without a time limit, or one that is due now.
    return m_connection.channel || m_login ? 1s : Span{};
}

void Client::on_network()
{
    std::array<char, 8192> buffer;
    while (::recv(m_network.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
    m_reconnect.moved(now());
}

void Client::on_connection()
{
    const auto bytes = m_connection.channel->read_some();
    if (bytes && !bytes->empty()) {
        on_bytes(*bytes);
    }
    if (!bytes && m_connection.channel && !has_stopped()) {
        end_of_connection();
    }
}

void Client::on_input()
{
    std::array<char, wire::k_piece> buffer;
    const ssize_t count = ::read(m_options.in, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (count <= 0) {
        // A terminal that hangs up also causes a signal.
        m_input.end();
        return send_input();
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    const bool interrupts = is_in_front() && has_interrupt(bytes);
    if (!is_open() && is_in_front()) {
        if (interrupts) {
            return on_interrupt();
        }
        m_reconnect.nudge(now());
    }
    m_input.add(bytes);
    send_input();
}

/// Scans everything that is typed, since a key sequence may have begun in bytes already sent.
bool Client::has_interrupt(std::string_view typed)
{
    bool found = false;
    while (const auto key = m_keys.take(typed)) {
        found = found || key->is_interrupt();
    }
    return found;
}

/// The user leaves; the verb's run continues.
void Client::on_interrupt()
{
    if (m_login && m_reconnect.asks()) {
        return cancel_login();
    }
    if (!m_session.started) {
        return leave(static_cast<int>(ExitStatus::interrupted), "");
    }
    leave(static_cast<int>(ExitStatus::interrupted),
          m_following ? "left. " + way_back()
                      : fmt::format("left; anything started on {} keeps running: {} ls",
                                    m_options.host, m_options.called));
}

void Client::send_input()
{
    if (!m_connection.channel) {
        return;
    }
    if (is_open() && m_session.started) {
        m_input.send(*m_connection.channel);
    }
    (void)m_connection.channel->write_some();
}

void Client::on_signals()
{
    while (!has_stopped()) {
        const auto number = m_ui.next_signal();
        if (!number) {
            break;
        }
        on_signal(*number);
    }
    if (!has_stopped() && m_ui.resized()) {
        on_resized();
    }
}

void Client::on_signal(int number)
{
    const auto& terminals = m_options.start.terminals;
    const bool terminal =
        std::any_of(terminals.begin(), terminals.end(), [](bool is) { return is; });
    if (number == SIGHUP || (terminal && number == SIGTERM)) {
        return leave(static_cast<int>(ExitStatus::detached), "");
    }
    const bool means_us = number != SIGUSR1 && number != SIGUSR2;
    if (!is_open() && means_us) {
        return number == SIGINT ? on_interrupt() : leave(128 + number, "");
    }
    m_signals.add(number);
    if (is_open()) {
        m_signals.send(*m_connection.channel);
        (void)m_connection.channel->write_some();
    }
    m_reconnect.nudge(now()); // check the connection soon, so that the user learns if it is dead
}

void Client::on_resized()
{
    if (m_login) {
        show_login();
    }
    if (const auto size = m_ui.size()) {
        send_frame(frames::Resize{*size, false});
    }
}

void Client::state_changed()
{
    m_state_timer.stop();
    if (!m_was_live) {
        return;
    }
    if (m_reconnect.state() == ReconnectPolicy::State::needs_user) {
        return m_reconnect.asks() && m_login ? show_login() : void();
    }
    if (m_reconnect.state() != ReconnectPolicy::State::reconnecting) {
        m_outage = {};
        return m_ui.show_state("");
    }
    m_outage.begun_at = m_outage.begun_at.value_or(now());
    m_ui.show_state(fmt::format("reconnecting ({}), shown up to byte {}{}{}",
                                std::max(1, m_reconnect.attempts()),
                                m_options.shown_before + m_output.written(),
                                m_outage.failure.empty() ? "" : ": ", m_outage.failure));
    m_state_timer.start_in(k_show_again); // the next attempt may be far away
}

} // namespace gpuq::remote
