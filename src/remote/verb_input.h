// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "io/event_loop.h"
#include "wire/remote_frame.h"

#include <cstdint>
#include <functional>
#include <string>

namespace gpuq::remote {

/// Input from the client on its way to the verb (holder.h). Each byte is taken once, even if a new
/// connection repeats it, and confirmed when it is taken; at most k_input_room bytes wait for the
/// verb.
class VerbInput {
public:
    /// `confirm` sends a frame to the client; false if none is connected.
    VerbInput(EventLoop& loop, std::function<bool(const wire::remote::InputTaken&)> confirm);

    /// Writes to `pipe` from now on, or else to `terminal`, in which a line ends the input unless
    /// it is `raw`. `none`: the verb has no input, and received bytes are discarded.
    void begin(Descriptor pipe, int terminal, bool raw, bool none);
    /// `internal` for bytes that do not follow those taken before, or that exceed the room.
    Result<void> take(const wire::remote::Input& input);
    void end(const wire::remote::InputEnd& end);

    /// The values for Hello to a new connection, after which nothing is left to confirm.
    std::uint64_t taken() const { return m_taken; }
    std::uint64_t room() const { return wire::remote::k_input_room - m_waiting.size(); }
    void confirmed_by_hello();

    /// Bytes that the verb has read. To be called when it has ended.
    std::uint64_t read_by_verb() const;

private:
    bool is_closed() const { return m_there < 0; }
    void write();
    void write_end();
    void close();
    void confirm_soon();
    void confirm();

    std::function<bool(const wire::remote::InputTaken&)> m_confirm;
    EventLoop::Timer m_confirm_timer;
    Descriptor m_pipe;
    Descriptor m_closed_pipe; ///< the other end of the pipe whose end was written
    std::uint64_t m_written = 0;
    std::uint64_t m_unread = 0; ///< written, but in the pipe when the verb closed it
    int m_there = -1;           ///< the pipe or the terminal; -1 when closed
    bool m_raw = false;
    bool m_line_is_complete = true; ///< the last byte written ended a line
    bool m_over = false;            ///< InputEnd received
    std::string m_waiting;
    std::uint64_t m_taken = 0;
    std::uint64_t m_confirmed_taken = 0, m_confirmed_room = wire::remote::k_input_room;
};

} // namespace gpuq::remote
