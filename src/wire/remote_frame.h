// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/run.h"
#include "wire/frame.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The protocol between `gpuq --host` and the `gpuq serve` that ssh starts for it. A session runs
/// one verb on the login host over any number of successive connections. Frames are encoded as in
/// frame.h; unknown types are skipped, so either side may be newer.
///
/// Every byte of output and input has an offset, counted from the start of the verb. A client that
/// reconnects sends the offsets it has reached and the other side continues from them, so nothing
/// is lost or repeated.
namespace gpuq::wire::remote {

/// Written by serve before its first frame, because a shell may have printed a greeting.
constexpr std::string_view k_marker = "\x1dgpuq-serve\x1d\n";
/// Maximum number of bytes before the marker.
constexpr std::size_t k_most_greeting = 256 << 10;
constexpr int k_version = 1;
constexpr int k_oldest_version = 1;
/// Limit of unacknowledged output: serve keeps that much and then stops reading from the verb.
constexpr std::uint64_t k_output_room = 4 << 20;
/// Limit of unacknowledged input, in serve and in the client.
constexpr std::uint64_t k_input_room = 256 << 10;
/// Limit of unacknowledged bytes in each direction of a forwarded connection. The other two limit
/// the number of open streams and of forwards.
constexpr std::uint64_t k_stream_room = 512 << 10;
constexpr std::size_t k_most_streams = 256;
constexpr std::size_t k_most_forwards = 32;
/// Length of a session name: 128 random bits in hexadecimal digits.
constexpr std::size_t k_session_digits = 32;

/// True if `text` is a valid session name, and therefore safe as a file name.
bool is_session_name(std::string_view text);

/// Encodes the client's first bytes as a command-line argument, which saves a round trip: sshd
/// accepts no input for the command before starting it. The bytes are sent again on the connection.
std::string escape_argument(std::string_view bytes);
/// Decodes such an argument; nullopt if `text` is not one.
std::optional<std::string> unescape_argument(std::string_view text);
/// Maximum length of such an argument.
constexpr std::size_t k_longest_argument = 4096;

// Client to serve.
/// First frame of every connection. Output is sent starting at these offsets.
struct Open {
    static constexpr std::uint8_t k_type = 1;
    int version = k_version;
    int oldest = k_oldest_version;
    std::string session;
    std::uint64_t out = 0, err = 0;
    std::chrono::milliseconds beat{1000}; ///< the client's heartbeat interval
    /// Number of the connection within the session, from 1. If a connection with a higher number
    /// has already arrived, this one is stale and is dropped.
    std::uint32_t connection = 0;
    bool operator==(const Open&) const = default;
};
/// Starts the verb, once per session: sent after Hello has reported that the session is unknown, or
/// before Hello if `brief`.
struct Start {
    static constexpr std::uint8_t k_type = 2;
    std::vector<std::string> arguments;
    std::string directory; ///< empty: the home directory
    std::vector<std::string> variables;
    std::array<bool, 3> terminals{}; ///< whether stdin, stdout, stderr are terminals
    bool raw = false; ///< the verb's terminal processes input and output; otherwise the user's
                      ///< terminal does
    TerminalSize size{24, 80};
    std::chrono::seconds patience{0};  ///< without a connection the verb is hung up after this time
    std::vector<std::string> forwards; ///< HOST:PORT, as seen from the node of the verb's run
    bool no_input = false;             ///< stdin is /dev/null, not a pipe at its end
    /// The verb only reads state and ends soon. Until the session is known, Start is sent together
    /// with Open and may arrive after the client has left: the verb is hung up if nothing follows.
    /// The connection ends with Exit, which is not acknowledged.
    bool brief = false;
    bool operator==(const Start&) const = default;
};
/// Output up to these offsets has been shown or cannot be lost any more.
struct Taken {
    static constexpr std::uint8_t k_type = 3;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Taken&) const = default;
};
struct Input {
    static constexpr std::uint8_t k_type = 4;
    std::uint64_t offset = 0;
    Rest bytes;
    bool operator==(const Input&) const = default;
};
struct InputEnd {
    static constexpr std::uint8_t k_type = 5;
    std::uint64_t offset = 0;
    bool operator==(const InputEnd&) const = default;
};
struct Resize {
    static constexpr std::uint8_t k_type = 6;
    TerminalSize size;
    bool redraw = false; ///< something has overwritten the verb's output on the screen
    bool operator==(const Resize&) const = default;
};
struct Signal {
    static constexpr std::uint8_t k_type = 7;
    int number = 0;
    std::uint64_t place = 0; ///< the session's first signal is 1
    bool operator==(const Signal&) const = default;
};
/// A process has connected to a local port of the client; serve connects it to entry `forward` of
/// Start's list. Streams live as long as the connection; the client chooses their numbers and never
/// reuses one.
struct Dial {
    static constexpr std::uint8_t k_type = 9;
    std::uint32_t stream = 0;
    std::uint32_t forward = 0;
    bool operator==(const Dial&) const = default;
};
/// The client leaves for good. If the verb has not ended, it is hung up.
struct Bye {
    static constexpr std::uint8_t k_type = 8;
    bool operator==(const Bye&) const = default;
};

