// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client.h"

#include "core/user_name.h"
#include "io/socket_owner.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <span>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

/// The client side of `gpuq --host`: one process with one thread and one poll loop (wait()).
///
/// A session runs one verb over any number of successive connections. Lifeline decides when to
/// connect, send a heartbeat or drop a connection; this file carries that out. Each connection
/// passes through the stages: connecting (m_channel), marker found (m_marked), Hello received
/// (m_hello). Until the first Hello (m_was_live) an error ends the client; after it, lost
/// connections are replaced.
///
/// Output counts as shown only when it is written, and only then the host may discard it. Input is
/// kept until the host has confirmed it. So a new connection continues at the same offsets both
/// ways. If the session itself is gone, in_its_place() decides whether a new one can replace it
/// without repeating side effects. The client ends by m_exit (the verb has ended), m_left (the user
/// has left or closed the output) or m_error.
namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr int k_end_of_ssh_ms = 1000;
constexpr std::size_t k_most_ssh_words = 64 << 10;

Moment now()
{
    return std::chrono::steady_clock::now();
}

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
    if (made &&
        ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        made.reset();
    }
    return made;
}

bool may_read(int descriptor)
{
    const pid_t front = ::tcgetpgrp(descriptor);
    return front < 0 || front == ::getpgrp();
}

/// Opens the same pipe or terminal again, so that making it non-blocking does not affect other
/// processes. Empty if that is not possible.
Descriptor opened_again(int descriptor)
{
    struct stat facts {};
    if (::fstat(descriptor, &facts) != 0 || !(S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode))) {
        return Descriptor();
    }
    return Descriptor(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                             O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

std::uint64_t number_of(const std::array<unsigned char, 8>& bytes)
{
    std::uint64_t number = 0;
    for (const unsigned char byte : bytes) {
        number = number << 8 | byte;
    }
    return number;
}

} // namespace

Client::Client(ClientOptions options, Transport& transport, Person& person)
    : m_options(std::move(options))
    , m_transport(transport)
    , m_person(person)
    , m_lifeline(m_options.pace, number_of(m_options.random()))
    , m_network(open_network())
{
    new_session();
    m_own = {opened_again(m_options.out), opened_again(m_options.err)};
    m_input_over = !m_options.reads_input;
}

