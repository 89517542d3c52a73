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

/// What `gpuq --host` and the `gpuq serve` that ssh has started for it say to each other: over any
/// number of connections, one after the other, to one verb on the login host. Built as the frames
/// of frame.h; an unknown type is skipped, so either side may be newer.
///
/// Every byte of output and of input has an offset, from the start of the verb. Who comes back says
/// how far it has got, and the other side goes on there: nothing is lost, nothing comes twice.
namespace gpuq::wire::remote {

/// What serve writes before its first frame: a shell may have printed a greeting before it.
constexpr std::string_view k_marker = "\x1dgpuq-serve\x1d\n";
/// So much may stand before the marker.
constexpr std::size_t k_most_greeting = 256 << 10;
constexpr int k_version = 3;
constexpr int k_oldest_version = 1;
/// The first that knows Dial and what follows it.
constexpr int k_version_of_forwards = 2;
/// The first that says which signals have come.
constexpr int k_version_of_signals = 3;
/// Output on its way that nobody has taken: serve keeps it, and reads no more from the verb.
constexpr std::uint64_t k_output_room = 4 << 20;
/// The same of the input, in serve and in the client.
constexpr std::uint64_t k_input_room = 256 << 10;
/// The same of a connection that is forwarded, each way; and so many there may be at once.
constexpr std::uint64_t k_stream_room = 512 << 10;
constexpr std::size_t k_most_streams = 256;
constexpr std::size_t k_most_forwards = 32;
/// The name of a session: 128 random bits in hexadecimal digits.
constexpr std::size_t k_session_digits = 32;

/// True for what may be a session's name, and with that a file's.
bool is_session_name(std::string_view text);

/// The first bytes of a client as a word of a command line, where they arrive a round trip earlier:
/// sshd takes nothing for the command before it has started. They come once more with the others.
std::string word_of(std::string_view bytes);
/// Nothing: `text` is not such a word.
std::optional<std::string> bytes_of_word(std::string_view text);
/// The longest such word.
constexpr std::size_t k_longest_word = 4096;

// Client to serve.
/// First frame of every connection. Output is to be sent from these offsets on.
struct Open {
    int version = k_version;
    int oldest = k_oldest_version;
    std::string session;
    std::uint64_t out = 0, err = 0;
    std::chrono::milliseconds beat{1000}; ///< how often the client lets hear of itself
    /// Of the session, from 1. One that arrives after a later one is late and is left.
    std::uint32_t connection = 0;
    bool operator==(const Open&) const = default;
};
/// Start the verb: once in a session, when Hello has said that it is not known; `brief` ones
/// before.
struct Start {
    std::vector<std::string> words;
    std::string folder; ///< empty: the home
    std::vector<std::string> variables;
    std::array<bool, 3> terminals{}; ///< which of stdin, stdout, stderr are one
    bool raw = false; ///< the verb's terminal does what a terminal does; else the person's does it
    TerminalSize size{24, 80};
    std::chrono::seconds patience{0};  ///< without a connection the verb is hung up after that
    std::vector<std::string> forwards; ///< HOST:PORT, as seen from the node of the verb's run
    bool no_input = false;             ///< stdin is /dev/null, and no pipe at its end
    /// The verb only looks and ends soon. Start is sent together with Open, unless the session is
    /// known, and may arrive when the client has gone: the verb is hung up if nothing follows. The
    /// connection ends with Exit, which is not answered.
    bool brief = false;
    bool operator==(const Start&) const = default;
};
/// So much of the output has been shown, or can not be lost any more.
struct Taken {
    std::uint64_t out = 0, err = 0;
    bool operator==(const Taken&) const = default;
};
struct Input {
    std::uint64_t offset = 0;
    std::string bytes;
    bool operator==(const Input&) const = default;
};
struct InputEnd {
    std::uint64_t offset = 0;
    bool operator==(const InputEnd&) const = default;
};
struct Resize {
    TerminalSize size;
    bool redraw = false; ///< something has been written over what the verb has drawn
    bool operator==(const Resize&) const = default;
};
struct Signal {
    int number = 0;
    std::uint64_t place = 0; ///< the first of the session is 1; 0: of a client that does not count
    bool operator==(const Signal&) const = default;
};
/// Somebody has connected to a port here, who is to reach number `forward` of Start's. Streams live
/// as long as the connection; the client chooses their numbers, and never one twice.
struct Dial {
    std::uint32_t stream = 0;
    std::uint32_t forward = 0;
    bool operator==(const Dial&) const = default;
};
/// The client leaves and does not come back. A verb that has not ended is hung up.
struct Bye {
    bool operator==(const Bye&) const = default;
};

// Serve to client.
/// First frame of serve. Unknown session: no verb runs; Start makes one.
struct Hello {
    int version = k_version;
    std::string program; ///< gpuq's version there
    std::string host;
    bool known = false;
    std::uint64_t input = 0;   ///< so much of it has come
    std::uint64_t room = 0;    ///< and so much more may
    std::uint64_t signals = 0; ///< so many have come
    bool operator==(const Hello&) const = default;
};
struct Output {
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::string bytes;
    bool operator==(const Output&) const = default;
};
struct InputTaken {
    std::uint64_t offset = 0;
    std::uint64_t room = 0;
    bool operator==(const InputTaken&) const = default;
};
/// So many have come since the session began.
struct SignalTaken {
    std::uint64_t count = 0;
    bool operator==(const SignalTaken&) const = default;
};
/// The verb shows a run from these offsets of a link on: where to go on should serve be lost. Link
/// 0: the log, from its beginning.
struct Following {
    std::string key;
    std::uint32_t job = 0;
    int link = 1;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Following&) const = default;
};
/// What `connect --config` on the client's machine needs to know about a run there.
struct SshTarget {
    std::string key;
    std::uint32_t job = 0; ///< 0: it has none yet
    std::string user;      ///< who logs in
    bool operator==(const SshTarget&) const = default;
};
/// The verb has ended; all that it has written comes before.
struct Exit {
    int status = 0;
    std::uint64_t out = 0, err = 0;
    bool operator==(const Exit&) const = default;
};
/// In the place of anything else, and the last: why not, in a sentence.
struct Failure {
    Error::Kind kind = Error::Kind::internal;
    std::string text;
    bool operator==(const Failure&) const = default;
};

