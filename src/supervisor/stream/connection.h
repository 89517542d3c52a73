// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/descriptor.h"
#include "supervisor/stream/backlog.h"
#include "supervisor/stream/history.h"
#include "wire/frame.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::supervisor {

/// One client: the frames it has sent and the frames it has yet to receive. Nothing here blocks.
/// For a client that does not read, only one batch is buffered; later it continues from the backlog
/// or from the log, at its own pace.
class Connection {
public:
    using Clock = std::chrono::steady_clock;

    /// A client of the socket, which introduces itself with Attach. A relay hands over the streams
    /// of its step: these then become the connection, and the socket shows whether the relay lives.
    Connection(int id, Descriptor socket, Clock::time_point now);
    /// The standard streams; they belong to the first owner and start at offset 0.
    Connection(int id, Descriptor input, Descriptor output, Clock::time_point now);

    int id() const { return m_id; }

    // Input from the client.
    /// -1 after the end of input.
    int input() const { return m_input_ended ? -1 : m_input.get(); }
    /// Reads available bytes. False at the end of input.
    bool receive();
    /// The next frame. After an error the connection should be closed.
    Result<std::optional<wire::Frame>> next_frame() { return m_decoder.next(); }
    /// Number of bytes received of a frame that is not complete.
    std::size_t unread() const { return m_decoder.unread(); }
    bool input_ended() const { return m_input_ended; }
    /// True if the streams are two pipes of a step: output may continue after the end of input.
    bool outlives_input() const { return m_output && !m_relay; }
    /// Readable once the relay is gone; -1 without a relay.
    int relay() const { return m_relay.get(); }

    // The client's role.
    std::optional<wire::Role> role() const { return m_role; }
    void attach(const wire::Attach& attach, const Backlog& backlog);
    /// Marks that the client left on purpose.
    void leave() { m_left = true; }
    bool left() const { return m_left; }
    Clock::time_point since() const { return m_since; }

    // Output to the client.
    /// Queues a frame other than output; it is sent before any later output.
    void send(const wire::Frame& frame) { m_frames += wire::encode(frame); }
    /// Sets the frame that follows all output.
    void send_last(const wire::Frame& frame) { m_last = wire::encode(frame); }
    /// Holds back all frames until `until`, so that they are sent together with the first output.
    /// Once there is output, it is held for up to `for_end`, so that the end can join it.
    void hold(Clock::time_point until, Clock::duration for_end);
    std::optional<Clock::time_point> held_until() const { return m_hold.until; }
    /// Writes as much as possible. False if the other end is gone.
    bool transmit(const Backlog& backlog, Clock::time_point now);
    /// True if there are bytes that the other end has not taken yet.
    bool has_unsent() const { return m_sent < m_batch.size(); }
    /// True if the client needs older bytes than memory holds, and they have not been requested.
    bool wants_history() const { return m_in_history && !m_asked && m_pieces.empty(); }
    const Bookmark& bookmark() const { return m_bookmark; }
    void history_asked() { m_asked = true; }
    /// Sets the flow control window from the client's report.
    void taken(const wire::OutputTaken& taken, Clock::time_point now);
    void history_came(const Bookmark& bookmark, std::vector<Piece> pieces, const Backlog& backlog);
    /// The first chunk in memory that the client still needs.
    std::uint64_t needs(const Backlog& backlog) const
    {
        return m_in_history ? backlog.first() : m_next;
    }
    /// True if there have been bytes to take for longer than `limit`, and the client took none.
    bool stalled(Clock::time_point now, std::chrono::milliseconds limit) const
    {
        return (has_unsent() || m_lacks_room) && now - m_progress > limit;
    }
    /// True if everything, including the last frame, has been handed over.
    bool all_sent() const { return m_last_sent && !has_unsent(); }
    int output() const { return m_output ? m_output.get() : m_input.get(); }
    /// True if the reader of a pipe has emptied it; also true for anything else.
    bool drained() const;

private:
    ssize_t read(char* bytes, std::size_t size);
    bool holds_back(const Backlog& backlog, Clock::time_point now);
    void fill(const Backlog& backlog);
    void fill_from_pieces();
    void fill_from_memory(const Backlog& backlog);
    std::uint64_t room() const;
    bool wants_output(const Backlog& backlog) const;
    /// Appends as many of the bytes as the window allows; returns their number.
    std::size_t add_output(Stream stream, std::uint64_t offset, std::string_view bytes);
    bool write_batch(Clock::time_point now);

    int m_id;
    Descriptor m_input, m_output; ///< a socket is in m_input and serves for both
    Descriptor m_relay;
    wire::Decoder m_decoder;
    std::optional<wire::Role> m_role;
    bool m_input_ended = false, m_left = false;
    Clock::time_point m_since, m_progress;

    struct Hold {
        std::optional<Clock::time_point> until;
        Clock::duration for_end{};
        bool has_output = false; ///< waits for the end
    };
    Hold m_hold;
    std::string m_frames;              ///< to be sent before output
    std::optional<std::string> m_last; ///< to be sent after output
    std::string m_batch;
    std::size_t m_sent = 0;

    bool m_in_history = false, m_asked = false;
    Bookmark m_bookmark; ///< position of the log's reader, and of this client in the streams
    std::vector<Piece> m_pieces;
    std::uint64_t m_next = 0; ///< number of the next chunk
    bool m_last_sent = false;

    std::uint64_t m_output_sent = 0;           ///< bytes of output in all frames so far
    std::optional<std::uint64_t> m_room_until; ///< window limit, counted like m_output_sent; unset:
                                               ///< no limit
    bool m_lacks_room = false;                 ///< output waits for the client to open its window
};

} // namespace gpuq::supervisor
