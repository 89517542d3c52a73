// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "remote/backlog.h"
#include "remote/channel.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace gpuq::remote {

/// A link that survives its connections: each side keeps the bytes that the other one has not
/// confirmed, and the next connection continues at the right byte. Uses the frames Open, Hello,
/// Output and Taken in both directions. The owner provides connections; without one, written bytes
/// wait until the room is used up, and nothing can be read.
class LastingLink : public Link {
public:
    /// Unconfirmed bytes that each side keeps.
    static constexpr std::size_t k_room = 4 << 20;

    /// The side that connects. `session`: a name of its own, as in Open.
    explicit LastingLink(std::string session);
    /// The side that is connected to, after the first connection has sent `open`.
    explicit LastingLink(const frames::Open& open);

    /// Continues over a new connection and drops the previous one. The connecting side sends Open.
    void connect(Descriptor in, Descriptor out);
    /// The same for the other side, after `open` has been read from the connection: sends Hello.
    /// `decoder` may contain bytes that followed. False, without an effect, for a connection older
    /// than the present one, or a position that was never reached.
    bool connect(const frames::Open& open, Channel connection, frames::Decoder decoder);
    /// Drops the connection.
    void disconnect() { m_connection.reset(); }
    /// Ends the link for both sides: the other one gets no more bytes, and confirms the end, by
    /// which this link is lost too. Without a connection the next one does it.
    void leave();

    bool is_connected() const { return m_connection != nullptr; }
    /// True on the connecting side once the other side has responded over this connection.
    bool has_answered() const { return m_answered; }
    /// The other side no longer has this session, has left it, or has violated the protocol: it
    /// can't continue.
    bool is_lost() const { return m_lost; }
    /// Without bytes that wait to be sent or confirmed.
    bool is_settled() const { return m_sent.size() == 0; }

    int input() const override;
    /// None while the room is used up: only confirmations, which are read, make a difference then.
    int output() const override;
    bool has_unsent() const override;
    /// Returns the bytes already received before it reads more: call it until it fails with EAGAIN.
    ssize_t read(std::span<char> buffer) override;
    ssize_t write(std::span<const iovec> parts) override;

private:
    void receive();
    bool take(const frames::Frame& frame);
    bool take_output(const frames::Output& output);
    void confirm_received(std::size_t worth);
    void send_some();
    bool is_full() const { return m_sent.size() >= k_room; }

    std::string m_session;
    bool m_begins; ///< the side that connects
    std::unique_ptr<Channel> m_connection;
    frames::Decoder m_decoder;
    std::uint32_t m_connections = 0; ///< number of the newest connection
    bool m_answered = false;
    bool m_lost = false;
    bool m_leaves = false; ///< Bye takes the place of all bytes
    Backlog m_sent;
    std::uint64_t m_received = 0; ///< offset of the next byte from the other side
    std::uint64_t m_confirmed = 0;
    std::string m_arrived; ///< received, but not yet read by the owner
    std::size_t m_read = 0;
};

} // namespace gpuq::remote
