// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/holder.h"

#include "io/signal_descriptor.h"
#include "remote/peer_data.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <variant>

/// The session process on the login host: one thread with one event loop. Processes: the front (a
/// child of sshd) passes a connection here and waits; the verb is a child of this process, and with
/// --forward `gpuq connect --dial` another.
///
/// The verb is started once, by the first Start, and is known as HeldVerb from the beginning: its
/// parts watch nothing until it is started. Connections come and go (m_connection): a new one
/// replaces the current one, unless Open::connection shows that it is older. A connection is new,
/// then opened (Open received), then has been sent Exit.
///
/// Invariants: output is kept until the client has confirmed it (VerbOutput), input is taken once
/// (VerbInput), each signal is delivered once (m_signals_taken). All offsets are those of the
/// session, so a new connection continues where the previous one broke.
///
/// Order in a round: the end of children first, since reading output afterwards then finds its end;
/// then output, facts and input of the verb, the relay, the connection, and at last the listener,
/// since its new connection replaces the current one. Output is sent after all of them, once.
///
/// Without a connection for patience(), or after Bye, the verb is hung up: HUP, then TERM, then
/// KILL. The process ends when the verb has ended and the client has everything or has been given
/// up (m_left), or when there is no verb and no connection.
namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr Span k_least_silence = 20s;
constexpr auto k_most_patience = std::chrono::hours{24 * 7};
constexpr auto k_for_the_end = 10min;
constexpr auto k_for_a_brief_one = 3s; ///< for one whose connection was cut off at its end
/// Limit of queued frames for a client that does not read.
constexpr std::size_t k_most_waiting = 4 << 20;

Error protocol_error(const char* text)
{
    return fail(Error::Kind::internal, text);
}

} // namespace

Holder::Holder(std::string program, Identity identity, Descriptor listener,
               std::function<std::optional<Handed>(int listener)> accept)
    : m_program(std::move(program))
    , m_identity(std::move(identity))
    , m_listener(std::move(listener))
    , m_accept(std::move(accept))
    , m_signals(block_and_report({SIGCHLD}))
    , m_children(m_loop.watch([this] { return EventLoop::to_read(m_signals.get()); },
                              [this] { on_children(); }))
    , m_silence_timer(m_loop, [this] { drop(); })
    , m_alone_timer(m_loop, [this] { on_alone(); })
    , m_verb(m_loop, [this](const frames::Frame& frame) { return send_frame(frame); })
    , m_relay(m_loop, [this] { return channel(); })
{
    watch_connection();
}

void Holder::watch_connection()
{
    m_loop.add([this] { return EventLoop::to_read(m_connection ? m_connection->front.get() : -1); },
               [this] { drop(); });
    m_loop.add(
        [this] { return EventLoop::to_read(m_connection ? m_connection->channel.input() : -1); },
        [this] { on_readable(); });
    m_loop.add(
        [this] {
            return m_connection ? EventLoop::to_write(m_connection->channel.output(),
                                                      m_connection->channel.waiting() > 0)
                                : EventLoop::Interest{};
        },
        [this] {
            if (!m_connection->channel.write_some()) {
                drop();
            }
        });
    m_loop.add([this] { return EventLoop::to_read(m_listener.get()); },
               [this] {
                   if (auto handed = m_accept(m_listener.get())) {
                       take(*std::move(handed));
                   }
               });
}

void Holder::run(Handed first)
{
    take(std::move(first));
    while (!is_over()) {
        schedule_alone();
        m_loop.run_once();
        send_output();
    }
    if (m_connection) {
        m_connection->channel.flush(1000);
    }
}

/// True when nothing runs and no client can still fetch data.
bool Holder::is_over() const
{
    if (!m_verb.is_started()) {
        return m_failed || !m_connection;
    }
    return m_verb.status() && m_left;
}

std::string_view without_repeated(std::string_view bytes, std::size_t& repeated)
{
    const std::size_t count = std::min(repeated, bytes.size());
    repeated -= count;
    return bytes.substr(count);
}

