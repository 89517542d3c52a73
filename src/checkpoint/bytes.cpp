// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/bytes.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include <unistd.h>

namespace gpuq::checkpoint {

std::optional<std::string> Bytes::at(std::uint64_t offset, std::uint64_t count)
{
    if (offset > m_size || count > m_size - offset || m_error != 0) {
        return std::nullopt;
    }
    std::string text(count, '\0');
    m_error = read(offset, text.data(), text.size());
    return m_error == 0 ? std::optional(std::move(text)) : std::nullopt;
}

std::string Bytes::first(std::uint64_t count)
{
    return at(0, std::min(count, m_size)).value_or("");
}

std::string Bytes::last(std::uint64_t count)
{
    const std::uint64_t some = std::min(count, m_size);
    return at(m_size - some, some).value_or("");
}

int FileBytes::read(std::uint64_t offset, char* to, std::size_t count)
{
    while (count > 0) {
        const ssize_t got = ::pread(m_file, to, count, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? errno : ESTALE;
        }
        to += got;
        offset += static_cast<std::uint64_t>(got);
        count -= static_cast<std::size_t>(got);
    }
    return 0;
}

std::uint64_t little_endian(std::string_view text, std::size_t offset, std::size_t width)
{
    assert(width <= 8 && offset <= text.size() && width <= text.size() - offset);
    std::uint64_t value = 0;
    for (std::size_t at = width; at-- > 0;) {
        value = value << 8 | static_cast<unsigned char>(text[offset + at]);
    }
    return value;
}

} // namespace gpuq::checkpoint
