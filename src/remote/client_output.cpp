// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/// Output of the client: writes it and confirms it to the host.
namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t k_tell_after = 128 << 10; ///< bytes shown
constexpr Span k_tell_within = 200ms;
constexpr std::size_t k_pipe_piece = 4096; ///< fits into a pipe that is ready, without blocking
constexpr int k_closed_output = 128 + SIGPIPE;

Moment now()
{
    return std::chrono::steady_clock::now();
}

bool is_ready(int descriptor, short events)
{
    pollfd wait{descriptor, events, 0};
    return ::poll(&wait, 1, 0) > 0;
}

bool is_file(int descriptor)
{
    struct stat facts {};
    return ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
}

} // namespace

void Client::on_output(const frames::OutputBytes& output)
{
    if (!m_hello) {
        return nonsense("expected Hello first");
    }
    const auto stream = static_cast<std::size_t>(output.stream);
    Shown& shown = m_shown[stream];
    if (output.offset != shown.received) {
        return nonsense("output at an unexpected offset");
    }
    if (m_shown[0].waiting.size() + m_shown[1].waiting.size() + output.bytes.size() >
        frames::k_output_room + wire::k_max_payload) {
        return nonsense("output exceeds its window");
    }
    m_lifeline.useful();
    shown.received += output.bytes.size();
    if (is_in_front()) {
        m_person.watch(output.bytes);
    }
    if (m_options.shown_as[stream]) {
        show_as(stream, output.bytes);
        return send_taken();
    }
    // Write directly from the receive buffer as much as possible.
    const std::size_t written =
        shown.waiting.size() == 0 ? write_some(stream, output.bytes) : std::size_t{0};
    if (!shown.broken) {
        shown.waiting.add(output.bytes.substr(written));
    }
    if (!m_tell_at) {
        m_tell_at = now() + k_tell_within;
    }
    send_taken();
}

void Client::show_as(std::size_t stream, std::string_view bytes)
{
    Shown& shown = m_shown[stream];
    shown.settled = shown.settled.value_or(0);
    if (!shown.broken) {
        shown.waiting.add(m_options.shown_as[stream](bytes));
    }
    write_output(); // also for a broken stream, whose bytes are settled at once
    if (!m_tell_at) {
        m_tell_at = now() + k_tell_within;
    }
}

void Client::show_the_rest()
{
    for (const std::size_t stream : {std::size_t{0}, std::size_t{1}}) {
        if (m_options.shown_as[stream]) {
            show_as(stream, {});
        }
    }
}

/// Writes as many bytes as the stream accepts now; returns their number.
std::size_t Client::write_some(std::size_t stream, std::string_view bytes)
{
    if (m_shown[stream].broken) {
        return 0;
    }
    const int given = stream == 0 ? m_options.out : m_options.err;
    const Descriptor& own = m_own[stream];
    const int there = own ? own.get() : given;
    const bool in_any_size = own || is_file(given);
    std::size_t written = 0;
    while (written < bytes.size() && (own || is_ready(there, POLLOUT))) {
        const std::size_t left = bytes.size() - written;
        const ssize_t count = ::write(there, bytes.data() + written,
                                      in_any_size ? left : std::min(left, k_pipe_piece));
        if (count < 0) {
            if (errno != EINTR && errno != EAGAIN) {
                on_closed_output(stream, errno);
            }
            break;
        }
        written += static_cast<std::size_t>(count);
    }
    return written;
}

void Client::on_closed_output(std::size_t stream, int error)
{
    m_shown[stream].waiting = {};
    m_shown[stream].broken = true;
    if (stream == 0 && error == EPIPE) { // as with `| head`: no message
        leave(k_closed_output, "");
    } else if (stream == 0) {
        stop(fail(Error::Kind::io,
                  fmt::format("the output can't be written here: {}", std::strerror(error))));
    }
}

void Client::write_output()
{
    for (const std::size_t stream : {std::size_t{0}, std::size_t{1}}) {
        Backlog& waiting = m_shown[stream].waiting;
        while (waiting.size() > 0) {
            const std::string_view bytes = waiting.send(waiting.size());
            const std::size_t written = write_some(stream, bytes);
            if (m_shown[stream].broken) {
                break;
            }
            (void)waiting.confirm(waiting.begin() + written);
            (void)waiting.send_from(waiting.begin());
            if (written < bytes.size()) {
                break;
            }
        }
        if (m_shown[stream].settled && waiting.size() == 0) {
            m_shown[stream].settled = m_shown[stream].received;
        }
    }
    send_taken();
}

void Client::send_taken()
{
    if (!is_open()) {
        return;
    }
    const std::array<std::uint64_t, 2> written{m_shown[0].written(), m_shown[1].written()};
    if (written == m_told) {
        if (all_written()) {
            m_tell_at.reset();
        }
        return;
    }
    const bool much = written[0] + written[1] - m_told[0] - m_told[1] >= k_tell_after;
    if (much || (m_tell_at && now() >= *m_tell_at)) {
        m_told = written;
        m_tell_at.reset();
        if (!all_written()) {
            m_tell_at = now() + k_tell_within;
        }
        m_channel->send(frames::Taken{written[0], written[1]});
        (void)m_channel->write_some();
    }
}

} // namespace gpuq::remote