/// A connection that was delayed, e.g. in a frozen shared connection, must not replace a newer one.
bool Holder::is_late(const Handed& handed) const
{
    frames::Decoder decoder;
    decoder.feed(handed.read);
    const auto first = decoder.next();
    const auto* const open = first && *first ? std::get_if<frames::Open>(&**first) : nullptr;
    return open != nullptr && open->connection < m_newest;
}

void Holder::take(Handed handed)
{
    if (is_late(handed)) {
        return;
    }
    drop();
    m_connection.emplace(Connection{Channel(std::move(handed.in), std::move(handed.out)),
                                    std::move(handed.front), handed.repeated});
    m_connection->decoder.feed(handed.read);
    m_alone_since.reset();
    on_frames();
}

void Holder::drop()
{
    m_connection.reset();
    m_silence_timer.stop();
    m_relay.client_left();
    if (!m_alone_since) {
        m_alone_since = now();
    }
}

void Holder::on_readable()
{
    if (const auto bytes = m_connection->channel.read_some()) {
        m_connection->decoder.feed(without_repeated(*bytes, m_connection->repeated));
        on_frames();
    } else {
        drop();
    }
}

void Holder::on_frames()
{
    m_silence_timer.start_in(m_silence);
    while (m_connection) {
        auto frame = m_connection->decoder.next();
        if (!frame) {
            return refuse(std::move(frame).error());
        }
        if (!*frame) {
            break;
        }
        on_frame(std::move(**frame));
        if (m_connection && m_connection->channel.waiting() > k_most_waiting) {
            return drop();
        }
    }
    send_output();
}

void Holder::on_frame(frames::Frame&& frame)
{
    if (const auto fault = fault_in(frame, Sender::client)) {
        return refuse(fail(Error::Kind::internal, std::string(*fault)));
    }
    if (const auto* open = std::get_if<frames::Open>(&frame)) {
        return on_open(*open);
    }
    if (!m_connection->opened) {
        return refuse(protocol_error("expected Open first"));
    }
    if (const auto* start = std::get_if<frames::Start>(&frame)) {
        return on_start(*start);
    }
    m_confirmed = true;
    on_other_frame(frame);
}

void Holder::on_other_frame(const frames::Frame& frame)
{
    if (const auto* taken = std::get_if<frames::Taken>(&frame)) {
        on_taken(*taken);
    } else if (const auto* input = std::get_if<frames::Input>(&frame)) {
        refuse_if_failed(m_verb.take(*input));
    } else if (const auto* end = std::get_if<frames::InputEnd>(&frame)) {
        m_verb.input().end(*end);
    } else if (const auto* resize = std::get_if<frames::Resize>(&frame)) {
        m_verb.resize(*resize);
    } else if (const auto* signal = std::get_if<frames::Signal>(&frame)) {
        on_signal(*signal);
    } else if (const auto* beat = std::get_if<frames::Beat>(&frame)) {
        send_frame(*beat);
    } else if (const auto* dial = std::get_if<frames::Dial>(&frame)) {
        refuse_if_failed(m_relay.dial(*dial, m_verb.facts().following()));
    } else if (const auto stream = stream_of(frame)) {
        m_relay.pass_on(*stream, frame);
    } else if (std::holds_alternative<frames::Bye>(frame)) {
        on_bye();
    }
}

void Holder::on_bye()
{
    m_left = true;
    drop();
    m_verb.hang_up();
}

frames::Hello Holder::hello() const
{
    return {frames::k_version,      m_identity.version,    m_identity.host, m_verb.is_started(),
            m_verb.input().taken(), m_verb.input().room(), m_signals_taken};
}

void Holder::on_open(const frames::Open& open)
{
    if (m_connection->opened) {
        return refuse(protocol_error("duplicate Open"));
    }
    m_connection->opened = true;
    m_newest = open.connection;
    m_silence = std::max<Span>(k_least_silence, 4 * open.beat);
    m_silence_timer.start_in(m_silence);
    if (!m_verb.is_started()) { // the front has already sent Hello; Start follows
        return;
    }
    send_frame(hello());
    if (!m_verb.output().send_from({open.out, open.err})) {
        return refuse(protocol_error("the requested output is no longer available"));
    }
    m_verb.input().confirmed_by_hello();
    m_verb.facts().repeat();
}

