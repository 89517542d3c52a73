// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/bytes.h"
#include "checkpoint/formats.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

namespace gpuq::checkpoint {

/// An in-memory file. Counts the bytes read from it and can be made to fail.
class BytesInMemory final : public Bytes {
public:
    explicit BytesInMemory(std::string text)
        : Bytes(text.size())
        , m_text(std::move(text))
    {
    }
    std::size_t bytes_read = 0;
    bool is_broken = false;

private:
    int read(std::uint64_t offset, char* to, std::size_t count) override
    {
        bytes_read += count;
        std::copy_n(m_text.data() + offset, count, to);
        return is_broken ? EIO : 0;
    }

    std::string m_text;
};

inline Judgement judged(const std::string& text, std::string_view name)
{
    BytesInMemory bytes(text);
    return check_completeness(bytes, name);
}

} // namespace gpuq::checkpoint
