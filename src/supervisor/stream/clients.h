// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "runs/records/network_login.h"
#include "supervisor/base/context.h"
#include "supervisor/base/loop.h"
#include "supervisor/stream/backlog.h"
#include "supervisor/stream/connection.h"
#include "supervisor/stream/input.h"
#include "supervisor/stream/log_writer.h"
#include "supervisor/stream/server.h"

#include <array>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// All connected clients, and which of them owns the program's input.
class Clients {
public:
    using Clock = Connection::Clock;

    /// Callbacks for the clients' requests.
    struct Requests {
        std::function<void(int number)> signal;
        std::function<void(const std::string& by)> stop;
        /// Resizes the program's terminal; `anew`: the program should redraw everything.
        std::function<void(TerminalSize size, bool anew)> resize = {};
        /// Initial content for a new client's terminal.
        std::function<std::string(TerminalSize size)> screen = {};
        /// A message for the journal.
        std::function<void(const std::string& text)> report = {};
    };
    /// How the program gets its input.
    enum class Typing {
        one_owner, ///< through a pipe: bytes of the owner, by offset
        terminals, ///< all input of connections that end in a terminal
    };
    /// The references must outlive the object.
    Clients(Loop& loop, Backlog& backlog, InputBuffer& input, LogWriter& log, wire::Hello hello,
            Requests requests, Typing typing);

    void listen(Server server) { m_local.server = std::move(server); }
    /// `login`: this end's part of the login of a client over the network.
    void listen_on_network(Server server, std::function<NetworkLogin()> login);
    /// Adds the standard streams as the first owner.
    void add_first(Descriptor input, Descriptor output);

    /// Call in each round of the loop, after the handlers: drops the clients that have left.
    void update();
    void history_came(LogWriter::Answer answer);
    /// Call in each round of the loop: sends as much as possible.
    void transmit();

    // Sent to all clients, including later ones.
    void started(int pid);
    void note(const std::string& text);
    void ended(const wire::Ended& ended);

    /// A note for the first client that attaches.
    void greet_with(const std::string& text) { m_greeting = text; }

    /// Since when the program's input has had no owner; nullopt while it has one, and after an
    /// owner left on purpose. The clock's epoch if that owner left without sending the end of its
    /// piped input.
    std::optional<Clock::time_point> without_owner_since() const { return m_without_owner; }
    bool had_owner() const { return m_had_owner; }
    void expect_owner() { m_without_owner = m_loop.now(); }

    /// Whether a client is attached to the program's terminal, now or at any time.
    bool has_terminal() const;
    bool had_terminal() const { return m_turn > 0; }

    /// The first chunk that a client which keeps reading still needs.
    std::uint64_t needed(std::chrono::milliseconds stalled) const;
    /// Drops clients that do not read any more. True if all others have been sent the end.
    bool all_notified(std::chrono::milliseconds stalled);
    /// True if only guards, and clients whose end cannot be detected, are left.
    bool all_gone() const;

private:
    struct Member {
        Connection connection;
        std::array<Loop::Watch, 3> watches = {};
        bool dead = false;
        std::optional<wire::Terminal> terminal;
        std::optional<std::uint64_t> signals_of; ///< the client, if it has sent numbered signals
        std::uint64_t turn = 0; ///< the terminal with the highest number determines the size
        std::optional<wire::StdinTaken> reported;
        std::optional<NetworkLogin> login; ///< of a client whose proof is still to come
    };
    struct Entrance {
        std::optional<Server> server;
        Loop::Watch watch;
    };
    Member& add(Connection connection);
    void accept(Server& server);
    void log_in(Member& member, const wire::Frame& frame);
    void make_room_for_login();
    void introduce(Connection& connection);
    void greet(Connection& connection);
    void read_frames(Member& member);
    void handle_frame(Member& member, const wire::Frame& frame);
    void handle_input(Member& member, const wire::Stdin& frame);
    void type(Member& member, const wire::Stdin& frame);
    void take_signal(Member& member, const wire::Signal& frame);
    void forget_client(const Member& member);
    void add_terminal(Member& member, const wire::Terminal& frame);
    void lose_terminal(Member& member);
    void take(const Member& taker, const wire::Take& frame);
    void attach(Member& member, const wire::Attach& frame);
    void own(Connection& connection);
    bool owns(const Member& member) const { return m_owner == member.connection.id(); }
    void bury();
    void lose_owner(const Connection& connection);
    void report_input_taken();

    Loop& m_loop;
    Backlog& m_backlog;
    InputBuffer& m_input;
    LogWriter& m_log;
    wire::Hello m_hello;
    Requests m_requests;
    Typing m_typing;
    std::map<std::uint64_t, std::uint64_t> m_typed;   ///< input offset per client
    std::map<std::uint64_t, std::uint64_t> m_signals; ///< number of signals per client
    std::uint64_t m_turn = 0;
    Entrance m_local, m_network;
    std::function<NetworkLogin()> m_new_login;
    std::list<Member> m_members; ///< their watches refer to them
    int m_next_id = 1;
    std::optional<int> m_owner;
    bool m_had_owner = false;
    std::optional<Clock::time_point> m_without_owner;
    std::optional<int> m_started;
    std::optional<wire::Ended> m_ended;
    std::string m_greeting;
};

} // namespace gpuq::supervisor