// Both ways.
/// Serve sends back what it was sent.
struct Beat {
    std::uint64_t number = 0;
    bool operator==(const Beat&) const = default;
};

struct StreamBytes {
    std::uint32_t stream = 0;
    std::string bytes;
    bool operator==(const StreamBytes&) const = default;
};
/// So many bytes more may come: k_stream_room at first.
struct StreamTaken {
    std::uint32_t stream = 0;
    std::uint32_t count = 0;
    bool operator==(const StreamTaken&) const = default;
};
/// No more bytes from this side; when both have said so, the stream is gone.
struct StreamEnd {
    std::uint32_t stream = 0;
    bool operator==(const StreamEnd&) const = default;
};
/// Gone at once, bytes on their way too; `why` for people, or empty.
struct StreamGone {
    std::uint32_t stream = 0;
    std::string why;
    bool operator==(const StreamGone&) const = default;
};

using Frame = std::variant<Open, Start, Taken, Input, InputEnd, Resize, Signal, Bye, Hello, Output,
                           InputTaken, Following, Exit, Failure, Beat, Dial, StreamBytes,
                           StreamTaken, StreamEnd, StreamGone, SignalTaken, SshTarget>;

/// What stands before the bytes of an Output, which follow without a copy of them being made.
std::string output_header(Stream stream, std::uint64_t offset, std::size_t size);

/// The bytes of a frame. Payloads beyond `k_max_payload` are a programming error.
std::string encode(const Frame& frame);

class Decoder : public FrameDecoder<Frame> {
public:
    Decoder();
};

/// Bytes of an Output, where they came: as valid as what was read.
struct OutputBytes {
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::string_view bytes;
};
/// Nothing: all of what has come is taken, and more is needed.
using Came = std::variant<std::monostate, OutputBytes, Frame>;

/// A Decoder that makes no copy of output: it gives it in the pieces that come. An Output without
/// bytes is a frame.
class OutputDecoder {
public:
    /// What is next in `bytes`, behind what was given before; takes it off their front. Errors of
    /// Decoder.
    Result<Came> take(std::string_view& bytes);

private:
    /// Whether so much of the frame is there.
    bool has(std::size_t size, std::string_view& bytes);

    std::string
        m_begun; ///< a frame that is not whole, or what stands before the bytes of an Output
    Stream m_stream = Stream::out;
    std::uint64_t m_offset = 0;
    std::size_t m_left = 0; ///< of that Output
    Decoder m_whole;
    bool m_broken = false;
};

/// Finds the marker in what comes from a shell that may have printed something before.
class Greeting {
public:
    /// What comes after the marker, once it has come. `internal` when there is more before it than
    /// any greeting has.
    Result<std::optional<std::string>> feed(std::string_view bytes);
    /// What has come instead.
    const std::string& text() const { return m_text; }

private:
    std::string m_text;
};

} // namespace gpuq::wire::remote
