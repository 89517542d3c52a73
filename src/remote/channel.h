// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/descriptor.h"
#include "core/result.h"
#include "wire/remote_frame.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::remote {

namespace frames = wire::remote;

/// Frames over two descriptors, which are made non-blocking. Never blocks, but in flush().
class Channel {
public:
    Channel(Descriptor in, Descriptor out);

    int input() const { return m_in.get(); }
    int output() const { return m_out.get(); }
    /// Bytes that wait to be sent.
    std::size_t waiting() const { return m_outgoing.size() - m_written + m_borrowed.size(); }
    /// Of send_bytes: still where the caller has them.
    std::size_t borrowed() const { return m_borrowed.size(); }
    /// More would only wait here.
    bool is_full() const { return waiting() >= k_full; }

    void send(const frames::Frame& frame) { add(frames::encode(frame)); }
    /// What belongs together; sent at once where that is possible, and then not copied: `bytes`
    /// have to stay where they are while they are borrowed.
    void send_bytes(std::string_view header, std::string_view bytes);
    /// False when nothing can be sent any more.
    bool write_some();
    /// Sends what waits, for at most so long.
    void flush(int milliseconds);

    /// What there is to read, until the next call; nothing at the end.
    std::optional<std::string_view> read_some();

private:
    void add(std::string_view bytes);

    static constexpr std::size_t k_full = 256 << 10;
    Descriptor m_in, m_out;
    std::string m_outgoing;
    std::size_t m_written = 0;
    std::string_view m_borrowed; ///< behind m_outgoing
    std::array<char, wire::k_piece> m_incoming;
};

void set_nonblocking(int descriptor);

} // namespace gpuq::remote
