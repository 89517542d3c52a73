// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/connection.h"

#include "ports/step_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr std::size_t k_most_errors = 4096;
/// More than this within one stretch is a flood: 13 MB/s, too fast to read.
constexpr std::size_t k_flood = 128 << 10;
constexpr auto k_stretch = std::chrono::milliseconds(10);
constexpr auto k_gathering = std::chrono::milliseconds(1);
/// 10 Gbit/s at a round trip of 3 ms.
constexpr std::uint64_t k_network_room = 4 << 20;

void set_nonblocking(int descriptor)
{
    if (descriptor >= 0) {
        fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }
}

} // namespace

Connection::Connection(Kind kind, const StepProcess& process)
    : m_kind(kind)
    , m_process(process)
    , m_input(process.input)
    , m_output(process.output)
    , m_error(process.error)
{
    set_nonblocking(process.input);
    set_nonblocking(process.output);
    set_nonblocking(process.error);
}

Connection::Connection(Kind kind, Descriptor socket)
    : Connection(kind, {.input = socket.get(), .output = ::dup(socket.get())})
{
    socket.release();
}

void Connection::send(const wire::Frame& frame)
{
    if (m_input) {
        m_outgoing += wire::encode(frame);
    }
}

void Connection::write_some()
{
    const ssize_t count = ::write(m_input.get(), m_outgoing.data(), m_outgoing.size());
    if (count >= 0) {
        m_outgoing.erase(0, static_cast<std::size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
        m_outgoing.clear(); // the end of the connection is detected on its output
        m_input.reset();
    }
}

void Connection::flush(std::chrono::milliseconds limit)
{
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!m_outgoing.empty() && m_input) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        pollfd room{m_input.get(), POLLOUT, 0};
        if (left.count() <= 0 || ::poll(&room, 1, static_cast<int>(left.count())) <= 0) {
            return;
        }
        write_some();
    }
}

/// srun writes in pieces of 1 KiB: in a flood, a wake-up for each piece costs more than the
/// copying, so wait for more of them.
void Connection::let_gather()
{
    const auto now = std::chrono::steady_clock::now();
    if (now - m_stretch_begun > k_stretch) {
        m_stretch_begun = now;
        m_in_stretch = 0;
    }
    if (m_in_stretch > k_flood) {
        ::poll(nullptr, 0, k_gathering.count());
    }
}

bool Connection::read_some()
{
    let_gather();
    std::array<char, 256 << 10> buffer;
    const ssize_t count = ::read(m_output.get(), buffer.data(), buffer.size());
    if (count > 0) {
        m_in_stretch += static_cast<std::size_t>(count);
        m_decoder.feed({buffer.data(), static_cast<std::size_t>(count)});
        return !m_broken;
    }
    return !m_broken && count < 0 && (errno == EAGAIN || errno == EINTR);
}

void Connection::read_errors()
{
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(m_error.get(), buffer.data(), buffer.size());
    if (count > 0) {
        m_errors.append(buffer.data(), static_cast<std::size_t>(count));
        if (m_errors.size() > k_most_errors) {
            m_errors.erase(0, m_errors.size() - k_most_errors);
        }
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        m_error.reset();
    }
}

std::optional<wire::Frame> Connection::next()
{
    if (m_broken) {
        return std::nullopt;
    }
    auto frame = m_decoder.next();
    if (!frame) {
        m_broken = true;
        return std::nullopt;
    }
    if (const auto* output = *frame ? std::get_if<wire::Output>(&**frame) : nullptr) {
        m_taken += output->bytes.size();
        report_taken();
    }
    return *std::move(frame);
}

void Connection::limit_output()
{
    if (m_kind == Kind::direct) {
        return;
    }
    if (m_kind == Kind::network) {
        m_room = k_network_room;
        return send(wire::OutputTaken{0, m_room});
    }
    fcntl(m_output.get(), F_SETPIPE_SZ, k_largest_pipe);
    const int size = fcntl(m_output.get(), F_GETPIPE_SZ);
    // A page of the pipe accepts another write only if all of it fits, and srun's have at most 1
    // KiB.
    m_room = static_cast<std::uint64_t>(std::max(size, PIPE_BUF)) / 4 * 3;
    send(wire::OutputTaken{0, m_room});
}

void Connection::report_taken()
{
    if (m_room > 0 && m_taken - m_reported >= m_room / 16) {
        m_reported = m_taken;
        send(wire::OutputTaken{m_taken, m_room});
    }
}

} // namespace gpuq::cli
