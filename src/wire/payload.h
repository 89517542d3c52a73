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

/// How the frames of this room are put together and taken apart: type (1 byte), length of the
/// payload (4 bytes, little endian), payload. An unknown type is skipped, so either side of a
/// connection may be newer.
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
    /// An integer, little endian, as wide as its type.
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
    /// Bytes up to the end of the payload.
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

/// Takes a payload apart. Reading beyond its end gives zeros and `ok()` is false from then on.
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
    /// A number that has to be one of the `count` values of an enum.
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

/// The length that a header of `k_header` bytes tells.
inline std::size_t payload_size(std::string_view header)
{
    std::size_t size = 0;
    for (std::size_t i = k_header - 1; i > 0; --i) {
        size = (size << 8) | static_cast<unsigned char>(header[i]);
    }
    return size;
}

/// Takes bytes in any pieces, gives frames. After an error (a length beyond `k_max_payload`, a
/// payload that is too short for its type) it stays in error: the connection is to be closed.
template <typename Frame>
class FrameDecoder {
public:
    /// What a payload holds; nothing when nobody knows the type.
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
    /// The next whole frame; an empty optional when more bytes are needed.
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
                return broken(
                    "a frame is too short for its type, or holds a value it can not have");
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
