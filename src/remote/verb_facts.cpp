// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/verb_facts.h"

#include "remote/verb_process.h"

#include <fmt/format.h>

#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

/// Time after a write to a terminal until all of it can be read at the other end.
constexpr EventLoop::Span k_until_readable = 20ms;
constexpr std::size_t k_longest_line = 4096;

} // namespace

VerbFacts::VerbFacts(EventLoop& loop, const VerbOutput& output,
                     std::function<bool(const frames::Frame&)> send_frame)
    : m_output(output)
    , m_send_frame(std::move(send_frame))
    , m_place_timer(loop, [this] { place_mark(); })
{
    loop.add([this] { return EventLoop::to_read(m_descriptor.get()); }, [this] { read(); });
}

void VerbFacts::read()
{
    std::array<char, 1024> buffer;
    const ssize_t count = ::read(m_descriptor.get(), buffer.data(), buffer.size());
    if (count <= 0) {
        if (count == 0 || errno != EAGAIN) {
            m_descriptor.reset();
        }
        return;
    }
    m_unread.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = m_unread.find('\n')) != std::string::npos;) {
        on_line(std::string_view(m_unread).substr(0, end));
        m_unread.erase(0, end + 1);
    }
    if (m_unread.size() > k_longest_line) {
        m_unread.clear();
    }
}

void VerbFacts::on_line(std::string_view line)
{
    if (line == k_mark) {
        m_marks += 1;
        return place_soon();
    }
    if (auto target = ssh_target_from(line)) {
        m_ssh_target = std::move(target);
        m_send_frame(*m_ssh_target);
        return;
    }
    if (const auto left = left_from(line)) {
        m_left = *left;
        return;
    }
    if (const auto own = own_from(line)) {
        m_own += *own;
        if (!m_following) {
            return;
        }
        m_following->err -= *own; // these bytes are not part of the run's stderr
    } else if (const auto following = following_from(line)) {
        m_following = *following;
        m_following->err -= m_own;
    } else {
        return;
    }
    m_send_frame(*m_following);
}

void VerbFacts::repeat()
{
    if (m_following) {
        m_send_frame(*m_following);
    }
    if (m_ssh_target) {
        m_send_frame(*m_ssh_target);
    }
    place_soon();
}

void VerbFacts::place_soon()
{
    if (m_marks != m_marks_placed && !m_place && !m_place_timer.is_started()) {
        m_place_timer.start_in(k_until_readable);
    }
}

/// Output written before the mark is readable by now, and must all be read first. If it is not read
/// because too much is kept, confirmed() or repeat() tries again.
void VerbFacts::place_mark()
{
    if (m_place) {
        return;
    }
    if (m_output.has_unread()) {
        return m_output.is_full() ? void() : place_soon();
    }
    m_place = Place{m_marks, m_output.ends()};
    m_marks_placed = m_marks;
    confirmed();
}

void VerbFacts::confirmed()
{
    if (m_place && m_output.is_confirmed_to(m_place->ends)) {
        const std::string line = fmt::format("{}\n", m_place->marks);
        // Failure means that the verb does not need the answer.
        (void)::send(m_descriptor.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        m_place.reset();
    }
    place_soon();
}

} // namespace gpuq::remote
