// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/gate.h"

#include "io/event_loop.h"
#include "io/local_socket.h"
#include "remote/lasting_link.h"
#include "remote/streams.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <list>
#include <map>
#include <memory>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr int k_backlog = 16;
constexpr auto k_pause = 20ms;
constexpr std::size_t k_most_sessions = 32;

/// A connection to a local socket of this user, at once. Sets errno on failure.
Descriptor connect_to_own(const std::string& path)
{
    Descriptor socket = connect_to_path(path);
    if (socket && !is_same_user(socket.get())) {
        socket.reset();
        errno = EPERM;
    }
    return socket;
}

/// The streams of one client, over all its connections.
class Session {
public:
    Session(EventLoop& loop, std::string server, const GatePatience& patience,
            const frames::Open& open)
        : m_server(std::move(server))
        , m_patience(patience)
        , m_link(std::make_shared<LastingLink>(open))
        , m_channel(m_link)
        , m_streams(loop, [this] { return &m_channel; })
        , m_input(loop.watch([this] { return EventLoop::to_read(m_link->input()); },
                             [this] { read(); }))
        , m_output(loop.watch(
              [this] { return EventLoop::to_write(m_link->output(), m_channel.wants_to_write()); },
              [this] { m_is_over = !m_channel.write_some() || m_is_over; }))
        , m_leaving(loop, [this] { m_is_over = true; })
    {
    }

    bool resume(const frames::Open& open, Channel connection, frames::Decoder decoder)
    {
        m_leaving.stop();
        const bool resumed = m_link->connect(open, std::move(connection), std::move(decoder));
        read();
        return resumed;
    }

    /// Called after each round.
    void send()
    {
        m_is_over =
            m_is_over || m_link->is_lost() || (m_link->is_connected() && !m_channel.write_some());
        if (!m_link->is_connected() && !m_leaving.is_started()) {
            m_cut_at = EventLoop::Clock::now();
            m_leaving.start_at(m_cut_at + m_patience.alone);
        }
    }
    bool is_over() const { return m_is_over; }
    /// If this client is cut off, it has less time from now on.
    void on_other_client()
    {
        if (m_leaving.is_started()) {
            m_leaving.start_at(m_cut_at + m_patience.beside_another);
        }
    }

private:
    void read()
    {
        while (!m_is_over) {
            const auto bytes = m_channel.read_some();
            m_is_over = !bytes;
            if (!bytes || bytes->empty()) {
                return;
            }
            m_decoder.feed(*bytes);
            auto frame = m_decoder.next();
            for (; frame && *frame; frame = m_decoder.next()) {
                take(**frame);
            }
            m_is_over = m_is_over || !frame;
        }
    }

    void take(const frames::Frame& frame)
    {
        if (const auto* dial = std::get_if<frames::Dial>(&frame)) {
            on_dial(dial->stream);
        } else if (std::holds_alternative<frames::Bye>(frame)) {
            m_is_over = true;
        } else if (const auto exceeding = m_streams.on_frame(frame)) {
            m_streams.refuse(*exceeding, "the stream exceeds its window");
        }
    }

    void on_dial(std::uint32_t stream)
    {
        if (m_streams.has(stream) || m_streams.size() >= frames::k_most_streams) {
            return m_channel.send(frames::StreamClosed{stream, "too many connections"});
        }
        Descriptor socket = connect_to_own(m_server);
        if (!socket) {
            return m_channel.send(frames::StreamClosed{stream, std::strerror(errno)});
        }
        m_streams.begin(stream);
        m_streams.give(stream, std::move(socket));
    }

    std::string m_server;
    GatePatience m_patience;
    std::shared_ptr<LastingLink> m_link; ///< shared with m_channel
    Channel m_channel;
    frames::Decoder m_decoder;
    Streams m_streams;
    EventLoop::Watch m_input, m_output;
    EventLoop::Timer m_leaving;
    EventLoop::Moment m_cut_at;
    bool m_is_over = false;
};

/// A connection that has not sent Open yet.
struct Newcomer {
    explicit Newcomer(Channel channel)
        : connection(std::move(channel))
    {
    }
    Channel connection;
    frames::Decoder decoder;
    EventLoop::Watch watch;
    std::optional<frames::Open> open; ///< once received
    bool is_over = false;
};

class Gate {
public:
    Gate(Descriptor listener, std::string server, const GatePatience& patience)
        : m_listener(std::move(listener))
        , m_server(std::move(server))
        , m_patience(patience)
        , m_probe(m_loop, [this] { probe(); })
    {
        m_loop.add([this] { return EventLoop::to_read(m_listener.get()); }, [this] { accept(); });
        m_probe.start_in(0ms);
    }

