// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/codec.h"
#include "core/result.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

/// Encoding and decoding of frames: type (1 byte), payload length (4 bytes, little endian),
/// payload: a struct, encoded as core/codec.h describes. Frames of unknown type are skipped, and so
/// are bytes after the last member, so either side of a connection may be newer.
///
/// A frame is a struct with its number `k_type`, and a member of its protocol's variant. These
/// structs are the protocol: never reuse a number, add members only at the end.
namespace gpuq::wire {

constexpr std::size_t k_header = 5;
constexpr std::size_t k_max_payload = 1 << 20;

/// The payload length stored in a header of `k_header` bytes.
inline std::size_t payload_size(std::string_view header)
{
    std::size_t size = 0;
    for (std::size_t i = k_header - 1; i > 0; --i) {
        size = (size << 8) | static_cast<unsigned char>(header[i]);
    }
    return size;
}

/// Stores the payload length in the header at the front of `frame`.
inline void set_payload_size(std::string& frame, std::size_t size)
{
    assert(size <= k_max_payload);
    for (std::size_t i = 1; i < k_header; ++i, size >>= 8) {
        frame[i] = static_cast<char>(size & 0xff);
    }
}

/// Encodes one of the types of a protocol; its number is `T::k_type`.
template <typename T>
std::string encoded_frame(const T& frame)
{
    std::string bytes(k_header, '\0');
    bytes[0] = static_cast<char>(T::k_type);
    ValueWriter(bytes).put(frame);
    set_payload_size(bytes, bytes.size() - k_header);
    return bytes;
}

/// Reads the payload of a frame into `frame`; returns false for an unknown type.
template <typename... Types>
bool read_frame(std::uint8_t type, ValueReader& payload, std::variant<Types...>& frame)
{
    return ((type == Types::k_type && (payload.get(frame.template emplace<Types>()), true)) || ...);
}

/// Assembles frames from bytes that arrive in pieces of any size. After an error (a length beyond
/// `k_max_payload`, a payload that is too short for its type) the decoder stays in the error state,
/// and the connection should be closed.
template <typename Frame>
class FrameDecoder {
public:
    void feed(std::string_view bytes)
    {
        if (m_broken) {
            return;
        }
        m_buffer.erase(0, m_start);
        m_start = 0;
        m_buffer += bytes;
    }
    /// Number of bytes that wait for the rest of their frame.
    std::size_t unread() const { return m_buffer.size() - m_start; }
    /// Returns the next complete frame, or nullopt if more bytes are needed.
    Result<std::optional<Frame>> next()
    {
        if (m_broken) {
            return broken("the connection does not carry gpuq's frames");
        }
        while (m_buffer.size() - m_start >= k_header) {
            const std::string_view left = std::string_view(m_buffer).substr(m_start);
            const std::size_t size = payload_size(left);
            if (size > k_max_payload) {
                return broken("a frame is longer than any of gpuq's");
            }
            if (left.size() - k_header < size) {
                break;
            }
            m_start += k_header + size;
            ValueReader payload(left.substr(k_header, size));
            Frame frame;
            const bool is_known = read_frame(static_cast<std::uint8_t>(left[0]), payload, frame);
            if (!payload.ok()) {
                return broken("a frame is too short for its type, or contains an invalid value");
            }
            if (is_known) {
                return std::optional(std::move(frame));
            }
        }
        return std::optional<Frame>();
    }

private:
    Error broken(const char* what)
    {
        m_broken = true;
        m_buffer.clear();
        m_start = 0;
        return fail(Error::Kind::internal, what);
    }

    std::string m_buffer;
    std::size_t m_start = 0;
    bool m_broken = false;
};

} // namespace gpuq::wire
