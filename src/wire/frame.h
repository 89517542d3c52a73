// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "core/run.h"
#include "wire/framing.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// The protocol between client and supervisor. It runs over the standard streams of the step that
/// started the supervisor, and over those of a relay step, which only copies bytes to and from the
/// supervisor's socket, and over a TCP connection if the user wants that.
///
/// wire/framing.h describes the encoding.
namespace gpuq::wire {

/// Maximum size of the output or input in one frame.
constexpr std::size_t k_piece = 64 << 10;
constexpr int k_version = 1;

/// The purpose of a connection.
enum class Role : std::uint8_t {
    owner,  ///< started the run: its input goes to the program
    viewer, ///< reads only
    guard,  ///< frees the allocation when the supervisor dies without sending Ended
};
constexpr Role last_of(Role)
{
    return Role::guard;
}

// Client to supervisor.
/// Used as an offset: only output written from now on.
constexpr std::uint64_t k_from_now = ~std::uint64_t{0};
/// First frame of a client. Output is sent starting at these offsets. The step's own streams need
/// no Attach: they are an owner at offset 0.
struct Attach {
    static constexpr std::uint8_t k_type = 1;
    int version = k_version;
    Role role = Role::viewer;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Attach&) const = default;
};
/// Bytes for the program's stdin. `offset` counts from the start of the run, so bytes that are
/// resent after a change of relay are used only once.
struct Stdin {
    static constexpr std::uint8_t k_type = 2;
    std::uint64_t offset = 0;
    Rest bytes;
    bool operator==(const Stdin&) const = default;
};
struct StdinEnd {
    static constexpr std::uint8_t k_type = 3;
    std::uint64_t offset = 0;
    bool operator==(const StdinEnd&) const = default;
};
/// Deliver a signal to the program's process group, once: the client sends it over each of its
/// connections until SignalTaken confirms it, since any of them may be broken unnoticed.
struct Signal {
    static constexpr std::uint8_t k_type = 4;
    std::uint64_t client = 0; ///< identifies the client across its connections
    std::uint64_t place = 0;  ///< the client's first signal is 1
    int number = 0;
    bool operator==(const Signal&) const = default;
};
/// End the run, as stopped by its owner.
struct Stop {
    static constexpr std::uint8_t k_type = 5;
    std::string by;
    bool operator==(const Stop&) const = default;
};
/// Flow control for this connection: the client has read `bytes` bytes of output and accepts `room`
/// more. After the first such frame the supervisor keeps to this window. It ensures that the output
/// left unread by a stopped client fits into the client's own pipe; otherwise the Slurm processes
/// in between would delay the end of the job, and the release of its node, by up to a minute.
struct OutputTaken {
    static constexpr std::uint8_t k_type = 7;
    std::uint64_t bytes = 0;
    std::uint64_t room = 0;
    bool operator==(const OutputTaken&) const = default;
};
/// This connection ends in a terminal of the given size, and its input is typed at that terminal.
/// Sent after Attach and again whenever the size changes; only used if the program has a terminal.
struct Terminal {
    static constexpr std::uint8_t k_type = 8;
    std::uint64_t client = 0; ///< identifies the client across its connections: Stdin offsets are
                              ///< counted per client
    TerminalSize size;
    bool redraw = false; ///< a new client: send it the screen
    bool operator==(const Terminal&) const = default;
};
/// Disconnects all other clients, except guards and an owner that feeds piped input.
struct Take {
    static constexpr std::uint8_t k_type = 9;
    std::string by;
    bool operator==(const Take&) const = default;
};
/// Sent instead of Attach, as the only frame: a message for the journal about another user, found
/// on this node by another process of the run (Event::Kind::other_user).
struct Report {
    static constexpr std::uint8_t k_type = 10;
    std::string text;
    bool operator==(const Report&) const = default;
};
/// First frame of a client over the network, where the other end could be anybody. Each end proves
/// that it can read the secret of the run's state directory (runs/records/network_login.h), before
/// it accepts anything else: Challenge, Proof, Answer, and then Attach.
struct Challenge {
    static constexpr std::uint8_t k_type = 11;
    std::string nonce;
    bool operator==(const Challenge&) const = default;
};
struct Answer {
    static constexpr std::uint8_t k_type = 12;
    std::string tag;
    bool operator==(const Answer&) const = default;
};
/// The client leaves on purpose: silence of an owner after this frame does not mean that it died.
/// If it has not sent the end of its piped input, the rest of the input is lost.
struct Bye {
    static constexpr std::uint8_t k_type = 6;
    bool operator==(const Bye&) const = default;
};

