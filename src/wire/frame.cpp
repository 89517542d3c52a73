// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/frame.h"

#include "wire/payload.h"

#include <chrono>

namespace gpuq::wire {
namespace {

// These numbers are the protocol: never reuse one, add fields only at the end of a payload.
enum class Type : std::uint8_t {
    attach = 1,
    stdin_bytes = 2,
    stdin_end = 3,
    signal = 4,
    stop = 5,
    bye = 6,
    output_taken = 7,
    terminal = 8,
    take = 9,
    report = 10,
    hello = 65,
    started = 66,
    output = 67,
    stdin_taken = 68,
    note = 69,
    ended = 70,
    screen = 71,
    taken = 72,
    refused = 73,
};

class Writer : public PayloadWriter {
public:
    explicit Writer(Type type)
        : PayloadWriter(static_cast<std::uint8_t>(type))
    {
    }
};

using Reader = PayloadReader;

constexpr std::uint8_t k_roles = 3;
constexpr std::uint8_t k_streams = 2;

std::string bytes_of(const Attach& frame)
{
    return Writer(Type::attach)
        .number(std::int32_t{frame.version})
        .number(static_cast<std::uint8_t>(frame.role))
        .number(frame.out)
        .number(frame.err)
        .frame();
}

std::string bytes_of(const Stdin& frame)
{
    return Writer(Type::stdin_bytes).number(frame.offset).rest(frame.bytes).frame();
}

std::string bytes_of(const StdinEnd& frame)
{
    return Writer(Type::stdin_end).number(frame.offset).frame();
}

std::string bytes_of(const Signal& frame)
{
    return Writer(Type::signal).number(std::int32_t{frame.number}).frame();
}

std::string bytes_of(const Stop& frame)
{
    return Writer(Type::stop).text(frame.by).frame();
}

std::string bytes_of(const OutputTaken& frame)
{
    return Writer(Type::output_taken).number(frame.bytes).number(frame.room).frame();
}

std::string bytes_of(const Terminal& frame)
{
    return Writer(Type::terminal)
        .number(frame.client)
        .number(static_cast<std::uint16_t>(frame.size.rows))
        .number(static_cast<std::uint16_t>(frame.size.columns))
        .number(static_cast<std::uint8_t>(frame.redraw))
        .frame();
}

std::string bytes_of(const Take& frame)
{
    return Writer(Type::take).text(frame.by).frame();
}

std::string bytes_of(const Report& frame)
{
    return Writer(Type::report).text(frame.text).frame();
}

std::string bytes_of(const Bye&)
{
    return Writer(Type::bye).frame();
}

std::string bytes_of(const Hello& frame)
{
    return Writer(Type::hello)
        .number(std::int32_t{frame.version})
        .text(frame.key)
        .number(std::int32_t{frame.link})
        .number(frame.job)
        .text(frame.host)
        .frame();
}

std::string bytes_of(const Started& frame)
{
    return Writer(Type::started).number(std::int32_t{frame.pid}).frame();
}

std::string bytes_of(const Output& frame)
{
    return Writer(Type::output)
        .number(static_cast<std::uint8_t>(frame.stream))
        .number(frame.offset)
        .rest(frame.bytes)
        .frame();
}

std::string bytes_of(const StdinTaken& frame)
{
    return Writer(Type::stdin_taken).number(frame.offset).number(frame.room).frame();
}

std::string bytes_of(const Note& frame)
{
    return Writer(Type::note).text(frame.text).frame();
}

std::string bytes_of(const Screen& frame)
{
    return Writer(Type::screen).rest(frame.bytes).frame();
}

std::string bytes_of(const Taken& frame)
{
    return Writer(Type::taken).text(frame.by).frame();
}

std::string bytes_of(const Refused& frame)
{
    return Writer(Type::refused).text(frame.why).frame();
}

std::string bytes_of(const Ended& frame)
{
    return Writer(Type::ended)
        .number(std::int32_t{frame.ending.status})
        .number(static_cast<std::uint8_t>(frame.ending.cause))
        .text(frame.ending.detail)
        .number(std::int64_t{frame.ending.at.time_since_epoch().count()})
        .number(frame.out)
        .number(frame.err)
        .text(frame.last_lines)
        .number(static_cast<std::uint8_t>(frame.ending.continues))
        .number(frame.stdin_read)
        .frame();
}

Ended ended_from(Reader& in)
{
    Ended frame;
    frame.ending.status = in.number<std::int32_t>();
    // A cause that only a newer supervisor knows is still an end.
    const auto cause = in.number<std::uint8_t>();
    frame.ending.cause =
        cause <= static_cast<std::uint8_t>(Cause::lost) ? static_cast<Cause>(cause) : Cause::lost;
    frame.ending.detail = in.text();
    frame.ending.at = Time{std::chrono::microseconds{in.number<std::int64_t>()}};
    frame.out = in.number<std::uint64_t>();
    frame.err = in.number<std::uint64_t>();
    frame.last_lines = in.text();
    // Supervisors older than chains do not send this field.
    frame.ending.continues = !in.at_end() && in.number<std::uint8_t>() != 0;
    // Supervisors that do not count the bytes do not send this one.
    frame.stdin_read = in.at_end() ? Ended::k_unknown : in.number<std::uint64_t>();
    return frame;
}

/// Braced initialisers evaluate their fields from left to right.
std::optional<Frame> frame_from(std::uint8_t type, Reader& in)
{
    switch (static_cast<Type>(type)) {
    case Type::attach:
        return Attach{in.number<std::int32_t>(), in.one_of<Role>(k_roles),
                      in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    case Type::stdin_bytes:
        return Stdin{in.number<std::uint64_t>(), in.rest()};
    case Type::stdin_end:
        return StdinEnd{in.number<std::uint64_t>()};
    case Type::signal:
        return Signal{in.number<std::int32_t>()};
    case Type::stop:
        return Stop{in.text()};
    case Type::output_taken:
        return OutputTaken{in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    case Type::terminal:
        return Terminal{in.number<std::uint64_t>(),
                        {in.number<std::uint16_t>(), in.number<std::uint16_t>()},
                        in.number<std::uint8_t>() != 0};
    case Type::take:
        return Take{in.text()};
    case Type::report:
        return Report{in.text()};
    case Type::bye:
        return Bye{};
    case Type::hello:
        return Hello{in.number<std::int32_t>(), in.text(), in.number<std::int32_t>(),
                     in.number<std::uint32_t>(), in.text()};
    case Type::started:
        return Started{in.number<std::int32_t>()};
    case Type::output:
        return Output{in.one_of<Stream>(k_streams), in.number<std::uint64_t>(), in.rest()};
    case Type::stdin_taken:
        return StdinTaken{in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    case Type::note:
        return Note{in.text()};
    case Type::screen:
        return Screen{in.rest()};
    case Type::taken:
        return Taken{in.text()};
    case Type::refused:
        return Refused{in.text()};
    case Type::ended:
        return ended_from(in);
    }
    return std::nullopt;
}

} // namespace

std::string encode(const Frame& frame)
{
    return std::visit([](const auto& each) { return bytes_of(each); }, frame);
}

Decoder::Decoder()
    : FrameDecoder(frame_from)
{
}

} // namespace gpuq::wire
