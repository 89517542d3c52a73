// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "io/event_loop.h"
#include "remote/channel.h"
#include "remote/held_verb.h"
#include "remote/reconnect_policy.h"
#include "remote/stream_relay.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::remote {

/// A connection handed over by a front process (serve.h).
struct Handed {
    Descriptor in, out;       ///< the streams that sshd gave to the front
    Descriptor front;         ///< closed when the front exits, and closing it makes the front exit
    std::string read;         ///< bytes already read from `in`
    std::size_t repeated = 0; ///< number of bytes at the start of `in` that are already in `read`
};
/// Returns `bytes` without a prefix that is a repetition; reduces `repeated` by its size.
std::string_view without_repeated(std::string_view bytes, std::size_t& repeated);

/// Identifies this side to the client.
struct Identity {
    std::string version;
    std::string host;
};

/// Runs one verb for a client that may be disconnected at any time, and keeps output that it has
/// not received yet. Runs in a process with its own session that holds no descriptor of the login.
class Holder {
public:
    /// `program`: executable that runs the verb. `accept` receives further connections from
    /// `listener`.
    Holder(std::string program, Identity identity, Descriptor listener,
           std::function<std::optional<Handed>(int listener)> accept);

    /// Runs until the verb has ended and the client needs nothing more. Uses all signals of the
    /// process.
    void run(Handed first);

private:
    /// The current connection to the client.
    struct Connection {
        Channel channel;
        Descriptor front;
        std::size_t repeated; ///< Handed::repeated
        frames::Decoder decoder{};
        bool opened = false; ///< Open received
        bool exit_sent = false;
    };

    void watch_connection();
    void take(Handed handed);
    bool is_late(const Handed& handed) const;
    void drop();
    void on_readable();
    void on_frames();
    void on_frame(frames::Frame&& frame);
    void on_other_frame(const frames::Frame& frame);
    void on_open(const frames::Open& open);
    void on_start(const frames::Start& start);
    void on_taken(const frames::Taken& taken);
    void on_signal(const frames::Signal& signal);
    void on_bye();
    void on_children();
    void on_alone();
    void send_output();
    bool send_frame(const frames::Frame& frame);
    void refuse(Error error);
    void refuse_if_failed(Result<void> done);
    frames::Hello hello() const;
    Channel* channel() { return m_connection ? &m_connection->channel : nullptr; }
    bool is_over() const;
    std::chrono::seconds patience() const;
    void schedule_alone();

    EventLoop m_loop;
    std::string m_program;
    Identity m_identity;
    Descriptor m_listener;
    std::function<std::optional<Handed>(int)> m_accept;
    Descriptor m_signals;
    EventLoop::Watch m_children; ///< before the watches of m_verb

    std::optional<Connection> m_connection;
    std::uint32_t m_newest = 0; ///< Open::connection of the newest connection
    Span m_silence = std::chrono::seconds{20};
    EventLoop::Timer m_silence_timer;
    std::optional<Moment> m_alone_since;
    EventLoop::Timer m_alone_timer; ///< the end of patience()
    bool m_left = false;            ///< no client will come back

    HeldVerb m_verb;
    StreamRelay m_relay;
    bool m_failed = false;    ///< Start did not result in a verb
    bool m_brief = false;     ///< Start::brief
    bool m_confirmed = false; ///< the client has sent a frame after Start
    std::chrono::seconds m_patience{0};
    std::uint64_t m_signals_taken = 0;
};

} // namespace gpuq::remote
