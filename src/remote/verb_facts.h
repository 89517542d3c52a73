// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"
#include "remote/channel.h"
#include "remote/verb_output.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// The facts that a verb reports to its holder (k_serve_descriptor in verb_process.h): the run that
/// it shows, an ssh target, its own messages, input that a program did not
/// read, and marks in its output. A mark is answered when all
/// output before it has been shown to the user.
class VerbFacts {
public:
    /// `send_frame` sends a frame to the client; false if none is connected.
    VerbFacts(EventLoop& loop, const VerbOutput& output,
              std::function<bool(const frames::Frame&)> send_frame);

    void begin(Descriptor descriptor) { m_descriptor = std::move(descriptor); }
    /// Reads the lines available now; called once more when the verb has ended.
    void read();
    /// Sends the current facts to a new connection.
    void repeat();
    /// To be called when output was confirmed: answers a mark that is reached.
    void confirmed();
    /// Bytes of input that the verb has read for a program, which has not.
    std::uint64_t left() const { return m_left; }
    /// The run shown, if any.
    const std::optional<frames::Following>& following() const { return m_following; }

private:
    void on_line(std::string_view line);
    void place_soon();
    void place_mark();

    const VerbOutput& m_output;
    std::function<bool(const frames::Frame&)> m_send_frame;
    Descriptor m_descriptor;
    std::string m_unread; ///< the beginning of a line
    std::optional<frames::Following> m_following;
    std::optional<frames::SshTarget> m_ssh_target;
    std::uint64_t m_own = 0;  ///< bytes of stderr that are gpuq's own messages
    std::uint64_t m_left = 0; ///< see left()

    /// The first `marks` marks are reached when output is shown up to `ends`.
    struct Place {
        std::uint64_t marks = 0;
        std::array<std::uint64_t, 2> ends{};
    };
    std::uint64_t m_marks = 0, m_marks_placed = 0;
    std::optional<Place> m_place; ///< not answered yet
    EventLoop::Timer m_place_timer;
};

} // namespace gpuq::remote
