// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "wire/frame.h"

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

/// How the frames of this room are put together and taken apart: type (1 byte), length of the
/// payload (4 bytes, little endian), payload.
namespace gpuq::wire {

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

} // namespace gpuq::wire
