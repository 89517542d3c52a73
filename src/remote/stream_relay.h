// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/event_loop.h"
#include "remote/channel.h"
#include "remote/run_channel.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::remote {

/// Passes the frames of --forward streams between the client of a holder and the dialer on the
/// run's node (run_channel.h).
class StreamRelay {
public:
    /// `client`: the client's channel, null if none is connected.
    StreamRelay(EventLoop& loop, std::function<Channel*()> client);

    /// To be called if the session has forwards.
    void begin(const std::string& program, const frames::Start& start);
    /// A new stream to `run`, which the session shows, or a StreamClosed with the reason.
    /// `internal` for a stream that is open.
    Result<void> dial(const frames::Dial& dial, const std::optional<frames::Following>& run);
    /// Passes a frame of a stream to the dialer. Frames for a stream already closed on this side
    /// are ignored.
    void pass_on(std::uint32_t stream, const frames::Frame& frame);
    /// Closes all streams, which end with their client.
    void client_left();
    bool is_active() const { return !m_streams.empty(); }
    /// To be called for every child that has ended.
    void on_child(pid_t pid);

private:
    Channel* dialer() { return m_run_channel ? m_run_channel->channel() : nullptr; }
    void on_dialer();
    bool take_frames();
    void from_dialer(std::uint32_t stream, const frames::Frame& frame);
    void end_streams(const std::string& why);
    void refuse(std::uint32_t stream, std::string why);

    /// Which sides of a stream have sent StreamEnd.
    struct Ends {
        bool client = false, run = false;
    };
    void note_end(std::map<std::uint32_t, Ends>::iterator stream, const frames::Frame& frame,
                  bool Ends::*side);

    std::function<Channel*()> m_client;
    std::optional<RunChannel> m_run_channel; ///< set if the session has forwards
    frames::Decoder m_decoder;
    std::map<std::uint32_t, Ends> m_streams;
};

/// The --forward stream to which a frame belongs.
std::optional<std::uint32_t> stream_of(const frames::Frame& frame);

} // namespace gpuq::remote