// Supervisor to client.
/// First frame of a supervisor.
struct Hello {
    static constexpr std::uint8_t k_type = 65;
    int version = k_version;
    std::string key;
    int link = 1;
    std::uint32_t job = 0;
    std::string host;
    bool operator==(const Hello&) const = default;
};
/// The program has been started (or Ended follows immediately).
struct Started {
    static constexpr std::uint8_t k_type = 66;
    int pid = 0;
    bool operator==(const Started&) const = default;
};
/// Output of the program; `offset` is the position of the first byte in its stream.
struct Output {
    static constexpr std::uint8_t k_type = 67;
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    Rest bytes;
    bool operator==(const Output&) const = default;
};
/// Input up to `offset` is safe in the supervisor; `room` more bytes may be in flight.
struct StdinTaken {
    static constexpr std::uint8_t k_type = 68;
    std::uint64_t offset = 0;
    std::uint64_t room = 0;
    bool operator==(const StdinTaken&) const = default;
};
/// The client's signals up to this one have reached the program.
struct SignalTaken {
    static constexpr std::uint8_t k_type = 75;
    std::uint64_t place = 0;
    bool operator==(const SignalTaken&) const = default;
};
/// A one-line message from gpuq to the user (a time warning, lost output).
struct Note {
    static constexpr std::uint8_t k_type = 69;
    std::string text;
    bool operator==(const Note&) const = default;
};
/// Bytes for a new client's terminal, to be written before anything else: the terminal modes set by
/// the program, and the last lines. Not part of the output.
struct Screen {
    static constexpr std::uint8_t k_type = 71;
    Rest bytes;
    bool operator==(const Screen&) const = default;
};
/// Another client has sent Take; no more frames follow.
struct Taken {
    static constexpr std::uint8_t k_type = 72;
    std::string by;
    bool operator==(const Taken&) const = default;
};
/// Sent instead of Hello: the supervisor cannot accept another client. `why` is a sentence; the
/// connection ends.
struct Refused {
    static constexpr std::uint8_t k_type = 73;
    std::string why;
    bool operator==(const Refused&) const = default;
};
/// The answer to a Challenge, and the supervisor's own.
struct Proof {
    static constexpr std::uint8_t k_type = 74;
    std::string nonce;
    std::string tag;
    bool operator==(const Proof&) const = default;
};
/// The end of the run. All output is sent before this frame.
struct Ended {
    static constexpr std::uint8_t k_type = 70;
    Ending ending;
    std::uint64_t out = 0, err = 0;
    std::string last_lines;
    /// How much of the piped input the program has read; k_unknown if the end is known only from
    /// the records on disk.
    static constexpr std::uint64_t k_unknown = ~std::uint64_t{0};
    std::uint64_t stdin_read = k_unknown;
    bool operator==(const Ended&) const = default;
};

using Frame = std::variant<Attach, Stdin, StdinEnd, Signal, Stop, OutputTaken, Terminal, Take,
                           Report, Challenge, Answer, Bye, Hello, Started, Output, StdinTaken,
                           SignalTaken, Note, Screen, Taken, Refused, Proof, Ended>;

/// Encodes a frame. A payload larger than `k_max_payload` is a programming error.
std::string encode(const Frame& frame);

/// A frame of an unassigned type whose last byte is a newline. slurmstepd holds back everything
/// after the last newline of a step's stdout until the next one arrives, so a process that writes
/// through a step ends each batch of frames with this one.
constexpr std::string_view k_flush{"\0\1\0\0\0\n", k_header + 1};

using Decoder = FrameDecoder<Frame>;

} // namespace gpuq::wire

extern template class gpuq::wire::FrameDecoder<gpuq::wire::Frame>;
