// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/backlog.h"
#include "supervisor/descriptor.h"
#include "supervisor/history.h"
#include "wire/frame.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// One client: what it has sent, what it still has to get. Nothing here blocks, and what waits for
/// a client that does not read is one batch; it goes on from the backlog, or from the log, at its
/// own pace.
class Connection {
public:
    using Clock = std::chrono::steady_clock;

    /// A client of the socket: says with Attach who it is. A relay hands over the streams of its
    /// step: these are the connection then, and the socket shows that the relay lives.
    Connection(int id, Descriptor socket, Clock::time_point now);
    /// The standard streams, which are the first owner's from offset 0.
    Connection(int id, Descriptor input, Descriptor output, Clock::time_point now);

    int id() const { return m_id; }

    // Its input.
    /// -1 after its end.
    int input() const { return m_input_ended ? -1 : m_input.get(); }
    /// Reads what is there. False at the end of its input.
    bool receive();
    /// The next frame; an error is the end of the connection.
    Result<std::optional<wire::Frame>> next_frame() { return m_decoder.next(); }
    bool input_ended() const { return m_input_ended; }
    /// The standard streams are two pipes: output may go on without input.
    bool outlives_input() const { return m_output && !m_relay; }
    /// Readable when the relay is gone; -1 without one.
    int relay() const { return m_relay.get(); }

    // Who it is.
    std::optional<wire::Role> role() const { return m_role; }
    void attach(const wire::Attach& attach, const Backlog& backlog);
    /// It left on purpose.
    void leave() { m_left = true; }
    bool left() const { return m_left; }
    Clock::time_point since() const { return m_since; }

    // Its output.
    /// A frame other than output; sent before any later output.
    void send(const wire::Frame& frame) { m_frames += wire::encode(frame); }
    /// The frame after all output.
    void send_last(const wire::Frame& frame) { m_last = wire::encode(frame); }
    /// Keeps what it is sent until then, so that it goes in one piece with the first output, or
    /// with the end that comes within `for_end` of it.
    void hold(Clock::time_point until, Clock::duration for_end);
    std::optional<Clock::time_point> held_until() const { return m_held_until; }
    /// Writes on. False when the other end is gone.
    bool transmit(const Backlog& backlog, Clock::time_point now);
    /// There are bytes that the other end has not taken yet.
    bool has_unsent() const { return m_sent < m_batch.size(); }
    /// It waits for older bytes than memory holds, and nobody has been asked for them yet.
    bool wants_history() const { return m_in_history && !m_asked && m_pieces.empty(); }
    const Bookmark& bookmark() const { return m_bookmark; }
    void history_asked() { m_asked = true; }
    /// The client has read so much, and has room for more.
    void taken(const wire::OutputTaken& taken, Clock::time_point now);
    void history_came(const Bookmark& bookmark, std::vector<Piece> pieces, const Backlog& backlog);
    /// The first chunk in memory that it still needs.
    std::uint64_t needs(const Backlog& backlog) const
    {
        return m_in_history ? backlog.first() : m_next;
    }
    /// It has had bytes to take since `limit` ago, and took none.
    bool stalled(Clock::time_point now, std::chrono::milliseconds limit) const
    {
        return (has_unsent() || m_lacks_room) && now - m_progress > limit;
    }
    /// All, with the last frame, has been handed over.
    bool all_sent() const { return m_last_sent && !has_unsent(); }
    int output() const { return m_output ? m_output.get() : m_input.get(); }
    /// A pipe's reader has taken everything out of it; true for anything else.
    bool drained() const;

private:
    ssize_t read(char* bytes, std::size_t size);
    bool holds_back(const Backlog& backlog, Clock::time_point now);
    void fill(const Backlog& backlog);
    void fill_from_pieces();
    void fill_from_memory(const Backlog& backlog);
    std::uint64_t room() const;
    bool wants_output(const Backlog& backlog) const;
    /// As much of it as there is room for; how much that is.
    std::size_t add_output(Stream stream, std::uint64_t offset, std::string_view bytes);
    bool write_batch(Clock::time_point now);

    int m_id;
    Descriptor m_input, m_output; ///< a socket is both in m_input
    Descriptor m_relay;
    wire::Decoder m_decoder;
    std::optional<wire::Role> m_role;
    bool m_input_ended = false, m_left = false;
    Clock::time_point m_since, m_progress;

    std::optional<Clock::time_point> m_held_until;
    Clock::duration m_held_for_end{};
    bool m_held_output = false;
    std::string m_frames;              ///< to be sent before output
    std::optional<std::string> m_last; ///< to be sent after it
    std::string m_batch;
    std::size_t m_sent = 0;

    bool m_in_history = false, m_asked = false;
    Bookmark m_bookmark; ///< where the log's reader is; also this client's place in the streams
    std::vector<Piece> m_pieces;
    std::uint64_t m_next = 0; ///< chunk
    bool m_last_sent = false;

    std::uint64_t m_output_sent = 0;           ///< bytes of output in all frames so far
    std::optional<std::uint64_t> m_room_until; ///< in these bytes; unset: the client sets no limit
    bool m_lacks_room = false;                 ///< output waits for the client to say it has room
};

} // namespace gpuq::supervisor