void Client::new_session()
{
    m_session =
        fmt::format("{:016x}{:016x}", number_of(m_options.random()), number_of(m_options.random()));
    m_started = false;
    for (Shown& shown : m_shown) {
        // The replacement is started from the written offsets and sends the rest again.
        shown.waiting = {};
        shown.received = 0;
        shown.settled = shown.settled ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    m_told = {};
    m_input = {};
    m_input_end_sent = false;
    // Unconfirmed signals are for the replacement.
    m_signals.erase(m_signals.begin(),
                    m_signals.begin() + static_cast<std::ptrdiff_t>(m_signals_taken));
    m_signals_sent = m_signals_taken = 0;
    m_streams.clear();
    m_following.reset();
    m_exit.reset();
}

Result<int> Client::run()
{
    while (!m_left && !m_error && !(m_exit && all_written())) {
        on_timers();
        if (m_left || m_error) {
            break;
        }
        wait();
    }
    m_person.take_terminal_back();
    if (is_open()) {
        if (m_exit) {
            m_tell_at = Moment{};
            send_taken();
        }
        m_channel->send(frames::Bye{});
        m_channel->flush(k_end_of_ssh_ms / 2);
    }
    const bool was_open = is_open();
    m_channel.reset();
    m_transport.end(was_open ? k_end_of_ssh_ms : 0);
    if (m_error) {
        return *std::move(m_error);
    }
    return m_left ? *m_left : m_exit->status;
}

void Client::on_timers()
{
    const Moment at = now();
    m_lifeline.slept(asleep(), at);
    if (is_silent() && m_transport.is_stuck(at)) {
        go_past_shared();
    }
    if (m_login) {
        on_login_timer(at);
    }
    while (!m_error) {
        switch (m_lifeline.step(at)) {
        case Lifeline::Do::nothing:
            send_taken();
            return;
        case Lifeline::Do::connect:
            connect();
            break;
        case Lifeline::Do::beat:
            if (is_open()) {
                m_channel->send(frames::Beat{++m_beats});
                (void)m_channel->write_some();
            }
            break;
        case Lifeline::Do::drop:
            if (!m_was_live) {
                disconnect();
                return stop(no_answer());
            }
            // The shared connection may be the dead part: bypass it in every other attempt.
            m_shared_hung = m_shared_hung || !m_alone;
            m_alone = !m_alone;
            disconnect();
            m_lifeline.lost(at);
            state_changed();
            break;
        }
    }
}

void Client::connect()
{
    state_changed();
    m_ssh_words.clear();
    m_ssh_line.clear();
    m_greeting = {};
    m_decoder = {};
    m_marked = false;
    m_hello = false;
    const Attempt attempt = !m_was_live         ? Attempt::first
                            : m_lifeline.asks() ? Attempt::asked
                                                : Attempt::again;
    const std::string first = first_bytes();
    auto streams = m_transport.connect(attempt, m_alone, first);
    if (!streams) {
        return stop(std::move(streams).error());
    }
    m_channel.emplace(std::move(streams->in), std::move(streams->out));
    m_errors = std::move(streams->errors);
    set_nonblocking(m_errors.get());
    m_channel->send_bytes(first, {});
    (void)m_channel->write_some();
}

/// Open, and also Start for a brief verb as long as no session is known.
std::string Client::first_bytes()
{
    std::string bytes = frames::encode(
        frames::Open{frames::k_version, frames::k_oldest_version, m_session, m_shown[0].received,
                     m_shown[1].received,
                     std::chrono::duration_cast<std::chrono::milliseconds>(m_options.pace.beat),
                     ++m_connections});
    if (!m_started) {
        m_options.start.size = m_person.size().value_or(m_options.start.size);
        bytes += m_options.start.brief ? frames::encode(m_options.start) : "";
    }
    return bytes;
}

/// True while the current attempt has received no data.
bool Client::is_silent() const
{
    return m_channel && !m_marked && m_greeting.text().empty();
}

/// Repeats the attempt without the shared connection.
void Client::go_past_shared()
{
    disconnect();
    m_alone = m_shared_hung = true;
    m_person.say(fmt::format("the shared connection to {} does not answer: connecting without it",
                             m_options.host));
    connect();
}

void Client::disconnect()
{
    m_streams.clear();
    m_channel.reset();
    m_hello = false;
    m_transport.end(0);
    m_errors.reset();
}

/// Handles the end of a connection that was not closed by this side: evaluates ssh's messages.
void Client::end_of_connection()
{
    const bool had_answered = m_hello;
    m_streams.clear();
    m_channel.reset();
    m_hello = false;
    const int status = m_transport.end(k_end_of_ssh_ms);
    on_ssh_words();
    m_errors.reset();
    if (m_exit) { // everything was received; no need to reconnect
        return;
    }
    Verdict verdict = m_transport.judge({status, m_ssh_words, m_greeting.text()});
    if (had_answered) {
        verdict.what = Verdict::What::broken;
    } else if (verdict.what == Verdict::What::stop && m_was_live && std::exchange(m_alone, false)) {
        verdict.what = Verdict::What::broken; // retry with the user's own configuration
    }
    if (verdict.what == Verdict::What::stop || !m_was_live) {
        return stop(std::move(verdict.error));
    }
    if (verdict.what == Verdict::What::needs_user) {
        if (m_shared_hung || !std::exchange(m_alone, false)) {
            return needs_user(std::move(verdict.error));
        }
    }
    m_lifeline.lost(now());
    state_changed();
}

/// Error for a first attempt that timed out; such attempts cannot ask for a password.
Error Client::no_answer() const
{
    const auto limit =
        std::chrono::duration_cast<std::chrono::seconds>(m_options.pace.first.value_or(Span{}));
    const std::string errors = last_words(m_ssh_words);
    const std::string words = errors.empty() ? last_words(m_greeting.text()) : errors;
    return fail(Error::Kind::unreachable,
                fmt::format("{}: no answer within {} s{}: see whether `ssh {} true` comes back",
                            m_options.host, limit.count(), words.empty() ? "" : " (" + words + ")",
                            m_options.host));
}

void Client::stop(Error error)
{
    if (m_was_live && m_started) {
        error.text += m_following ? ". " + way_back() : "";
    }
    m_person.show_state("");
    end_login();
    m_error = std::move(error);
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

void Client::leave(int status, std::string_view words)
{
    m_person.show_state("");
    end_login();
    m_person.take_terminal_back();
    if (!words.empty()) {
        m_person.say(words);
    }
    m_left = status;
}

void Client::wait()
{
    struct Source {
        int descriptor;
        short events;
        void (Client::*handle)();
    };
    std::vector<Source> sources;
    const auto listen = [&](bool wanted, int descriptor, short events, void (Client::*handle)()) {
        if (wanted && descriptor >= 0) {
            sources.push_back({descriptor, events, handle});
        }
    };
    const bool terminal_ready = !is_in_front() || m_was_live;
    listen(true, m_person.signals(), POLLIN, &Client::on_signals);
    listen(true, m_network.get(), POLLIN, &Client::on_network);
    listen(static_cast<bool>(m_errors), m_errors.get(), POLLIN, &Client::on_ssh_words);
    listen(m_channel.has_value(), m_channel ? m_channel->input() : -1, POLLIN,
           &Client::on_connection);
    listen(m_channel && m_channel->waiting() > 0, m_channel ? m_channel->output() : -1, POLLOUT,
           &Client::send_input);
    if (m_login && m_options.asks) {
        listen(m_login->has_keys && may_read(m_options.in), m_options.in, POLLIN,
               &Client::on_login_keys);
    } else {
        listen(reads_typed() && terminal_ready && may_read(m_options.in), m_options.in, POLLIN,
               &Client::on_input);
    }
    listen(true, m_transport.questions().fd, m_transport.questions().events, &Client::on_question);
    listen(m_shown[0].waiting.size() > 0, m_options.out, POLLOUT, &Client::write_output);
    listen(m_shown[1].waiting.size() > 0, m_options.err, POLLOUT, &Client::write_output);

    std::vector<pollfd> waits;
    waits.reserve(sources.size());
    for (const Source& source : sources) {
        waits.push_back({source.descriptor, source.events, 0});
    }
    const std::size_t visitors = waits.size();
    for (const auto& listeners : m_options.forwards) {
        for (const Descriptor& each : listeners) {
            waits.push_back({takes_visitors() ? each.get() : -1, POLLIN, 0});
        }
    }
    const std::size_t streams = waits.size();
    if (is_open()) {
        m_streams.listen(*m_channel, waits);
    }
    if (::poll(waits.data(), waits.size(), milliseconds_to_wait()) <= 0) {
        return;
    }
    for (std::size_t i = 0; i < sources.size() && !m_left && !m_error; ++i) {
        if (waits[i].revents != 0) {
            (this->*sources[i].handle)();
        }
    }
    std::size_t i = visitors;
    for (std::uint32_t forward = 0; forward < m_options.forwards.size(); ++forward) {
        for (const Descriptor& each : m_options.forwards[forward]) {
            if (waits[i++].revents != 0 && takes_visitors()) {
                on_visitor(forward, each.get());
            }
        }
    }
    if (is_open() && streams < waits.size()) {
        m_streams.carry(*m_channel, std::span(waits).subspan(streams));
        (void)m_channel->write_some();
    }
}

void Client::on_visitor(std::uint32_t forward, int listener)
{
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
        return; // the peer has already closed it
    }
    const auto user = user_of_client(socket.get());
    if (user != ::geteuid()) { // any local user can connect to the port
        return say_of_streams(
            fmt::format("refused a connection from {}",
                        user ? "user " + user_name(*user) : "a process of unknown user"));
    }
    const std::uint32_t stream = m_next_stream++;
    m_streams.begin(stream);
    m_streams.give(stream, std::move(socket));
    m_channel->send(frames::Dial{stream, forward});
    (void)m_channel->write_some();
}

/// Prints each reason only once, since browsers retry, and only for connections accepted here.
void Client::on_stream_gone(const frames::StreamGone& gone)
{
    const bool was_here = m_streams.has(gone.stream);
    m_streams.on_gone(gone.stream);
    if (was_here && !gone.why.empty()) {
        say_of_streams(gone.why);
    }
}

void Client::say_of_streams(const std::string& why)
{
    if (why != m_said_of_streams) {
        m_said_of_streams = why;
        m_person.say(fmt::format("--forward: {}", peer_text(why)));
    }
}

int Client::milliseconds_to_wait() const
{
    constexpr int k_to_ask_again = 200; ///< interval for checking is_stuck()
    if (is_silent()) {
        return k_to_ask_again;
    }
    std::optional<Moment> next = m_lifeline.next();
    if (m_login && m_lifeline.state() == Lifeline::State::needs_user &&
        (!next || m_login->check_at < *next)) {
        next = std::max(m_login->check_at, now() + (m_channel ? 1s : 0s));
    }
    if (m_tell_at && is_open() && (!next || *m_tell_at < *next)) {
        next = m_tell_at;
    }
    if (!next) {
        // An attempt without a time limit, or one that is due now.
        return m_channel ? 1000 : 0;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 5000));
}