void Holder::on_start(const frames::Start& start)
{
    if (m_verb.is_started()) {
        return; // only once per session
    }
    if (auto started = m_verb.start(m_program, start); !started) {
        m_failed = true;
        return refuse(std::move(started).error());
    }
    if (!start.forwards.empty()) {
        m_relay.begin(m_program, start);
    }
    m_patience = std::min<std::chrono::seconds>(start.patience, k_most_patience);
    m_brief = start.brief;
    m_confirmed = !start.brief;
}

void Holder::on_taken(const frames::Taken& taken)
{
    // The client can confirm only bytes that have left the channel.
    if (!m_verb.output().confirm({taken.out, taken.err}, m_connection->channel.borrowed())) {
        return refuse(protocol_error("acknowledged output that was not sent"));
    }
    m_verb.facts().confirmed();
}

void Holder::on_children()
{
    signalfd_siginfo info{};
    while (::read(m_signals.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        m_relay.on_child(pid);
        if (m_verb.on_child(pid, status) && m_alone_since && m_verb.is_hung_up()) {
            m_left = true;
        }
    }
}

/// Sends as much output as the connection accepts, then Exit.
void Holder::send_output()
{
    if (!m_connection || !m_connection->opened || !m_verb.is_started()) {
        return;
    }
    Channel& channel = m_connection->channel;
    (void)channel.write_some();
    // With active streams the channel may never be empty.
    m_verb.output().send(channel, m_relay.is_active());
    if (m_verb.status() && !m_connection->exit_sent && m_verb.output().is_all_sent()) {
        m_connection->exit_sent = true;
        const auto ends = m_verb.output().ends();
        // Also if nothing has arrived: the client may have sent some.
        channel.send(frames::InputRead{m_verb.input_read()});
        channel.send(frames::Exit{*m_verb.status(), ends[0], ends[1]});
    }
    const bool works = channel.waiting() == 0 || channel.write_some();
    const bool is_done = m_brief && m_connection->exit_sent && channel.waiting() == 0;
    if (!works || is_done) {
        drop();
    }
}

/// Queues a frame for the client; false if no connection is open.
bool Holder::send_frame(const frames::Frame& frame)
{
    if (!m_connection || !m_connection->opened) {
        return false;
    }
    m_connection->channel.send(frame);
    return true;
}

void Holder::refuse(Error error)
{
    if (m_connection) {
        m_connection->channel.send(frames::Failure{error.kind, std::move(error.text)});
        m_connection->channel.flush(200);
    }
    drop();
}

void Holder::refuse_if_failed(Result<void> done)
{
    if (!done) {
        refuse(std::move(done).error());
    }
}

/// Each signal is delivered once: a client that reconnects repeats unconfirmed ones.
void Holder::on_signal(const frames::Signal& signal)
{
    if (signal.place > m_signals_taken + 1) {
        return refuse(protocol_error("signal out of order"));
    }
    if (signal.place <= m_signals_taken) {
        return;
    }
    constexpr std::array k_allowed = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    if (std::find(k_allowed.begin(), k_allowed.end(), signal.number) != k_allowed.end()) {
        m_verb.signal(signal.number);
    }
    m_signals_taken = signal.place;
    send_frame(frames::SignalTaken{m_signals_taken});
}

/// How long to wait for the client. If at most the Exit frame is missing, a long wait is not
/// justified.
std::chrono::seconds Holder::patience() const
{
    const bool ended = m_verb.status().has_value();
    if (!m_confirmed || (m_brief && ended)) {
        return ended ? k_for_a_brief_one : 0s;
    }
    const bool only_the_end = ended && m_verb.output().is_empty();
    return only_the_end ? std::min<std::chrono::seconds>(m_patience, k_for_the_end) : m_patience;
}

void Holder::schedule_alone()
{
    if (m_alone_since && (m_verb.status() || !m_verb.is_hung_up())) {
        m_alone_timer.start_at(*m_alone_since + patience());
    } else {
        m_alone_timer.stop();
    }
}

void Holder::on_alone()
{
    if (!m_alone_since || now() < *m_alone_since + patience()) {
        return; // changed in this round
    }
    if (m_verb.status()) {
        m_left = true;
    } else if (!m_verb.is_hung_up()) {
        m_verb.hang_up();
    }
}

} // namespace gpuq::remote
