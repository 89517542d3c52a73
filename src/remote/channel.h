// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/descriptor.h"
#include "wire/remote_frame.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <sys/uio.h>
#include <utility>

namespace gpuq::remote {

namespace frames = wire::remote;

/// A stream of bytes in both directions, for an event loop: nothing blocks.
class Link {
public:
    virtual ~Link() = default;
    /// Descriptor to poll for reading; readable at the end as well. It may change with each call of
    /// the functions below.
    virtual int input() const = 0;
    /// Descriptor to poll for writing; -1 while writing would be useless although bytes wait: the
    /// peer must send something first.
    virtual int output() const = 0;
    /// Accepted bytes wait in the link: it must be polled for writing, and write() called.
    virtual bool has_unsent() const { return false; }
    /// As read(2) and writev(2) on a non-blocking descriptor.
    virtual ssize_t read(std::span<char> buffer) = 0;
    virtual ssize_t write(std::span<const iovec> parts) = 0;
};

/// A link over two descriptors, which it makes non-blocking.
std::shared_ptr<Link> link_of(Descriptor in, Descriptor out);

/// Exchanges frames over a link. Only flush() blocks.
class Channel {
public:
    explicit Channel(std::shared_ptr<Link> link);
    Channel(Descriptor in, Descriptor out)
        : Channel(link_of(std::move(in), std::move(out)))
    {
    }

    int input() const { return m_link->input(); }
    int output() const { return m_link->output(); }
    /// write_some() must be called when output() is ready.
    bool wants_to_write() const { return waiting() > 0 || m_link->has_unsent(); }
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
    std::shared_ptr<Link> m_link;
    std::string m_outgoing;
    std::size_t m_written = 0;
    std::string_view m_borrowed; ///< follows m_outgoing
    std::array<char, wire::k_piece> m_incoming;
};

void set_nonblocking(int descriptor);

} // namespace gpuq::remote
