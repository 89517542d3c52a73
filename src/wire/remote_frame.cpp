// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/remote_frame.h"

#include "wire/payload.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gpuq::wire::remote {
namespace {

// These numbers are the protocol: never reuse one, add fields only at the end of a payload.
enum class Type : std::uint8_t {
    open = 1,
    start = 2,
    taken = 3,
    input = 4,
    input_end = 5,
    resize = 6,
    signal = 7,
    bye = 8,
    dial = 9,
    beat = 32,
    stream_bytes = 33,
    stream_taken = 34,
    stream_end = 35,
    stream_closed = 36,
    hello = 65,
    output = 66,
    input_taken = 67,
    following = 68,
    exit = 69,
    failure = 70,
    signal_taken = 71,
    ssh_target = 72,
};

constexpr std::uint8_t k_streams = 2;
constexpr std::string_view k_hex = "0123456789abcdef";
constexpr std::uint8_t k_error_kinds = static_cast<std::uint8_t>(Error::Kind::internal) + 1;

PayloadWriter begin(Type type)
{
    return PayloadWriter(static_cast<std::uint8_t>(type));
}

void add(PayloadWriter& out, const std::vector<std::string>& texts)
{
    out.number(static_cast<std::uint32_t>(texts.size()));
    for (const std::string& text : texts) {
        out.text(text);
    }
}

std::vector<std::string> texts(PayloadReader& in)
{
    std::vector<std::string> found;
    for (auto left = in.number<std::uint32_t>(); left > 0 && in.ok(); --left) {
        found.push_back(in.text());
    }
    return found;
}

void add(PayloadWriter& out, const TerminalSize& size)
{
    out.number(static_cast<std::uint16_t>(size.rows))
        .number(static_cast<std::uint16_t>(size.columns));
}

TerminalSize size_from(PayloadReader& in)
{
    TerminalSize size;
    size.rows = in.number<std::uint16_t>();
    size.columns = in.number<std::uint16_t>();
    return size;
}

std::string bytes_of(const Open& frame)
{
    return begin(Type::open)
        .number(std::int32_t{frame.version})
        .number(std::int32_t{frame.oldest})
        .text(frame.session)
        .number(frame.out)
        .number(frame.err)
        .number(static_cast<std::uint32_t>(frame.beat.count()))
        .number(frame.connection)
        .frame();
}

std::string bytes_of(const Start& frame)
{
    PayloadWriter out = begin(Type::start);
    add(out, frame.arguments);
    out.text(frame.directory);
    add(out, frame.variables);
    for (const bool terminal : frame.terminals) {
        out.number(static_cast<std::uint8_t>(terminal));
    }
    out.number(static_cast<std::uint8_t>(frame.raw));
    add(out, frame.size);
    out.number(static_cast<std::uint32_t>(frame.patience.count()));
    add(out, frame.forwards);
    out.number(static_cast<std::uint8_t>(frame.no_input));
    out.number(static_cast<std::uint8_t>(frame.brief));
    return out.frame();
}

std::string bytes_of(const Taken& frame)
{
    return begin(Type::taken).number(frame.out).number(frame.err).frame();
}

std::string bytes_of(const Input& frame)
{
    return begin(Type::input).number(frame.offset).rest(frame.bytes).frame();
}

std::string bytes_of(const InputEnd& frame)
{
    return begin(Type::input_end).number(frame.offset).frame();
}

std::string bytes_of(const Resize& frame)
{
    PayloadWriter out = begin(Type::resize);
    add(out, frame.size);
    return out.number(static_cast<std::uint8_t>(frame.redraw)).frame();
}

std::string bytes_of(const Signal& frame)
{
    return begin(Type::signal).number(std::int32_t{frame.number}).number(frame.place).frame();
}

std::string bytes_of(const Bye&)
{
    return begin(Type::bye).frame();
}

std::string bytes_of(const Dial& frame)
{
    return begin(Type::dial).number(frame.stream).number(frame.forward).frame();
}

std::string bytes_of(const Hello& frame)
{
    return begin(Type::hello)
        .number(std::int32_t{frame.version})
        .text(frame.program)
        .text(frame.host)
        .number(static_cast<std::uint8_t>(frame.known))
        .number(frame.input)
        .number(frame.room)
        .number(frame.signals)
        .frame();
}

std::string bytes_of(const Output& frame)
{
    return begin(Type::output)
        .number(static_cast<std::uint8_t>(frame.stream))
        .number(frame.offset)
        .rest(frame.bytes)
        .frame();
}

std::string bytes_of(const InputTaken& frame)
{
    return begin(Type::input_taken).number(frame.offset).number(frame.room).frame();
}

std::string bytes_of(const SignalTaken& frame)
{
    return begin(Type::signal_taken).number(frame.count).frame();
}

std::string bytes_of(const Following& frame)
{
    return begin(Type::following)
        .text(frame.key)
        .number(frame.job)
        .number(std::int32_t{frame.link})
        .number(frame.out)
        .number(frame.err)
        .frame();
}

std::string bytes_of(const SshTarget& frame)
{
    return begin(Type::ssh_target).text(frame.key).number(frame.job).text(frame.user).frame();
}

std::string bytes_of(const Exit& frame)
{
    return begin(Type::exit)
        .number(std::int32_t{frame.status})
        .number(frame.out)
        .number(frame.err)
        .frame();
}

std::string bytes_of(const Failure& frame)
{
    return begin(Type::failure)
        .number(static_cast<std::uint8_t>(frame.kind))
        .text(frame.text)
        .frame();
}

std::string bytes_of(const Beat& frame)
{
    return begin(Type::beat).number(frame.number).frame();
}

std::string bytes_of(const StreamBytes& frame)
{
    return begin(Type::stream_bytes).number(frame.stream).rest(frame.bytes).frame();
}

std::string bytes_of(const StreamTaken& frame)
{
    return begin(Type::stream_taken).number(frame.stream).number(frame.count).frame();
}

std::string bytes_of(const StreamEnd& frame)
{
    return begin(Type::stream_end).number(frame.stream).frame();
}

std::string bytes_of(const StreamClosed& frame)
{
    return begin(Type::stream_closed).number(frame.stream).text(frame.why).frame();
}

/// Reads a field that older versions do not send; 0 if it is missing.
std::uint64_t number_if_any(PayloadReader& in)
{
    return in.at_end() ? 0 : in.number<std::uint64_t>();
}

Start start_from(PayloadReader& in)
{
    Start frame;
    frame.arguments = texts(in);
    frame.directory = in.text();
    frame.variables = texts(in);
    for (bool& terminal : frame.terminals) {
        terminal = in.flag();
    }
    frame.raw = in.flag();
    frame.size = size_from(in);
    frame.patience = std::chrono::seconds{in.number<std::uint32_t>()};
    if (!in.at_end()) { // clients of version 1 do not send it
        frame.forwards = texts(in);
    }
    if (!in.at_end()) {
        frame.no_input = in.flag();
    }
    if (!in.at_end()) {
        frame.brief = in.flag();
    }
    return frame;
}

Failure failure_from(PayloadReader& in)
{
    // A kind that only a newer gpuq knows is still a failure.
    const auto kind = in.number<std::uint8_t>();
    return {kind < k_error_kinds ? static_cast<Error::Kind>(kind) : Error::Kind::internal,
            in.text()};
}

/// Braced initialisers evaluate their fields from left to right.
std::optional<Frame> frame_from(std::uint8_t type, PayloadReader& in)
{
    switch (static_cast<Type>(type)) {
    case Type::open:
        return Open{in.number<std::int32_t>(),
                    in.number<std::int32_t>(),
                    in.text(),
                    in.number<std::uint64_t>(),
                    in.number<std::uint64_t>(),
                    std::chrono::milliseconds{in.number<std::uint32_t>()},
                    in.at_end() ? 0 : in.number<std::uint32_t>()};
    case Type::start:
        return start_from(in);
    case Type::taken:
        return Taken{in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    case Type::input:
        return Input{in.number<std::uint64_t>(), in.rest()};
    case Type::input_end:
        return InputEnd{in.number<std::uint64_t>()};
    case Type::resize:
        return Resize{size_from(in), in.flag()};
    case Type::signal:
        return Signal{in.number<std::int32_t>(), number_if_any(in)};
    case Type::bye:
        return Bye{};
    case Type::beat:
        return Beat{in.number<std::uint64_t>()};
    case Type::hello:
        return Hello{in.number<std::int32_t>(),
                     in.text(),
                     in.text(),
                     in.flag(),
                     in.number<std::uint64_t>(),
                     in.number<std::uint64_t>(),
                     number_if_any(in)};
    case Type::output:
        return Output{in.one_of<Stream>(k_streams), in.number<std::uint64_t>(), in.rest()};
    case Type::input_taken:
        return InputTaken{in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    case Type::signal_taken:
        return SignalTaken{in.number<std::uint64_t>()};
    case Type::following:
        return Following{in.text(), in.number<std::uint32_t>(), in.number<std::int32_t>(),
                         in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    case Type::ssh_target:
        return SshTarget{in.text(), in.number<std::uint32_t>(), in.text()};
    case Type::exit:
        return Exit{in.number<std::int32_t>(), in.number<std::uint64_t>(),
                    in.number<std::uint64_t>()};
    case Type::failure:
        return failure_from(in);
    case Type::dial:
        return Dial{in.number<std::uint32_t>(), in.number<std::uint32_t>()};
    case Type::stream_bytes:
        return StreamBytes{in.number<std::uint32_t>(), in.rest()};
    case Type::stream_taken:
        return StreamTaken{in.number<std::uint32_t>(), in.number<std::uint32_t>()};
    case Type::stream_end:
        return StreamEnd{in.number<std::uint32_t>()};
    case Type::stream_closed:
        return StreamClosed{in.number<std::uint32_t>(), in.text()};
    }
    return std::nullopt;
}

} // namespace

bool is_session_name(std::string_view text)
{
    return text.size() == k_session_digits && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

std::string escape_argument(std::string_view bytes)
{
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += k_hex[value >> 4U];
        text += k_hex[value & 0xfU];
    }
    return text;
}

std::optional<std::string> unescape_argument(std::string_view text)
{
    std::string bytes;
    if (text.size() % 2 != 0 || text.size() > k_longest_argument) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const std::size_t high = k_hex.find(text[i]), low = k_hex.find(text[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) {
            return std::nullopt;
        }
        bytes += static_cast<char>(high << 4U | low);
    }
    return bytes;
}

std::string output_header(Stream stream, std::uint64_t offset, std::size_t size)
{
    assert(size <= k_piece);
    std::string header = encode(Output{stream, offset, {}});
    const std::size_t whole = header.size() - k_header + size;
    for (std::size_t i = 0; i < 4; ++i) {
        header[1 + i] = static_cast<char>((whole >> (8 * i)) & 0xff);
    }
    return header;
}

std::string encode(const Frame& frame)
{
    return std::visit([](const auto& each) { return bytes_of(each); }, frame);
}

Decoder::Decoder()
    : FrameDecoder(frame_from)
{
}

bool OutputDecoder::has(std::size_t size, std::string_view& bytes)
{
    const std::size_t lacks = size - std::min(size, m_begun.size());
    m_begun += bytes.substr(0, lacks);
    bytes.remove_prefix(std::min(lacks, bytes.size()));
    return m_begun.size() >= size;
}

Result<Came> OutputDecoder::take(std::string_view& bytes)
{
    constexpr std::size_t k_before_bytes = k_header + 1 + sizeof(std::uint64_t);
    if (m_broken) {
        return m_whole.next().error();
    }
    while (!bytes.empty()) {
        if (m_left > 0) {
            const OutputBytes output{m_stream, m_offset, bytes.substr(0, m_left)};
            bytes.remove_prefix(output.bytes.size());
            m_offset += output.bytes.size();
            m_left -= output.bytes.size();
            return Came(output);
        }
        if (!has(k_header, bytes)) {
            break;
        }
        // An impossible size or stream is passed to the Decoder, which reports the error.
        const std::size_t size = k_header + payload_size(m_begun);
        const bool too_large = size > k_header + k_max_payload;
        const bool is_output =
            m_begun[0] == static_cast<char>(Type::output) && size > k_before_bytes && !too_large;
        if (!too_large && !has(is_output ? k_before_bytes : size, bytes)) {
            break;
        }
        if (is_output) {
            PayloadReader in(std::string_view(m_begun).substr(k_header));
            m_stream = in.one_of<Stream>(k_streams);
            m_offset = in.number<std::uint64_t>();
            if (in.ok()) {
                m_left = size - k_before_bytes;
                m_begun.clear();
                continue;
            }
            m_begun.resize(size);
        }
        m_whole.feed(std::exchange(m_begun, {}));
        auto frame = m_whole.next();
        m_broken = !frame;
        if (m_broken) {
            return std::move(frame).error();
        }
        if (*frame) {
            return Came(**std::move(frame));
        }
    }
    return Came();
}

Result<std::optional<std::string>> Greeting::feed(std::string_view bytes)
{
    // The marker can only be in the new bytes, or begin at the end of the old ones.
    const std::size_t from = m_text.size() - std::min(m_text.size(), k_marker.size());
    m_text += bytes;
    const std::size_t found = m_text.find(k_marker, from);
    if (found != std::string::npos) {
        std::string rest = m_text.substr(found + k_marker.size());
        m_text.resize(found);
        return std::optional(std::move(rest));
    }
    if (m_text.size() > k_most_greeting) {
        return fail(Error::Kind::internal, "the remote program is not gpuq");
    }
    return std::optional<std::string>();
}

} // namespace gpuq::wire::remote
