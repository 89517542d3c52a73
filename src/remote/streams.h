// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"
#include "remote/channel.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace gpuq::remote {

/// One end of the --forward connections that a channel carries. The same code runs in the client,
/// which opens the streams, and on the login host. Streams end with the channel.
class Streams {
public:
    /// `channel`: the channel; null while it is not open. Frames are only queued: the owner writes
    /// them after each round of the loop.
    Streams(EventLoop& loop, std::function<Channel*()> channel);

    std::size_t size() const { return m_streams.size(); }
    bool has(std::uint32_t id) const { return m_streams.contains(id); }
    /// Opens a stream; received data waits until it has a socket.
    void begin(std::uint32_t id) { m_streams.try_emplace(id); }
    void give(std::uint32_t id, Descriptor socket);
    /// Closes a stream and reports the reason to the peer.
    void refuse(std::uint32_t id, std::string why);
    /// Closes all streams when the channel is lost; connected programs see an error at once.
    void clear() { m_streams.clear(); }

    /// Handles StreamBytes, StreamTaken, StreamEnd and StreamClosed; ignores other frames and those
    /// of a stream already closed on this side. Returns the stream if the peer has violated the
    /// protocol by more data than its window allows.
    std::optional<std::uint32_t> on_frame(const frames::Frame& frame);

private:
    bool on_bytes(const frames::StreamBytes& bytes);
    void on_taken(const frames::StreamTaken& taken);
    void on_end(std::uint32_t id);

    struct Stream {
        Stream() = default;
        Stream(const Stream&) = delete;
        Stream& operator=(const Stream&) = delete;
        ~Stream();

        Descriptor socket;
        EventLoop::Watch watch;
        std::string outgoing; ///< to be written to the socket
        std::uint64_t may_send = frames::k_stream_room;
        std::uint32_t taken = 0; ///< bytes written to the socket but not reported yet
        bool read_all = false;   ///< the socket has reached end of file
        bool came_all = false;   ///< the peer has sent StreamEnd
        bool shut = false;       ///< end of file was passed on to the socket
        bool is_over() const { return read_all && shut; }
    };

    EventLoop::Interest interest_in(const Stream& stream) const;
    void carry(std::uint32_t id, Stream& stream);
    /// False when the socket is broken.
    bool read_some(std::uint32_t id, Stream& stream);
    bool write_some(std::uint32_t id, Stream& stream);

    EventLoop& m_loop;
    std::function<Channel*()> m_channel;
    std::map<std::uint32_t, Stream> m_streams;
};

} // namespace gpuq::remote
