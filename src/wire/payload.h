// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Encoding and decoding of frames: type (1 byte), payload length (4 bytes, little endian),
/// payload. Frames of unknown type are skipped, so either side of a connection may be newer.
namespace gpuq::wire {

constexpr std::size_t k_header = 5;
constexpr std::size_t k_max_payload = 1 << 20;

class PayloadWriter {
public:
    explicit PayloadWriter(std::uint8_t type)
    {
        m_bytes.push_back(static_cast<char>(type));
        m_bytes.append(k_header - 1, '\0');
    }
    /// Appends an integer, little endian, in the width of its type.
    template <typename Integer>
    PayloadWriter& number(Integer value)
    {
        auto rest = static_cast<std::uint64_t>(value);
        for (std::size_t i = 0; i < sizeof(Integer); ++i, rest >>= 8) {
            m_bytes.push_back(static_cast<char>(rest & 0xff));
        }
        return *this;
    }
    PayloadWriter& text(std::string_view value)
    {
        number(static_cast<std::uint32_t>(value.size()));
        m_bytes += value;
        return *this;
    }
    /// Appends the bytes that fill the remainder of the payload.
    PayloadWriter& rest(std::string_view value)
    {
        m_bytes += value;
        return *this;
    }
    std::string frame()
    {
        const std::size_t size = m_bytes.size() - k_header;
        assert(size <= k_max_payload);
        for (std::size_t i = 0; i < 4; ++i) {
            m_bytes[1 + i] = static_cast<char>((size >> (8 * i)) & 0xff);
        }
        return std::move(m_bytes);
    }

private:
    std::string m_bytes;
};

/// Reads the fields of a payload. Reading beyond its end yields zeros, and `ok()` is false from
/// then on.
class PayloadReader {
public:
    explicit PayloadReader(std::string_view payload)
        : m_left(payload)
    {
    }
    template <typename Integer>
    Integer number()
    {
        const std::string_view bytes = take(sizeof(Integer));
        std::uint64_t value = 0;
        for (std::size_t i = bytes.size(); i > 0; --i) {
            value = (value << 8) | static_cast<unsigned char>(bytes[i - 1]);
        }
        return static_cast<Integer>(value);
    }
    bool flag() { return number<std::uint8_t>() != 0; }
    std::string text() { return std::string(take(number<std::uint32_t>())); }
    std::string rest() { return std::string(take(m_left.size())); }
    /// Reads a number that must be one of the `count` values of an enum.
    template <typename Enum>
    Enum one_of(std::uint8_t count)
    {
        const auto value = number<std::uint8_t>();
        m_ok = m_ok && value < count;
        return m_ok ? static_cast<Enum>(value) : Enum{};
    }
    bool ok() const { return m_ok; }
    bool at_end() const { return m_left.empty(); }

private:
    std::string_view take(std::size_t size)
    {
        m_ok = m_ok && size <= m_left.size();
        if (!m_ok) {
            return {};
        }
        const std::string_view taken = m_left.substr(0, size);
        m_left.remove_prefix(size);
        return taken;
    }
    std::string_view m_left;
    bool m_ok = true;
};

/// The payload length stored in a header of `k_header` bytes.
inline std::size_t payload_size(std::string_view header)
{
    std::size_t size = 0;
    for (std::size_t i = k_header - 1; i > 0; --i) {
        size = (size << 8) | static_cast<unsigned char>(header[i]);
    }
    return size;
}

/// Assembles frames from bytes that arrive in pieces of any size. After an error (a length beyond
/// `k_max_payload`, a payload that is too short for its type) the decoder stays in the error state,
/// and the connection should be closed.
template <typename Frame>
class FrameDecoder {
public:
    /// Decodes a payload; returns nullopt for an unknown type.
    using Read = std::optional<Frame> (*)(std::uint8_t type, PayloadReader& payload);
    explicit FrameDecoder(Read read)
        : m_read(read)
    {
    }
    void feed(std::string_view bytes)
    {
        if (m_broken) {
            return;
        }
        m_buffer.erase(0, m_start);
        m_start = 0;
        m_buffer += bytes;
    }
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
            PayloadReader payload(left.substr(k_header, size));
            std::optional<Frame> frame = m_read(static_cast<std::uint8_t>(left[0]), payload);
            if (!payload.ok()) {
                return broken("a frame is too short for its type, or contains an invalid value");
            }
            if (frame) {
                return frame;
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

    Read m_read;
    std::string m_buffer;
    std::size_t m_start = 0;
    bool m_broken = false;
};

} // namespace gpuq::wire
