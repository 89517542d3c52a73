// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/verb_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

/// Confirmations are batched: one per key press would wake up every process on the path before the
/// echo does.
constexpr EventLoop::Span k_confirm_within = 100ms;
constexpr std::uint64_t k_worth_reporting = 64 << 10;

/// Bytes in a pipe, by either end.
std::uint64_t bytes_in(const Descriptor& pipe)
{
    int count = 0;
    return pipe && ::ioctl(pipe.get(), FIONREAD, &count) == 0 && count > 0
               ? static_cast<std::uint64_t>(count)
               : 0;
}

} // namespace

VerbInput::VerbInput(EventLoop& loop, std::function<bool(const wire::remote::InputTaken&)> confirm)
    : m_confirm(std::move(confirm))
    , m_confirm_timer(loop, [this] { this->confirm(); })
{
    loop.add([this] { return EventLoop::to_write(m_there, !m_waiting.empty()); },
             [this] { write(); });
}

void VerbInput::begin(Descriptor pipe, int terminal, bool raw, bool none)
{
    m_pipe = std::move(pipe);
    m_there = none ? -1 : m_pipe ? m_pipe.get() : terminal;
    m_raw = raw;
}

Result<void> VerbInput::take(const wire::remote::Input& input)
{
    const std::uint64_t end = input.offset + input.bytes.size();
    if (input.offset > m_taken || end < input.offset) {
        return fail(Error::Kind::internal, "input at an unexpected offset");
    }
    if (end <= m_taken) {
        return {}; // already received
    }
    const auto fresh =
        std::string_view(input.bytes).substr(static_cast<std::size_t>(m_taken - input.offset));
    if (fresh.size() > room()) {
        return fail(Error::Kind::internal, "input exceeds its window");
    }
    m_taken = end;
    if (!is_closed() && !m_over) {
        m_waiting += fresh;
    }
    write();
    return {};
}

void VerbInput::end(const wire::remote::InputEnd& end)
{
    m_over = m_over || end.offset == m_taken;
    write();
}

void VerbInput::write()
{
    while (!m_waiting.empty()) {
        const ssize_t count = ::write(m_there, m_waiting.data(), m_waiting.size());
        if (count > 0) {
            m_line_is_complete = m_waiting[static_cast<std::size_t>(count) - 1] == '\n';
            m_waiting.erase(0, static_cast<std::size_t>(count));
            m_written += static_cast<std::uint64_t>(count);
        } else if (count < 0 && errno == EAGAIN) {
            break;
        } else if (count >= 0 || errno != EINTR) {
            m_unread = bytes_in(m_pipe);
            close(); // as the verb has
        }
    }
    if (m_waiting.empty() && m_over && !is_closed()) {
        write_end();
    }
    confirm_soon();
}

void VerbInput::write_end()
{
    if (!m_pipe && !m_raw) {
        // After an incomplete line, the first one only completes the line.
        constexpr std::string_view k_ends = "\4\4";
        const std::string_view end = k_ends.substr(m_line_is_complete ? 1 : 0);
        (void)!::write(m_there, end.data(), end.size());
    }
    if (m_pipe) { // the bytes in it can be counted as long as an end is open
        m_closed_pipe = Descriptor(::open(fmt::format("/proc/self/fd/{}", m_pipe.get()).c_str(),
                                          O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }
    close();
}

std::uint64_t VerbInput::read_by_verb() const
{
    return m_written - std::min(m_written, bytes_in(m_pipe) + bytes_in(m_closed_pipe) + m_unread);
}

void VerbInput::close()
{
    m_waiting.clear();
    m_there = -1;
    m_pipe.reset();
}

void VerbInput::confirmed_by_hello()
{
    m_confirmed_taken = m_taken;
    m_confirmed_room = room();
    m_confirm_timer.stop();
}

void VerbInput::confirm_soon()
{
    if (m_taken != m_confirmed_taken && !m_confirm_timer.is_started()) {
        m_confirm_timer.start_in(k_confirm_within);
    }
    if (m_taken - m_confirmed_taken >= k_worth_reporting ||
        room() >= m_confirmed_room + k_worth_reporting) {
        confirm();
    }
}

void VerbInput::confirm()
{
    if (m_confirm({m_taken, room()})) {
        confirmed_by_hello();
    }
}

} // namespace gpuq::remote
