// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client.h"

#include "log/log.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <unistd.h>
#include <utility>

/// The receiving part of the client: the bytes of a connection up to the marker, Hello, and the
/// frames of the session. Bytes that violate the protocol end the client.
namespace gpuq::remote {
namespace {

constexpr int k_closed_output = 128 + SIGPIPE;

} // namespace

void Client::on_bytes(std::string_view bytes)
{
    std::string behind_marker;
    if (!m_connection.marked && !pass_marker(bytes, behind_marker)) {
        return;
    }
    if (m_connection.hello) {
        m_reconnect.heard(now());
    }
    while (m_connection.channel && !has_stopped()) {
        auto came = m_connection.decoder.take(bytes);
        if (!came) {
            return on_strange(came.error());
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

/// Sets `bytes` to the rest behind the marker, in `behind_marker`. False if the marker has not
/// arrived.
bool Client::pass_marker(std::string_view& bytes, std::string& behind_marker)
{
    auto rest = m_connection.greeting.feed(bytes);
    if (!rest) {
        on_strange(rest.error());
        return false;
    }
    if (!*rest) {
        return false;
    }
    m_connection.marked = true;
    behind_marker = **std::move(rest);
    bytes = behind_marker;
    return true;
}

/// The host has sent bytes that are not of gpuq.
void Client::on_strange(const Error& error)
{
    const std::string message = last_message(m_connection.greeting.text());
    stop(fail(Error::Kind::internal,
              fmt::format("{}: {}{}", sanitised(m_options.host), error.text,
                          message.empty() || m_connection.marked ? "" : ": " + message)));
}

void Client::nonsense(std::string_view what)
{
    stop(fail(Error::Kind::internal,
              fmt::format("protocol error from gpuq on {}: {}", m_options.host, what)));
}

void Client::on_frame(frames::Frame&& frame)
{
    if (const auto fault = fault_in(frame, Sender::server)) {
        return nonsense(*fault);
    }
    if (const auto* hello = std::get_if<frames::Hello>(&frame)) {
        return m_connection.hello ? nonsense("duplicate Hello") : on_hello(*hello);
    }
    if (const auto* failure = std::get_if<frames::Failure>(&frame)) {
        return stop(
            fail(failure->kind, fmt::format("{}: {}", m_options.host, peer_text(failure->text))));
    }
    if (!m_connection.hello) {
        return nonsense("expected Hello first");
    }
    m_reconnect.confirmed();
    if (m_forwards.is_unknown(frame)) {
        return nonsense("unexpected connection");
    }
    on_session_frame(frame);
}

void Client::on_session_frame(const frames::Frame& frame)
{
    if (const auto* output = std::get_if<frames::Output>(&frame)) {
        on_output({output->stream, output->offset, output->bytes});
    } else if (const auto* taken = std::get_if<frames::InputTaken>(&frame)) {
        on_input_taken(*taken);
    } else if (const auto* signals = std::get_if<frames::SignalTaken>(&frame)) {
        if (!m_signals.confirm(signals->count)) {
            nonsense("acknowledged signals that were not sent");
        }
    } else if (const auto* following = std::get_if<frames::Following>(&frame)) {
        m_following = *following;
    } else if (const auto* target = std::get_if<frames::SshTarget>(&frame)) {
        if (!m_options.on_ssh_target) {
            return nonsense("unexpected ssh host");
        }
        m_options.on_ssh_target(*target);
    } else if (const auto* beat = std::get_if<frames::Beat>(&frame)) {
        if (beat->number > m_beats) {
            nonsense("unexpected heartbeat reply");
        }
    } else if (const auto* input = std::get_if<frames::InputRead>(&frame)) {
        if (input->count > m_input.added()) {
            return nonsense("read input that was not sent");
        }
        m_ending.input_read = input->count;
    } else if (const auto* exit = std::get_if<frames::Exit>(&frame)) {
        on_exit(*exit);
    } else {
        if (std::holds_alternative<frames::StreamBytes>(frame)) {
            m_reconnect.useful();
        }
        if (!m_forwards.take(frame)) {
            nonsense("a stream exceeds its window");
        }
    }
}

void Client::on_input_taken(const frames::InputTaken& taken)
{
    if (!m_input.confirm(taken)) {
        return nonsense("acknowledged input that was not sent");
    }
    m_reconnect.useful();
    send_input();
}

void Client::on_exit(const frames::Exit& exit)
{
    if (exit.out != m_output.received(0) || exit.err != m_output.received(1)) {
        return nonsense("exit before all output has arrived");
    }
    m_ending.exit = exit;
    m_output.show_the_rest();
}

/// As if the verb itself had read standard input: the offset of a file is set back, and bytes from
/// a pipe are lost.
void Client::return_unread_input()
{
    const std::uint64_t read = m_ending.input_read.value_or(m_input.added());
    const std::uint64_t unread = m_input.added() - read;
    if (unread == 0 || ::isatty(m_options.in) == 1) {
        return;
    }
    if (m_in_begin >= 0) {
        const auto end = m_in_begin + static_cast<off_t>(m_input.added());
        if (::lseek(m_options.in, 0, SEEK_CUR) == end) { // otherwise another process has moved it
            (void)::lseek(m_options.in, m_in_begin + static_cast<off_t>(read), SEEK_SET);
        }
    } else if (read == 0) {
        m_ui.print_message(fmt::format("{} bytes of standard input were sent to {}, where nothing "
                                       "read them: </dev/null leaves standard input alone",
                                       unread, sanitised(m_options.host)));
    }
}

void Client::on_output(const frames::OutputBytes& output)
{
    if (!m_connection.hello) {
        return nonsense("expected Hello first");
    }
    if (const auto valid = m_output.check(output); !valid) {
        return nonsense(valid.error().text);
    }
    m_reconnect.useful();
    if (is_in_front()) {
        m_ui.watch(output.bytes);
    }
    m_output.take(output);
}

void Client::on_closed_output(std::size_t stream, int error)
{
    if (stream == 0 && error == EPIPE) { // as with `| head`: no message
        leave(k_closed_output, "");
    } else if (stream == 0) {
        stop(fail(Error::Kind::io,
                  fmt::format("the output can't be written here: {}", std::strerror(error))));
    }
}

void Client::on_hello(const frames::Hello& hello)
{
    m_connection.hello = true;
    if (!hello.known && m_session.started) {
        return replace_session(hello);
    }
    if (hello.known && !resume(hello)) {
        return;
    }
    if (!hello.known) {
        begin(hello);
    }
    m_session.started = true;
    live();
}

/// The session is gone although a verb was started.
void Client::replace_session(const frames::Hello& hello)
{
    auto start = m_options.in_its_place
                     ? m_options.in_its_place(
                           {m_following, m_output.written(0), m_output.written(1), hello.host})
                     : Result<frames::Start>(fail(Error::Kind::lost, "the session is gone"));
    if (!start) {
        return stop(std::move(start).error());
    }
    m_options.start = *std::move(start);
    disconnect();
    new_session();
    m_input.restart(m_options.start.raw);
    m_reconnect.lost(now());
    m_reconnect.nudge(now());
}

/// False on a protocol violation.
bool Client::resume(const frames::Hello& hello)
{
    if (!m_input.resume(hello.input, hello.room)) {
        nonsense("acknowledged input that was not sent");
        return false;
    }
    if (!m_signals.resume(hello.signals)) {
        nonsense("acknowledged signals that were not sent");
        return false;
    }
    return true;
}

/// Starts the verb.
void Client::begin(const frames::Hello& hello)
{
    if (m_options.start.brief) { // already sent with Open; the next frame confirms it
        m_connection.channel->send(frames::Beat{++m_beats});
    } else {
        m_options.start.size = m_ui.size().value_or(m_options.start.size);
        m_connection.channel->send(m_options.start);
    }
    m_input.begin(hello.input, hello.room);
}

void Client::live()
{
    const bool again = m_was_live;
    m_was_live = true;
    m_sharing.hung = false;
    m_reconnect.connected(now());
    log::info(log::Part::remote, "connected{}", again ? " again" : "");
    end_login();
    state_changed();
    if (is_in_front()) {
        m_ui.lend_terminal();
    }
    if (const auto size = m_ui.size(); again && size) {
        m_connection.channel->send(frames::Resize{*size, is_in_front()});
    }
    m_signals.send(*m_connection.channel);
    send_input();
    m_output.confirm(); // output written in the meantime
}

} // namespace gpuq::remote
