// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"
#include "remote/channel.h"
#include "remote/streams.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpuq::remote {

/// --forward at the client: accepts connections of its own user and opens a stream for each.
class ClientForwards {
public:
    struct Events {
        /// The channel to the host; null if it is not connected.
        std::function<Channel*()> channel;
        /// True while the session shows a run. Until then, connections wait.
        std::function<bool()> has_run;
        /// Prints a message.
        std::function<void(const std::string&)> print_message;
    };
    /// `listeners`: the sockets of each forward.
    ClientForwards(EventLoop& loop, std::vector<std::vector<Descriptor>> listeners, Events events);

    /// Closes all streams when the channel is lost.
    void clear() { m_streams.clear(); }
    /// True for a frame of a stream that was never opened here.
    bool is_unknown(const frames::Frame& frame) const;
    /// Takes a frame of a stream; nothing for any other. False if a stream exceeds its window.
    bool take(const frames::Frame& frame);

private:
    void watch(EventLoop& loop, std::uint32_t forward, int listener);
    void on_accept(std::uint32_t forward, int listener);
    void print_message(const std::string& why);
    void on_refused(int error);

    std::vector<std::vector<Descriptor>> m_listeners;
    Events m_events;
    Streams m_streams;
    EventLoop::Timer m_pause; ///< no descriptor is left: connections wait
    std::uint32_t m_next_stream = 0;
    std::string m_printed;
};

} // namespace gpuq::remote
