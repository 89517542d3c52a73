// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_limit = 1 << 20;

} // namespace

bool InputBuffer::take(std::uint64_t offset, std::string_view bytes)
{
    if (offset > m_taken) {
        return false;
    }
    const std::uint64_t known = std::min<std::uint64_t>(m_taken - offset, bytes.size());
    bytes.remove_prefix(known);
    m_taken += bytes.size();
    if (!closed() && !m_ended) {
        m_buffer.erase(0, m_start);
        m_start = 0;
        m_buffer += bytes;
        flush();
    }
    return true;
}

bool InputBuffer::end(std::uint64_t offset)
{
    if (offset > m_taken) {
        return false;
    }
    m_ended = true;
    flush();
    return true;
}

void InputBuffer::flush()
{
    while (!closed() && has_bytes()) {
        const ssize_t written =
            ::write(m_pipe->get(), m_buffer.data() + m_start, m_buffer.size() - m_start);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0 && errno == EAGAIN) {
            return;
        }
        if (written < 0) {
            give_up();
            return;
        }
        m_start += static_cast<std::size_t>(written);
    }
    if (m_ended && !closed()) {
        // Only used to count the unread bytes; the program sees the end of file all the same.
        m_after_end.reset(::open(fmt::format("/proc/self/fd/{}", m_pipe->get()).c_str(),
                                 O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        m_pipe->reset();
    }
    if (!has_bytes()) {
        m_buffer.clear();
        m_start = 0;
    }
}

std::uint64_t InputBuffer::read_by_program() const
{
    if (m_read) {
        return *m_read;
    }
    int in_pipe = 0;
    const int pipe = closed() ? m_after_end.get() : m_pipe->get();
    if (pipe < 0 || ::ioctl(pipe, FIONREAD, &in_pipe) != 0) {
        in_pipe = 0;
    }
    const std::uint64_t unread = m_buffer.size() - m_start + static_cast<std::uint64_t>(in_pipe);
    return m_taken - std::min(m_taken, unread);
}

void InputBuffer::give_up()
{
    m_read = read_by_program();
    m_after_end.reset();
    if (m_pipe) {
        m_pipe->reset();
    }
    m_buffer.clear();
    m_start = 0;
}

std::uint64_t InputBuffer::room() const
{
    const std::size_t held = m_buffer.size() - m_start;
    return held >= k_limit ? 0 : k_limit - held;
}

} // namespace gpuq::supervisor