    [[noreturn]] void run()
    {
        while (true) {
            m_loop.run_once();
            admit();
            for (auto session = m_sessions.begin(); session != m_sessions.end();) {
                session->second.send();
                session =
                    session->second.is_over() ? m_sessions.erase(session) : std::next(session);
            }
        }
    }

private:
    void probe()
    {
        m_is_open = static_cast<bool>(connect_to_own(m_server));
        if (!m_is_open) {
            m_probe.start_in(k_pause);
        }
    }

    void accept()
    {
        Descriptor socket(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket || !is_same_user(socket.get())) {
            return; // other users may connect to an abstract name
        }
        Descriptor again(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
        Newcomer& one = m_newcomers.emplace_back(Channel(std::move(socket), std::move(again)));
        one.watch = m_loop.watch(
            [&one] { return EventLoop::to_read(one.open ? -1 : one.connection.input()); },
            [&one] { read_open(one); });
    }

    static void read_open(Newcomer& one)
    {
        const auto bytes = one.connection.read_some();
        one.decoder.feed(bytes.value_or(""));
        const auto frame = one.decoder.next();
        one.is_over = !bytes || !frame;
        if (frame && *frame) {
            const auto* open = std::get_if<frames::Open>(&**frame);
            one.is_over = open == nullptr || !frames::is_session_name(open->session);
            one.open = open != nullptr ? std::optional(*open) : std::nullopt;
        }
    }

    /// Gives the connections to their sessions, once the server listens.
    void admit()
    {
        for (auto one = m_newcomers.begin(); one != m_newcomers.end();) {
            const bool comes_in = !one->is_over && one->open && m_is_open;
            if (comes_in) {
                admit(*one);
            }
            one = comes_in || one->is_over ? m_newcomers.erase(one) : std::next(one);
        }
    }

    void admit(Newcomer& one)
    {
        auto session = m_sessions.find(one.open->session);
        // A client that has received nothing can begin anew.
        const bool is_new = one.open->out == 0 && m_sessions.size() < k_most_sessions;
        if (session == m_sessions.end() && is_new) {
            for (auto& [name, other] : m_sessions) {
                other.on_other_client();
            }
            session =
                m_sessions.try_emplace(one.open->session, m_loop, m_server, m_patience, *one.open)
                    .first;
        }
        if (session == m_sessions.end()) {
            one.connection.send(frames::Hello{}); // not known
            (void)one.connection.write_some();
            return;
        }
        session->second.resume(*one.open, std::move(one.connection), std::move(one.decoder));
    }

    EventLoop m_loop;
    Descriptor m_listener;
    std::string m_server;
    GatePatience m_patience;
    std::list<Newcomer> m_newcomers;
    std::map<std::string, Session> m_sessions;
    EventLoop::Timer m_probe;
    bool m_is_open = false;
};

/// Copies in one direction; false at its end.
bool copy_some(int from, int to)
{
    std::array<char, wire::k_piece> buffer;
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    return count < 0 ? errno == EINTR
                     : count > 0 && write_all(to, {buffer.data(), static_cast<std::size_t>(count)});
}

} // namespace

Result<int> run_gate(const std::string& name, const std::string& server,
                     const GatePatience& patience)
{
    std::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    TRY_ASSIGN(Descriptor listener, listen_at(name, k_backlog));
    Gate(std::move(listener), server, patience).run();
}

Result<void> copy_to_gate(const std::string& name, int in, int out)
{
    TRY_ASSIGN(const Descriptor gate, connect_to(name));
    ::fcntl(gate.get(), F_SETFL, ::fcntl(gate.get(), F_GETFL) & ~O_NONBLOCK);
    // Two processes, as a blocked write must not stop the other direction.
    const pid_t child = ::fork();
    const int from = child == 0 ? in : gate.get();
    const int to = child == 0 ? gate.get() : out;
    if (child < 0) {
        return fail(Error::Kind::io, fmt::format("fork: {}", std::strerror(errno)));
    }
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    while (copy_some(from, to)) {
    }
    ::shutdown(gate.get(), SHUT_RDWR); // ends the other process as well
    if (child == 0) {
        ::_exit(0);
    }
    return {};
}

Result<void> join_gate(const std::function<std::optional<std::string>()>& find_name, int in,
                       int out)
{
    while (true) {
        const auto name = find_name();
        auto copied = name ? copy_to_gate(*name, in, out) : fail(Error::Kind::missing, "no gate");
        if (copied || copied.error().kind != Error::Kind::missing) {
            return copied;
        }
        std::this_thread::sleep_for(k_pause);
    }
}

} // namespace gpuq::remote