// Serve to client.
/// First frame of serve. For an unknown session no verb is running; Start creates one.
struct Hello {
    static constexpr std::uint8_t k_type = 65;
    int version = k_version;
    std::string program; ///< gpuq's version on the login host
    std::string host;
    bool known = false;
    std::uint64_t input = 0;   ///< bytes of input received
    std::uint64_t room = 0;    ///< bytes of input that may follow
    std::uint64_t signals = 0; ///< signals received
    bool operator==(const Hello&) const = default;
};
struct Output {
    static constexpr std::uint8_t k_type = 66;
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    Rest bytes;
    bool operator==(const Output&) const = default;
};
struct InputTaken {
    static constexpr std::uint8_t k_type = 67;
    std::uint64_t offset = 0;
    std::uint64_t room = 0;
    bool operator==(const InputTaken&) const = default;
};
/// Number of signals received since the session began.
struct SignalTaken {
    static constexpr std::uint8_t k_type = 71;
    std::uint64_t count = 0;
    bool operator==(const SignalTaken&) const = default;
};
/// The verb is showing a run from these offsets of a link: the position to resume from if serve is
/// lost. Link 0: the log, from its beginning.
struct Following {
    static constexpr std::uint8_t k_type = 68;
    std::string key;
    std::uint32_t job = 0;
    int link = 1;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Following&) const = default;
};
/// Data about a run that `connect --config` needs on the client's machine.
struct SshTarget {
    static constexpr std::uint8_t k_type = 72;
    std::string key;
    std::uint32_t job = 0; ///< 0: no job yet
    std::string user;      ///< the login name
    bool operator==(const SshTarget&) const = default;
};
/// The verb has ended. All its output is sent before this frame.
struct Exit {
    static constexpr std::uint8_t k_type = 69;
    int status = 0;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Exit&) const = default;
};
/// How many bytes of input the verb, or the program it shows, has read. Sent before Exit if there
/// was input.
struct InputRead {
    static constexpr std::uint8_t k_type = 73;
    std::uint64_t count = 0;
    bool operator==(const InputRead&) const = default;
};
/// Sent instead of any other frame, as the last one: the reason, in a sentence.
struct Failure {
    static constexpr std::uint8_t k_type = 70;
    Error::Kind kind = Error::Kind::internal;
    std::string text;
    bool operator==(const Failure&) const = default;
};

// Both ways.
/// Serve returns each heartbeat unchanged.
struct Beat {
    static constexpr std::uint8_t k_type = 32;
    std::uint64_t number = 0;
    bool operator==(const Beat&) const = default;
};

struct StreamBytes {
    static constexpr std::uint8_t k_type = 33;
    std::uint32_t stream = 0;
    Rest bytes;
    bool operator==(const StreamBytes&) const = default;
};
/// The receiver accepts `count` more bytes; the initial window is k_stream_room.
struct StreamTaken {
    static constexpr std::uint8_t k_type = 34;
    std::uint32_t stream = 0;
    std::uint32_t count = 0;
    bool operator==(const StreamTaken&) const = default;
};
/// No more bytes from this side. When both sides have sent it, the stream is closed.
struct StreamEnd {
    static constexpr std::uint8_t k_type = 35;
    std::uint32_t stream = 0;
    bool operator==(const StreamEnd&) const = default;
};
/// The stream is closed at once and bytes in flight are dropped; `why` is a message for the user or
/// empty.
struct StreamClosed {
    static constexpr std::uint8_t k_type = 36;
    std::uint32_t stream = 0;
    std::string why;
    bool operator==(const StreamClosed&) const = default;
};

using Frame = std::variant<Open, Start, Taken, Input, InputEnd, Resize, Signal, Bye, Hello, Output,
                           InputTaken, Following, Exit, Failure, Beat, Dial, StreamBytes,
                           StreamTaken, StreamEnd, StreamClosed, SignalTaken, SshTarget, InputRead>;

/// The bytes that precede the content of an Output frame, so that the content can follow without
/// being copied.
std::string output_header(Stream stream, std::uint64_t offset, std::size_t size);

/// Encodes a frame. A payload larger than `k_max_payload` is a programming error.
std::string encode(const Frame& frame);

using Decoder = FrameDecoder<Frame>;

/// Content of an Output frame, not copied: valid as long as the buffer that was read.
struct OutputBytes {
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::string_view bytes;
};
/// Monostate: everything received is consumed, and more bytes are needed.
using Came = std::variant<std::monostate, OutputBytes, Frame>;

/// A Decoder that does not copy output but passes it on in the pieces that arrive. An Output
/// without bytes is returned as a frame.
class OutputDecoder {
public:
    /// Returns the next item in `bytes` and removes it from their front. Fails as Decoder does.
    Result<Came> take(std::string_view& bytes);

private:
    /// Collects bytes until `size` bytes of the frame are present; false if more are needed.
    bool has(std::size_t size, std::string_view& bytes);

    std::string m_begun; ///< an incomplete frame, or the part of an Output before its content
    Stream m_stream = Stream::out;
    std::uint64_t m_offset = 0;
    std::size_t m_left = 0; ///< bytes of that Output still to come
    Decoder m_whole;
    bool m_broken = false;
};

/// Finds the marker in the output of a shell that may have printed something before it.
class Greeting {
public:
    /// Returns the bytes after the marker once it has arrived. `internal` if more than
    /// `k_most_greeting` bytes precede it.
    Result<std::optional<std::string>> feed(std::string_view bytes);
    /// The text before the marker, or everything received so far.
    const std::string& text() const { return m_text; }

private:
    std::string m_text;
};

} // namespace gpuq::wire::remote

extern template class gpuq::wire::FrameDecoder<gpuq::wire::remote::Frame>;
