// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/verb_output.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace gpuq::remote {
namespace {

constexpr std::array k_streams = {std::size_t{0}, std::size_t{1}};
constexpr ssize_t k_little = 1024; ///< bytes of a read; a terminal returns at most 4 KiB

} // namespace

VerbOutput::VerbOutput(EventLoop& loop)
{
    for (const std::size_t i : k_streams) {
        loop.add(
            [this, i] { return EventLoop::to_read(m_sources[i], !is_full() && !m_drained[i]); },
            [this, i] { read(i); });
    }
}

void VerbOutput::begin(std::array<int, 2> sources)
{
    m_sources = sources;
    m_drained = {sources[0] < 0, sources[1] < 0};
}

bool VerbOutput::is_full() const
{
    return m_kept[0].size() + m_kept[1].size() >= frames::k_output_room;
}

void VerbOutput::read(std::size_t stream)
{
    Backlog& kept = m_kept[stream];
    while (!is_full()) {
        const std::span<char> room = kept.room();
        const ssize_t count = ::read(m_sources[stream], room.data(),
                                     std::min<std::size_t>(room.size(), wire::k_piece));
        if (count > 0) {
            kept.grew(static_cast<std::size_t>(count));
            // Send before reading more; and a short read means that nothing more is available.
            if (kept.end() - kept.sent() >= wire::k_piece || (count < k_little && !m_verb_ended)) {
                return;
            }
        } else if (count == 0 || errno != EINTR) {
            // A terminal reports EIO when the verb has closed it.
            m_drained[stream] = count == 0 || errno != EAGAIN || m_verb_ended;
            return;
        }
    }
}

bool VerbOutput::send_from(std::array<std::uint64_t, 2> offsets)
{
    if (!m_kept[0].send_from(offsets[0]) || !m_kept[1].send_from(offsets[1])) {
        return false;
    }
    return m_kept[0].confirm(offsets[0]) && m_kept[1].confirm(offsets[1]);
}

void VerbOutput::send(Channel& channel, bool queue)
{
    // Output waits here until the channel is empty, to avoid copying it.
    const auto takes = [&] { return channel.waiting() == 0 || (queue && !channel.is_full()); };
    for (const std::size_t i : k_streams) {
        if (m_verb_ended && !m_drained[i]) {
            read(i);
        }
        while (!m_kept[i].all_sent() && takes()) {
            const std::uint64_t offset = m_kept[i].sent();
            const std::string_view bytes = m_kept[i].send(wire::k_piece);
            m_sending = i;
            channel.send_bytes(frames::output_header(static_cast<Stream>(i), offset, bytes.size()),
                               bytes);
        }
    }
}

bool VerbOutput::confirm(std::array<std::uint64_t, 2> offsets, std::size_t borrowed)
{
    return std::all_of(k_streams.begin(), k_streams.end(), [&](std::size_t i) {
        const std::size_t in_channel = i == m_sending ? borrowed : 0;
        return offsets[i] <= m_kept[i].sent() - in_channel && m_kept[i].confirm(offsets[i]);
    });
}

bool VerbOutput::is_confirmed_to(const std::array<std::uint64_t, 2>& offsets) const
{
    return m_kept[0].begin() >= offsets[0] && m_kept[1].begin() >= offsets[1];
}

bool VerbOutput::has_unread() const
{
    return std::any_of(m_sources.begin(), m_sources.end(), [](int source) {
        int unread = 0;
        return source >= 0 && ::ioctl(source, FIONREAD, &unread) == 0 && unread > 0;
    });
}

bool VerbOutput::is_all_sent() const
{
    return m_drained[0] && m_drained[1] && m_kept[0].all_sent() && m_kept[1].all_sent();
}

} // namespace gpuq::remote
