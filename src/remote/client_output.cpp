// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/client_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::array k_streams = {std::size_t{0}, std::size_t{1}};
constexpr std::uint64_t k_report_after = 128 << 10; ///< bytes shown
constexpr EventLoop::Span k_report_within = 200ms;
constexpr std::size_t k_pipe_piece = 4096; ///< fits into a pipe that is ready, without blocking

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

} // namespace

ClientOutput::ClientOutput(EventLoop& loop, std::array<Sink, 2> sinks, Events events)
    : m_events(std::move(events))
    , m_confirm_timer(loop, [this] { confirm(); })
{
    for (const std::size_t i : k_streams) {
        m_shown[i].sink = std::move(sinks[i]);
        m_shown[i].own = opened_again(m_shown[i].sink.descriptor);
        loop.add(
            [this, i] {
                return EventLoop::to_write(m_shown[i].sink.descriptor,
                                           m_shown[i].waiting.size() > 0);
            },
            [this] { write(); });
    }
}

void ClientOutput::restart()
{
    for (Shown& shown : m_shown) {
        shown.waiting = {};
        shown.received = 0;
        shown.settled = shown.settled ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    m_reported = {};
    m_confirm_timer.stop();
}

Result<void> ClientOutput::check(const frames::OutputBytes& output) const
{
    if (output.offset != received(static_cast<std::size_t>(output.stream))) {
        return fail(Error::Kind::internal, "output at an unexpected offset");
    }
    if (unwritten() + output.bytes.size() > frames::k_output_room + wire::k_max_payload) {
        return fail(Error::Kind::internal, "output exceeds its window");
    }
    return {};
}

void ClientOutput::take(const frames::OutputBytes& output)
{
    const auto stream = static_cast<std::size_t>(output.stream);
    Shown& shown = m_shown[stream];
    shown.received += output.bytes.size();
    if (shown.sink.shown_as) {
        return show_as(stream, output.bytes);
    }
    // Write directly from the receive buffer as much as possible.
    const std::size_t written =
        shown.waiting.size() == 0 ? write_some(stream, output.bytes) : std::size_t{0};
    if (!shown.broken) {
        shown.waiting.add(output.bytes.substr(written));
    }
    confirm_soon();
}

void ClientOutput::show_as(std::size_t stream, std::string_view bytes)
{
    Shown& shown = m_shown[stream];
    shown.settled = shown.settled.value_or(0);
    if (!shown.broken) {
        shown.waiting.add(shown.sink.shown_as(bytes));
    }
    write(); // also for a broken stream, whose bytes are settled at once
}

void ClientOutput::show_the_rest()
{
    for (const std::size_t stream : k_streams) {
        if (m_shown[stream].sink.shown_as) {
            show_as(stream, {});
        }
    }
}

/// Writes as many bytes as the stream accepts now; returns their number.
std::size_t ClientOutput::write_some(std::size_t stream, std::string_view bytes)
{
    const Shown& shown = m_shown[stream];
    if (shown.broken) {
        return 0;
    }
    const int there = shown.own ? shown.own.get() : shown.sink.descriptor;
    const bool in_any_size = shown.own || is_file(there);
    std::size_t written = 0;
    while (written < bytes.size() && (shown.own || is_ready(there, POLLOUT))) {
        const std::size_t left = bytes.size() - written;
        const ssize_t count = ::write(there, bytes.data() + written,
                                      in_any_size ? left : std::min(left, k_pipe_piece));
        if (count < 0) {
            if (errno != EINTR && errno != EAGAIN) {
                close(stream, errno);
            }
            break;
        }
        written += static_cast<std::size_t>(count);
    }
    return written;
}

void ClientOutput::close(std::size_t stream, int error)
{
    m_shown[stream].waiting = {};
    m_shown[stream].broken = true;
    m_events.closed(stream, error);
}

void ClientOutput::write()
{
    for (const std::size_t stream : k_streams) {
        write_waiting(stream);
        if (m_shown[stream].settled && m_shown[stream].waiting.size() == 0) {
            m_shown[stream].settled = m_shown[stream].received;
        }
    }
    confirm_soon();
}

void ClientOutput::write_waiting(std::size_t stream)
{
    Backlog& waiting = m_shown[stream].waiting;
    while (waiting.size() > 0) {
        const std::string_view bytes = waiting.send(waiting.size());
        const std::size_t size = bytes.size();
        const std::size_t written = write_some(stream, bytes);
        if (m_shown[stream].broken) {
            return;
        }
        (void)waiting.confirm(waiting.begin() + written);
        (void)waiting.send_from(waiting.begin());
        if (written < size) {
            return;
        }
    }
}

void ClientOutput::confirm_soon()
{
    const std::uint64_t news = written() - m_reported[0] - m_reported[1];
    if (news >= k_report_after) {
        confirm();
    } else if (news > 0 && !m_confirm_timer.is_started()) {
        m_confirm_timer.start_in(k_report_within);
    }
}

void ClientOutput::confirm()
{
    const std::array<std::uint64_t, 2> written{m_shown[0].written(), m_shown[1].written()};
    if (written != m_reported && m_events.confirm(frames::Taken{written[0], written[1]})) {
        m_reported = written;
        m_confirm_timer.stop();
    }
}

} // namespace gpuq::remote
