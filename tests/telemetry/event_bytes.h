// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/crc32c.h"

#include <cstdint>
#include <string>
#include <string_view>

/// Event files as TensorBoard's writers produce them.
namespace gpuq::telemetry::events {

template <typename Number>
std::string raw(Number number)
{
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

inline std::string varint(std::uint64_t value)
{
    std::string text;
    for (; value >= 0x80; value >>= 7) {
        text += static_cast<char>(value | 0x80);
    }
    return text + static_cast<char>(value);
}

/// A string or message field.
inline std::string field(unsigned number, std::string_view bytes)
{
    return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string record(std::string_view data)
{
    const std::string length = raw(std::uint64_t{data.size()});
    return length + raw(masked(crc32c(length))) + std::string(data) + raw(masked(crc32c(data)));
}

inline std::string event(double at, std::int64_t step, std::string_view rest)
{
    return "\x09" + raw(at) + "\x10" + varint(static_cast<std::uint64_t>(step)) + std::string(rest);
}

inline std::string begin(double at)
{
    return record("\x09" + raw(at) + field(3, "brain.Event:2"));
}

/// A scalar as written by torch.utils.tensorboard.
inline std::string simple(double at, std::int64_t step, std::string_view tag, float value)
{
    return record(event(at, step, field(5, field(1, field(1, tag) + "\x15" + raw(value)))));
}

inline std::string metadata(std::string_view plugin)
{
    return field(9, field(1, field(1, plugin)));
}

/// A scalar as written by TensorFlow 2; `extra`: metadata, present in the first one of a tag.
inline std::string tensor(double at, std::int64_t step, std::string_view tag, float value,
                          std::string_view extra, std::string_view shape = "")
{
    const std::string message = "\x08\x01" + field(2, shape) + "\x2d" + raw(value);
    return record(event(
        at, step, field(5, field(1, field(1, tag) + field(8, message) + std::string(extra)))));
}

} // namespace gpuq::telemetry::events