void Client::on_network()
{
    std::array<char, 8192> buffer;
    while (::recv(m_network.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
    m_lifeline.moved(now());
}

void Client::on_ssh_words()
{
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while (m_errors && (count = ::read(m_errors.get(), buffer.data(), buffer.size())) > 0) {
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
        if (m_ssh_words.size() < k_most_ssh_words) {
            m_ssh_words += bytes;
        }
        if (m_was_live || m_marked || m_transport.is_quiet()) {
            continue;
        }
        m_ssh_line += bytes;
        for (std::size_t end = 0; (end = m_ssh_line.find('\n')) != std::string::npos;) {
            if (++m_ssh_lines <= k_most_lines) {
                m_person.show_ssh(std::string_view(m_ssh_line).substr(0, end));
            }
            m_ssh_line.erase(0, end + 1);
        }
        m_ssh_line.resize(std::min(m_ssh_line.size(), k_most_ssh_words));
    }
    if (count == 0) {
        m_errors.reset();
    }
}

void Client::on_connection()
{
    if (!m_channel) {
        return;
    }
    const auto bytes = m_channel->read_some();
    if (bytes && !bytes->empty()) {
        on_bytes(*bytes);
    }
    write_output();
    if (!bytes && m_channel && !m_left && !m_error) {
        end_of_connection();
    }
}

void Client::on_bytes(std::string_view bytes)
{
    const auto strange = [&](const Error& error) {
        const std::string words = last_words(m_greeting.text());
        stop(fail(Error::Kind::internal,
                  fmt::format("{}: {}{}", sanitised(m_options.host), error.text,
                              words.empty() || m_marked ? "" : ": " + words)));
    };
    std::string behind_marker;
    if (!m_marked) {
        auto rest = m_greeting.feed(bytes);
        if (!rest) {
            return strange(rest.error());
        }
        if (!*rest) {
            return;
        }
        m_marked = true;
        behind_marker = **std::move(rest);
        bytes = behind_marker;
    }
    if (m_hello) {
        m_lifeline.heard(now());
    }
    while (m_channel && !m_left && !m_error) {
        auto came = m_decoder.take(bytes);
        if (!came) {
            return strange(came.error());
        }
        if (const auto* output = std::get_if<frames::OutputBytes>(&*came)) {
            on_output(*output);
        } else if (auto* frame = std::get_if<frames::Frame>(&*came)) {
            on_frame(std::move(*frame));
        } else {
            return;
        }
    }
}

void Client::nonsense(std::string_view what)
{
    stop(fail(Error::Kind::internal,
              fmt::format("protocol error from gpuq on {}: {}", m_options.host, what)));
}

/// True for a stream frame whose number was never assigned by this client.
bool Client::is_unknown_stream(const frames::Frame& frame) const
{
    return std::visit(
        [&](const auto& each) {
            if constexpr (requires { each.stream + 1U; }) {
                return each.stream >= m_next_stream;
            }
            return false;
        },
        frame);
}

void Client::on_frame(frames::Frame&& frame)
{
    if (const auto fault = fault_in(frame, Sender::server)) {
        return nonsense(*fault);
    }
    if (const auto* hello = std::get_if<frames::Hello>(&frame)) {
        return m_hello ? nonsense("duplicate Hello") : on_hello(*hello);
    }
    if (const auto* failure = std::get_if<frames::Failure>(&frame)) {
        return stop(
            fail(failure->kind, fmt::format("{}: {}", m_options.host, peer_text(failure->text))));
    }
    if (!m_hello) {
        return nonsense("expected Hello first");
    }
    if (is_unknown_stream(frame)) {
        return nonsense("unexpected connection");
    }
    if (const auto* output = std::get_if<frames::Output>(&frame)) {
        on_output({output->stream, output->offset, output->bytes});
    } else if (const auto* taken = std::get_if<frames::InputTaken>(&frame)) {
        if (!m_input.confirm(taken->offset)) {
            return nonsense("acknowledged input that was not sent");
        }
        m_lifeline.useful();
        m_input_limit = taken->offset + std::min(taken->room, frames::k_input_room);
        send_input();
    } else if (const auto* signals = std::get_if<frames::SignalTaken>(&frame)) {
        if (signals->count > m_signals_sent) {
            return nonsense("acknowledged signals that were not sent");
        }
        m_signals_taken = std::max(m_signals_taken, static_cast<std::size_t>(signals->count));
    } else if (const auto* following = std::get_if<frames::Following>(&frame)) {
        m_following = *following;
    } else if (const auto* target = std::get_if<frames::SshTarget>(&frame)) {
        if (!m_options.on_ssh_target) {
            return nonsense("unexpected ssh host");
        }
        m_options.on_ssh_target(*target);
    } else if (const auto* beat = std::get_if<frames::Beat>(&frame)) {
        if (beat->number > m_beats) {
            return nonsense("unexpected heartbeat reply");
        }
    } else if (const auto* bytes = std::get_if<frames::StreamBytes>(&frame)) {
        m_lifeline.useful();
        if (!m_streams.on_bytes(*m_channel, *bytes)) {
            return nonsense("a stream exceeds its window");
        }
        (void)m_channel->write_some();
    } else if (const auto* more = std::get_if<frames::StreamTaken>(&frame)) {
        m_streams.on_taken(*more);
    } else if (const auto* last = std::get_if<frames::StreamEnd>(&frame)) {
        m_streams.on_end(last->stream);
    } else if (const auto* gone = std::get_if<frames::StreamGone>(&frame)) {
        on_stream_gone(*gone);
    } else if (const auto* exit = std::get_if<frames::Exit>(&frame)) {
        if (exit->out != m_shown[0].received || exit->err != m_shown[1].received) {
            return nonsense("exit before all output has arrived");
        }
        m_exit = *exit;
        show_the_rest();
    }
}

void Client::on_hello(const frames::Hello& hello)
{
    m_hello = true;
    m_other_host = hello.host;
    if (!m_options.forwards.empty() && hello.version < frames::k_version_of_forwards) {
        return stop(fail(
            Error::Kind::usage,
            fmt::format("gpuq on {} is too old for --forward: install a newer version on that host",
                        m_options.host)));
    }
    if (!hello.known && m_started) {
        auto start = m_options.in_its_place
                         ? m_options.in_its_place({m_following, m_shown[0].written(),
                                                   m_shown[1].written(), hello.host})
                         : Result<frames::Start>(fail(Error::Kind::lost, "the session is gone"));
        if (!start) {
            return stop(std::move(start).error());
        }
        m_options.start = *std::move(start);
        disconnect();
        new_session();
        m_input_over = !m_options.start.raw;
        m_lifeline.lost(now());
        return m_lifeline.nudge(now());
    }
    if (hello.known) {
        if (!m_input.send_from(hello.input) || !m_input.confirm(hello.input)) {
            return stop(fail(
                Error::Kind::internal,
                fmt::format("protocol error from gpuq on {}: acknowledged input that was not sent",
                            m_options.host)));
        }
        if (hello.version < frames::k_version_of_signals) { // this version cannot report which ones
                                                            // it has received
            m_signals_taken = m_signals.size();
        } else if (hello.signals <= m_signals_sent) {
            m_signals_taken = static_cast<std::size_t>(hello.signals);
        } else {
            return nonsense("acknowledged signals that were not sent");
        }
        m_signals_sent = m_signals_taken;
        m_started = true;
    } else {
        if (m_options.start.brief) { // already sent with Open; the next frame confirms it
            m_channel->send(frames::Beat{++m_beats});
        } else {
            m_options.start.size = m_person.size().value_or(m_options.start.size);
            m_channel->send(m_options.start);
        }
        m_started = true;
        (void)m_input.send_from(0);
    }
    m_input_limit = hello.input + std::min(hello.room, frames::k_input_room);
    m_input_end_sent = false;
    live();
}

void Client::live()
{
    const bool again = m_was_live;
    m_was_live = true;
    m_shared_hung = false;
    m_lifeline.connected(now());
    end_login();
    state_changed();
    if (is_in_front()) {
        m_person.lend_terminal();
    }
    if (const auto size = m_person.size(); again && size) {
        m_channel->send(frames::Resize{*size, is_in_front()});
    }
    send_signals();
    send_input();
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
        m_input_over = true;
        return send_input();
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    const bool interrupts = is_in_front() && has_interrupt(bytes);
    if (!is_open() && is_in_front()) {
        if (interrupts) {
            return on_interrupt();
        }
        m_lifeline.nudge(now());
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
    if (m_login && m_lifeline.asks()) {
        return cancel_login();
    }
    if (!m_started) {
        return leave(static_cast<int>(ExitStatus::interrupted), "");
    }
    leave(static_cast<int>(ExitStatus::interrupted),
          m_following ? "left. " + way_back()
                      : fmt::format("left; anything started on {} keeps running: {} ls",
                                    m_options.host, m_options.called));
}

void Client::send_input()
{
    if (!is_open() || !m_started) {
        if (m_channel) {
            (void)m_channel->write_some();
        }
        return;
    }
    while (!m_input.all_sent() && m_input.sent() < m_input_limit && !m_channel->is_full()) {
        const std::uint64_t offset = m_input.sent();
        m_channel->send(frames::Input{offset, std::string(m_input.send(std::min<std::uint64_t>(
                                                  wire::k_piece, m_input_limit - offset)))});
    }
    if (m_input_over && m_input.all_sent() && !m_input_end_sent) {
        m_input_end_sent = true;
        m_channel->send(frames::InputEnd{m_input.end()});
    }
    (void)m_channel->write_some();
}

void Client::on_signals()
{
    while (const auto number = m_person.next_signal()) {
        const bool terminal =
            std::any_of(m_options.start.terminals.begin(), m_options.start.terminals.end(),
                        [](bool is) { return is; });
        if (*number == SIGHUP || (terminal && *number == SIGTERM)) {
            return leave(static_cast<int>(ExitStatus::detached), "");
        }
        const bool means_us = *number != SIGUSR1 && *number != SIGUSR2;
        if (!is_open() && means_us) {
            if (*number == SIGINT) {
                return on_interrupt();
            }
            return leave(128 + *number, "");
        }
        m_signals.push_back(*number);
        if (is_open()) {
            send_signals();
        }
        m_lifeline.nudge(now()); // check the connection soon, so that the user learns if it is dead
    }
    if (m_person.resized()) {
        if (m_login) {
            show_login();
        }
        if (const auto size = m_person.size(); size && is_open()) {
            m_channel->send(frames::Resize{*size, false});
            (void)m_channel->write_some();
        }
    }
}

/// Also resends signals that may have been lost with a connection. They are numbered, so that each
/// is received once.
void Client::send_signals()
{
    while (m_signals_sent < m_signals.size()) {
        const int number = m_signals[m_signals_sent];
        m_channel->send(frames::Signal{number, ++m_signals_sent});
    }
    (void)m_channel->write_some();
}

void Client::state_changed()
{
    if (!m_was_live) {
        return;
    }
    if (m_lifeline.state() == Lifeline::State::needs_user) {
        return m_lifeline.asks() && m_login ? show_login() : void();
    }
    if (m_lifeline.state() != Lifeline::State::reconnecting) {
        m_lost_at.reset();
        return m_person.show_state("");
    }
    if (!m_lost_at) {
        m_lost_at = now();
    }
    m_person.show_state(
        fmt::format("reconnecting ({}), shown up to byte {}", std::max(1, m_lifeline.attempts()),
                    m_options.shown_before + m_shown[0].written() + m_shown[1].written()));
}

} // namespace gpuq::remote
