// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuq::credentials {

/// Reads bytes field by field. After the first incomplete field every further field is empty, and
/// `broken()` is true.
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
    /// Big endian, as in all ccache formats since 3.
    std::uint32_t number(std::size_t size)
    {
        std::uint32_t value = 0;
        for (const char byte : take(size)) {
            value = value << 8U | static_cast<unsigned char>(byte);
        }
        return value;
    }
    /// Reads a field that is preceded by its length, a number of `size` bytes.
    std::string_view counted(std::size_t size = 4) { return take(number(size)); }

private:
    std::string_view m_left;
    bool m_broken = false;
};

} // namespace gpuq::credentials
