// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/client/connection.h"
#include "core/run.h"
#include "io/event_loop.h"
#include "runs/records/input_buffer.h"
#include "term/escape_keys.h"
#include "term/raw_terminal.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpuq::cli {

/// Standard input of a client of a run, typed or piped: its bytes are kept until the supervisor has
/// acknowledged them. Recognises the keys by which the user detaches.
class StdinReader {
public:
    struct Options {
        bool is_owner = false; ///< SessionOptions::Part::owner
        LinkNumber link;
        DetachKey detach_key;
    };
    struct Events {
        /// Prints a message.
        std::function<void(const std::string&)> print_message;
        /// Ends the session.
        std::function<void(ExitStatus)> leave;
        /// There are bytes, or the end, to be sent.
        std::function<void()> send;
        /// The program did not read this many bytes from a pipe: true if serve gives them back.
        std::function<bool(std::uint64_t)> return_to_serve;
    };
    /// The references must outlive the object.
    StdinReader(EventLoop& loop, const Run& run, const RawTerminal& terminal, Options options,
                Events events);

    /// True if stdin should be read now: not in the background of a terminal, for example.
    bool wants_more() const;
    /// Reads the available bytes; to be called when stdin is readable.
    void read();
    /// Queues as many bytes as the supervisor has room for.
    void send(Connection& connection);
    void taken(const wire::StdinTaken& taken) { m_buffer.taken(taken); }
    /// For a new connection: bytes not yet acknowledged are sent again.
    void restart() { m_buffer.restart(); }
    /// True if the program would take incomplete input for complete input if the user left now.
    bool is_incomplete() const;
    /// The user leaves: stops waiting for the rest of a key.
    void stop() { m_keys_timer.stop(); }
    /// The program has ended and has read this many bytes. The offset of a file is set back, as if
    /// the program itself had read the file; bytes from a pipe are lost.
    void return_unread(std::uint64_t read) const;

private:
    bool has_terminal() const { return m_run.request.pty.has_value(); }
    bool feeds() const;
    void leave_unread();
    void refuse();
    void on_end(ssize_t count, int error);
    void on_typed(std::string_view bytes);
    void on_keys(const EscapeKeys::Found& found);
    void release_keys();

    const Run& m_run;
    const RawTerminal& m_terminal;
    Options m_options;
    Events m_events;
    InputBuffer m_buffer;
    std::optional<off_t> m_begin; ///< initial offset of stdin, if it is a file
    EscapeKeys m_keys;
    EventLoop::Timer m_keys_timer; ///< to stop waiting for the rest of a key
    bool m_refused = false;
    bool m_gone = false; ///< not read any more, without an end of the input
};

} // namespace gpuq::cli
