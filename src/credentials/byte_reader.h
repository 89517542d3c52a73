// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuq::credentials {

/// The bytes, taken one field after the other. After the first field that is not there whole,
/// everything is empty and `broken`.
class ByteReader {
public:
    explicit ByteReader(std::string_view bytes)
        : m_left(bytes)
    {
    }
    bool broken() const { return m_broken; }
    bool at_end() const { return m_left.empty(); }

    std::string_view take(std::size_t size)
    {
        if (m_broken || size > m_left.size()) {
            m_broken = true;
            return {};
        }
        const std::string_view taken = m_left.substr(0, size);
        m_left.remove_prefix(size);
        return taken;
    }
    /// Big-endian, as in all formats from 3 on.
    std::uint32_t number(std::size_t size)
    {
        std::uint32_t value = 0;
        for (const char byte : take(size)) {
            value = value << 8U | static_cast<unsigned char>(byte);
        }
        return value;
    }
    /// A field after its size in so many bytes.
    std::string_view counted(std::size_t size = 4) { return take(number(size)); }

private:
    std::string_view m_left;
    bool m_broken = false;
};

} // namespace gpuq::credentials
