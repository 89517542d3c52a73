// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gpuq::telemetry {

/// One field of any protocol buffer message.
struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0; ///< a varint, or the bits of a fixed number
    std::string_view bytes;  ///< a string, a message or a packed list; points into the message
    enum class Kind : std::uint8_t { varint, fixed64, bytes, fixed32 } kind = Kind::varint;

    bool is(std::uint32_t other, Kind wanted) const { return number == other && kind == wanted; }
    double as_double() const { return std::bit_cast<double>(value); }
    float as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }
};

/// Iterates over the fields of a message in their order. All of it is inline, since a scalar has a
/// dozen fields.
class Message {
public:
    explicit Message(std::string_view bytes)
        : m_at(bytes.data())
        , m_end(bytes.data() + bytes.size())
    {
    }

    /// False at the end and for an invalid message; is_sound() distinguishes them.
    bool next(Field& field)
    {
        if (m_at == m_end || !m_is_sound) {
            return false;
        }
        field = Field();
        m_is_sound = read(field);
        return m_is_sound;
    }
    bool is_sound() const { return m_is_sound; }

private:
    bool read(Field& field)
    {
        std::uint64_t key = 0;
        if (!varint(key) || (key >> 3) == 0 || (key >> 3) > 0x1fffffff) {
            return false;
        }
        field.number = static_cast<std::uint32_t>(key >> 3);
        switch (key & 7) {
        case 0:
            return varint(field.value);
        case 1:
            field.kind = Field::Kind::fixed64;
            return fixed<std::uint64_t>(field.value);
        case 2:
            field.kind = Field::Kind::bytes;
            if (!varint(field.value) || field.value > left()) {
                return false;
            }
            field.bytes = {m_at, static_cast<std::size_t>(field.value)};
            m_at += field.value;
            return true;
        case 5:
            field.kind = Field::Kind::fixed32;
            return fixed<std::uint32_t>(field.value);
        default: // groups, which are obsolete
            return false;
        }
    }

    std::size_t left() const { return static_cast<std::size_t>(m_end - m_at); }

    bool varint(std::uint64_t& value)
    {
        for (unsigned shift = 0; shift < 70 && m_at != m_end; shift += 7) {
            const auto byte = static_cast<unsigned char>(*m_at++);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) {
                return true;
            }
        }
        return false;
    }

    template <typename Number>
    bool fixed(std::uint64_t& value)
    {
        static_assert(std::endian::native == std::endian::little);
        Number number = 0;
        if (left() < sizeof number) {
            return false;
        }
        std::memcpy(&number, m_at, sizeof number);
        m_at += sizeof number;
        value = number;
        return true;
    }

    const char* m_at;
    const char* m_end;
    bool m_is_sound = true;
};

} // namespace gpuq::telemetry
