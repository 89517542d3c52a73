// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// Bytes of a stream that the other side has not confirmed: from the confirmed offset to the end.
/// Where the sending stands in between may be put back.
class Backlog {
public:
    void add(std::string_view bytes) { m_bytes += bytes; }

    std::uint64_t begin() const { return m_begin; }
    std::uint64_t end() const { return m_begin + size(); }
    std::size_t size() const { return m_bytes.size() - m_dropped; }
    std::uint64_t sent() const { return m_sent; }
    bool all_sent() const { return m_sent == end(); }

    /// The next bytes to send, at most so many; they count as sent.
    std::string_view send(std::size_t most)
    {
        const std::string_view bytes =
            std::string_view(m_bytes).substr(m_dropped + (m_sent - m_begin), most);
        m_sent += bytes.size();
        return bytes;
    }
    /// To send from there on. False for an offset that is not in here.
    bool send_from(std::uint64_t offset)
    {
        if (offset < m_begin || offset > end()) {
            return false;
        }
        m_sent = offset;
        return true;
    }
    /// Everything before has arrived. False for what was never sent.
    bool confirm(std::uint64_t offset)
    {
        if (offset > m_sent) {
            return false;
        }
        if (offset > m_begin) {
            m_dropped += offset - m_begin;
            m_begin = offset;
            // Only when it is more than what stays and has to be moved.
            if (m_dropped >= size()) {
                m_bytes.erase(0, m_dropped);
                m_dropped = 0;
            }
        }
        return true;
    }

private:
    std::string m_bytes;
    std::size_t m_dropped = 0; ///< of m_bytes, confirmed
    std::uint64_t m_begin = 0;
    std::uint64_t m_sent = 0;
};

} // namespace gpuq::remote
