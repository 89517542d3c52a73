// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "wire/frame.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>

namespace gpuq::remote {

/// Bytes of a stream that the peer has not confirmed yet: from the confirmed offset to the end. The
/// send position in between can be moved back. The bytes are stored in blocks and never moved, so
/// returned views are valid until confirmed.
class Backlog {
public:
    void add(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const std::span<char> free = room();
            const std::size_t count = bytes.copy(free.data(), free.size());
            grew(count);
            bytes.remove_prefix(count);
        }
    }
    /// Free space after the last byte, at least one byte. Read into it, then call grew().
    std::span<char> room()
    {
        if (size() == 0) {
            m_first = m_end; // reuse the block from its beginning
        }
        if (m_end - m_first == m_blocks.size() * k_block) {
            m_blocks.push_back(m_spare ? std::move(m_spare) : new_block());
        }
        const auto used = static_cast<std::size_t>((m_end - m_first) % k_block);
        return {m_blocks.back().get() + used, k_block - used};
    }
    void grew(std::size_t count) { m_end += count; }

    std::uint64_t begin() const { return m_begin; }
    std::uint64_t end() const { return m_end; }
    std::size_t size() const { return static_cast<std::size_t>(m_end - m_begin); }
    std::uint64_t sent() const { return m_sent; }
    bool all_sent() const { return m_sent == m_end; }

    /// Returns the next bytes to send, up to `most`, and advances the send position.
    std::string_view send(std::size_t most)
    {
        const std::string_view bytes = at(m_sent, most);
        m_sent += bytes.size();
        return bytes;
    }
    /// Moves the send position. False for an offset that is not in the backlog.
    bool send_from(std::uint64_t offset)
    {
        if (offset < m_begin || offset > m_end) {
            return false;
        }
        m_sent = offset;
        return true;
    }
    /// Discards bytes before `offset`. False for bytes that were never sent.
    bool confirm(std::uint64_t offset)
    {
        if (offset > m_sent) {
            return false;
        }
        m_begin = std::max(m_begin, offset);
        while (m_blocks.size() > 1 && m_begin - m_first >= k_block) {
            m_spare = std::move(m_blocks.front());
            m_blocks.pop_front();
            m_first += k_block;
        }
        return true;
    }

private:
    static constexpr std::size_t k_block = 4 * wire::k_piece;
    using Block = std::unique_ptr<char[]>; // NOLINT(modernize-avoid-c-arrays)
    /// Left uninitialized, so that unused pages are never allocated.
    static Block new_block() { return Block(new char[k_block]); }

    std::string_view at(std::uint64_t offset, std::size_t most) const
    {
        if (offset == m_end) {
            return {};
        }
        const auto place = static_cast<std::size_t>(offset - m_first);
        const std::size_t in_block = k_block - place % k_block;
        return {m_blocks[place / k_block].get() + place % k_block,
                std::min({most, in_block, static_cast<std::size_t>(m_end - offset)})};
    }

    std::deque<Block> m_blocks; ///< all full except the last
    Block m_spare;
    std::uint64_t m_first = 0; ///< offset of the first block
    std::uint64_t m_begin = 0;
    std::uint64_t m_sent = 0;
    std::uint64_t m_end = 0;
};

} // namespace gpuq::remote
