// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

constexpr std::size_t k_most_errors = 4096;
constexpr int k_largest_pipe = 1 << 20; ///< for ordinary users (pipe(7), pipe-max-size)

void close_one(int& descriptor)
{
    if (descriptor >= 0) {
        ::close(std::exchange(descriptor, -1));
    }
}

void set_nonblocking(int descriptor)
{
    if (descriptor >= 0) {
        fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }
}

} // namespace

Connection::Connection(Kind kind, StepProcess process)
    : m_kind(kind)
    , m_process(process)
{
    set_nonblocking(m_process.input);
    set_nonblocking(m_process.output);
    set_nonblocking(m_process.error);
}

Connection::Connection(Connection&& other) noexcept
    : greeted(other.greeted)
    , m_kind(other.m_kind)
    , m_process(std::exchange(other.m_process, StepProcess{}))
    , m_decoder(std::move(other.m_decoder))
    , m_outgoing(std::move(other.m_outgoing))
    , m_errors(std::move(other.m_errors))
    , m_broken(other.m_broken)
    , m_room(other.m_room)
    , m_taken(other.m_taken)
    , m_told(other.m_told)
{
}

Connection& Connection::operator=(Connection&& other) noexcept
{
    if (this != &other) {
        close_all();
        greeted = other.greeted;
        m_kind = other.m_kind;
        m_process = std::exchange(other.m_process, StepProcess{});
        m_decoder = std::move(other.m_decoder);
        m_outgoing = std::move(other.m_outgoing);
        m_errors = std::move(other.m_errors);
        m_broken = other.m_broken;
        m_room = other.m_room;
        m_taken = other.m_taken;
        m_told = other.m_told;
    }
    return *this;
}

Connection::~Connection()
{
    close_all();
}

void Connection::close_all()
{
    close_one(m_process.input);
    close_one(m_process.output);
    close_one(m_process.error);
}

void Connection::send(const wire::Frame& frame)
{
    if (m_process.input >= 0) {
        m_outgoing += wire::encode(frame);
    }
}

void Connection::write_some()
{
    const ssize_t count = ::write(m_process.input, m_outgoing.data(), m_outgoing.size());
    if (count >= 0) {
        m_outgoing.erase(0, static_cast<std::size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
        m_outgoing.clear(); // the end of the connection shows on its output
        close_one(m_process.input);
    }
}

void Connection::flush(std::chrono::milliseconds limit)
{
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!m_outgoing.empty() && m_process.input >= 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        pollfd room{m_process.input, POLLOUT, 0};
        if (left.count() <= 0 || ::poll(&room, 1, static_cast<int>(left.count())) <= 0) {
            return;
        }
        write_some();
    }
}

bool Connection::read_some()
{
    std::array<char, 256 << 10> buffer;
    const ssize_t count = ::read(m_process.output, buffer.data(), buffer.size());
    if (count > 0) {
        m_decoder.feed({buffer.data(), static_cast<std::size_t>(count)});
        return !m_broken;
    }
    return !m_broken && count < 0 && (errno == EAGAIN || errno == EINTR);
}

void Connection::read_errors()
{
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(m_process.error, buffer.data(), buffer.size());
    if (count > 0) {
        m_errors.append(buffer.data(), static_cast<std::size_t>(count));
        if (m_errors.size() > k_most_errors) {
            m_errors.erase(0, m_errors.size() - k_most_errors);
        }
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_one(m_process.error);
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
        tell_taken();
    }
    return *std::move(frame);
}

void Connection::limit_output()
{
    fcntl(m_process.output, F_SETPIPE_SZ, k_largest_pipe);
    const int size = fcntl(m_process.output, F_GETPIPE_SZ);
    // Short writes may leave half of a pipe's pages empty.
    m_room = static_cast<std::uint64_t>(std::max(size, 2 * PIPE_BUF)) / 2;
    send(wire::OutputTaken{0, m_room});
}

void Connection::tell_taken()
{
    if (m_room > 0 && m_taken - m_told >= m_room / 4) {
        m_told = m_taken;
        send(wire::OutputTaken{m_taken, m_room});
    }
}

} // namespace gpuq::cli
