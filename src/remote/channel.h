// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "wire/remote_frame.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::remote {

namespace frames = wire::remote;

/// Exchanges frames over two descriptors, which it makes non-blocking. Only flush() blocks.
class Channel {
public:
    Channel(Descriptor in, Descriptor out);

    int input() const { return m_in.get(); }
    int output() const { return m_out.get(); }
    /// Number of bytes waiting to be sent.
    std::size_t waiting() const { return m_outgoing.size() - m_written + m_borrowed.size(); }
    /// The part of waiting() that is still in the caller's memory, see send_bytes().
    std::size_t borrowed() const { return m_borrowed.size(); }
    /// True when additional data would only be queued.
    bool is_full() const { return waiting() >= k_full; }

    void send(const frames::Frame& frame) { add(frames::encode(frame)); }
    /// Sends `header` and `bytes` contiguously, without copying if they can be sent at once:
    /// `bytes` must stay valid as long as they are borrowed().
    void send_bytes(std::string_view header, std::string_view bytes);
    /// False when the connection is broken.
    bool write_some();
    /// Sends the queued bytes, for at most this long.
    void flush(int milliseconds);

    /// The available bytes, valid until the next call; nullopt at the end.
    std::optional<std::string_view> read_some();

private:
    void add(std::string_view bytes);

    static constexpr std::size_t k_full = 256 << 10;
    Descriptor m_in, m_out;
    std::string m_outgoing;
    std::size_t m_written = 0;
    std::string_view m_borrowed; ///< follows m_outgoing
    std::array<char, wire::k_piece> m_incoming;
};

void set_nonblocking(int descriptor);

} // namespace gpuq::remote
