// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/event_loop.h"
#include "remote/backlog.h"
#include "remote/channel.h"

#include <array>
#include <cstdint>

namespace gpuq::remote {

/// Output of a verb (holder.h), kept from its reading until the client has confirmed it. At
/// k_output_room bytes, the verb's output is no longer read, which stops a verb that writes.
class VerbOutput {
public:
    explicit VerbOutput(EventLoop& loop);

    /// Reads from these non-blocking descriptors from now on, which must stay open; -1: none.
    void begin(std::array<int, 2> sources);
    /// The output ends with the bytes that can be read now: background processes may still hold the
    /// other ends.
    void verb_ended() { m_verb_ended = true; }

    /// A new connection has received everything before these offsets and continues there. False if
    /// that is not possible.
    bool send_from(std::array<std::uint64_t, 2> offsets);
    /// Sends as much as the channel takes without queueing; `queue`: until its queue is full.
    void send(Channel& channel, bool queue);
    /// Everything before these offsets was shown. False if it was not sent. `borrowed`: that many
    /// of the bytes sent last are still referred to by the channel (Channel::borrowed).
    bool confirm(std::array<std::uint64_t, 2> offsets, std::size_t borrowed);

    /// Offsets of the end of the bytes read, and of those confirmed.
    std::array<std::uint64_t, 2> ends() const { return {m_kept[0].end(), m_kept[1].end()}; }
    bool is_confirmed_to(const std::array<std::uint64_t, 2>& offsets) const;
    /// True if the verb has written bytes that are not read yet.
    bool has_unread() const;
    /// True when all output of the verb has been read and sent.
    bool is_all_sent() const;
    bool is_empty() const { return m_kept[0].size() + m_kept[1].size() == 0; }

    /// True while output of the verb is not read.
    bool is_full() const;

private:
    void read(std::size_t stream);

    std::array<int, 2> m_sources{-1, -1};
    std::array<bool, 2> m_drained{};
    std::array<Backlog, 2> m_kept;
    std::size_t m_sending = 0; ///< the stream whose bytes the channel may have borrowed
    bool m_verb_ended = false;
};

} // namespace gpuq::remote
