// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "remote/channel.h"

#include <cstdint>
#include <map>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

namespace gpuq::remote {

/// The connections of --forward that a channel carries: one end of each. The same in the client and
/// on the login host, but that the client begins them. They end with the channel.
class Streams {
public:
    std::size_t size() const { return m_streams.size(); }
    bool has(std::uint32_t id) const { return m_streams.contains(id); }
    /// What comes for it waits until it has a socket.
    void begin(std::uint32_t id) { m_streams.try_emplace(id); }
    void give(std::uint32_t id, Descriptor socket);
    /// Says to the other side that it is gone, and why.
    void refuse(Channel& channel, std::uint32_t id, std::string why);
    /// Nothing of them can arrive any more: who is connected is told so at once.
    void clear() { m_streams.clear(); }

    /// Of a stream that is gone here already: without deed. False for what may not come.
    bool on_bytes(Channel& channel, const frames::StreamBytes& bytes);
    void on_taken(const frames::StreamTaken& taken);
    void on_end(std::uint32_t id);
    void on_gone(std::uint32_t id) { m_streams.erase(id); }

    /// Adds what to poll for.
    void listen(const Channel& channel, std::vector<pollfd>& waits);
    /// Reads and writes what it can, of what listen() has added; then sends.
    void carry(Channel& channel, std::span<const pollfd> waits);

private:
    struct Stream {
        Stream() = default;
        Stream(const Stream&) = delete;
        Stream& operator=(const Stream&) = delete;
        ~Stream();

        Descriptor socket;
        std::string outgoing; ///< to the socket
        std::uint64_t may_send = frames::k_stream_room;
        std::uint32_t taken = 0; ///< written to the socket, and not told yet
        bool read_all = false;   ///< there is no more in the socket
        bool came_all = false;   ///< and no more to come for it
        bool shut = false;       ///< the socket knows that
        bool is_over() const { return read_all && shut; }
    };

    /// False when the socket is broken.
    static bool read_some(Channel& channel, std::uint32_t id, Stream& stream);
    static bool write_some(Channel& channel, std::uint32_t id, Stream& stream);

    std::map<std::uint32_t, Stream> m_streams;
    std::vector<std::uint32_t> m_listened; ///< in the order of what listen() has added
};

} // namespace gpuq::remote
