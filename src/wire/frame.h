// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "core/run.h"
#include "wire/payload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// What a client and a supervisor say to each other: over the standard streams of the step that
/// started the supervisor, and over those of a relay step, which only copies bytes to and from
/// the supervisor's socket.
///
/// On the wire: wire/payload.h.
namespace gpuq::wire {

/// The largest piece of output or input in one frame.
constexpr std::size_t k_piece = 64 << 10;
constexpr int k_version = 1;

/// What a connection is for.
enum class Role : std::uint8_t {
    owner,  ///< started the run: its input goes to the program
    viewer, ///< reads only
    guard,  ///< frees the allocation when the supervisor dies without saying goodbye
};

// Client to supervisor.
/// In the place of an offset: nothing of what was written before now.
constexpr std::uint64_t k_from_now = ~std::uint64_t{0};
/// First frame of a client. Output is sent from these offsets on. On the step's own streams no
/// Attach is needed: it is an owner from offset 0.
struct Attach {
    int version = k_version;
    Role role = Role::viewer;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Attach&) const = default;
};
/// Bytes for the program's stdin; `offset` counts from the start of the run, so that bytes sent
/// again after a change of relay are taken once.
struct Stdin {
    std::uint64_t offset = 0;
    std::string bytes;
    bool operator==(const Stdin&) const = default;
};
struct StdinEnd {
    std::uint64_t offset = 0;
    bool operator==(const StdinEnd&) const = default;
};
/// Deliver a signal to the program's process group.
struct Signal {
    int number = 0;
    bool operator==(const Signal&) const = default;
};
/// End the run, as stopped by its owner.
struct Stop {
    std::string by;
    bool operator==(const Stop&) const = default;
};
/// Of this connection: so many bytes of output have been read, and `room` more may be on their way.
/// A client that says it once limits what it is sent from then on. With it, what a client that has
/// stopped reading leaves unread fits into its own pipe: Slurm's processes in between would keep a
/// job, and its node, from ending for a minute.
struct OutputTaken {
    std::uint64_t bytes = 0;
    std::uint64_t room = 0;
    bool operator==(const OutputTaken&) const = default;
};
/// This connection ends in a terminal of that size, and what it sends is typed there. Said after
/// Attach, and again when the size changes; only where the program has a terminal.
struct Terminal {
    std::uint64_t client = 0; ///< the same over all connections of a client: Stdin's offsets
                              ///< count for each client by itself
    TerminalSize size;
    bool redraw = false; ///< a new client: show it the screen
    bool operator==(const Terminal&) const = default;
};
/// All other clients are to leave.
struct Take {
    std::string by;
    bool operator==(const Take&) const = default;
};
/// In the place of Attach, and the last: something for the journal that another process of the run
/// has found on this node, of another user (Event::Kind::other_user).
struct Report {
    std::string text;
    bool operator==(const Report&) const = default;
};
/// A client leaves on purpose: an owner's silence from here on is not a death. One that has not
/// sent the end of its piped input will not come again to send it.
struct Bye {
    bool operator==(const Bye&) const = default;
};

// Supervisor to client.
/// First frame of a supervisor.
struct Hello {
    int version = k_version;
    std::string key;
    int link = 1;
    std::uint32_t job = 0;
    std::string host;
    bool operator==(const Hello&) const = default;
};
/// The program has been started (or Ended follows at once).
struct Started {
    int pid = 0;
    bool operator==(const Started&) const = default;
};
/// Output of the program; `offset` is that of the first byte in its stream.
struct Output {
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::string bytes;
    bool operator==(const Output&) const = default;
};
/// Input up to here is safe in the supervisor; `room`: how much more may be in flight.
struct StdinTaken {
    std::uint64_t offset = 0;
    std::uint64_t room = 0;
    bool operator==(const StdinTaken&) const = default;
};
/// One line of gpuq's own for people (a time warning, lost output).
struct Note {
    std::string text;
    bool operator==(const Note&) const = default;
};
/// What a new client's terminal is to be given before anything else: the modes that the program
/// has set, and the last lines. No part of the output.
struct Screen {
    std::string bytes;
    bool operator==(const Screen&) const = default;
};
/// Another client has said Take; nothing more comes.
struct Taken {
    std::string by;
    bool operator==(const Taken&) const = default;
};
/// In the place of Hello: nobody more can be let in. Why, in a sentence; the connection ends.
struct Refused {
    std::string why;
    bool operator==(const Refused&) const = default;
};
/// The end: all output has been sent before it.
struct Ended {
    Ending ending;
    std::uint64_t out = 0, err = 0;
    std::string last_lines;
    /// How much of its piped input the program has read; k_unknown: an older supervisor.
    static constexpr std::uint64_t k_unknown = ~std::uint64_t{0};
    std::uint64_t stdin_read = k_unknown;
    bool operator==(const Ended&) const = default;
};

using Frame =
    std::variant<Attach, Stdin, StdinEnd, Signal, Stop, OutputTaken, Terminal, Take, Report, Bye,
                 Hello, Started, Output, StdinTaken, Note, Screen, Taken, Refused, Ended>;

/// The bytes of a frame. Payloads beyond `k_max_payload` are a programming error.
std::string encode(const Frame& frame);

/// A frame of a type that nobody knows, whose last byte is a newline. slurmstepd keeps what follows
/// the last newline of a step's stdout until there is another: who writes through a step ends
/// each batch of frames with it.
constexpr std::string_view k_flush{"\0\1\0\0\0\n", k_header + 1};

class Decoder : public FrameDecoder<Frame> {
public:
    Decoder();
};

} // namespace gpuq::wire
