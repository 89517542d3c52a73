// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/dialer.h"

#include "core/user_name.h"
#include "io/event_loop.h"
#include "io/socket_owner.h"
#include "remote/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto k_patience = 30s;
constexpr auto k_last_attempt = 500ms;

struct Target {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

/// Adds all addresses of a host from the resolver.
void add_targets(std::vector<Target>& targets, const std::string& host, const std::string& port)
{
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
        return;
    }
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        Target target;
        if (each->ai_addrlen <= sizeof target.storage) {
            std::memcpy(&target.storage, each->ai_addr, target.size = each->ai_addrlen);
            targets.push_back(target);
        }
    }
    ::freeaddrinfo(found);
}

/// All addresses of HOST:PORT in the order to be tried. A program configured for localhost listens
/// on 127.0.0.1 or ::1, regardless of the resolver.
std::vector<Target> targets_of(const std::string& destination)
{
    const std::size_t colon = std::min(destination.rfind(':'), destination.size());
    const std::string host = destination.substr(0, colon);
    const std::string port = destination.substr(std::min(colon + 1, destination.size()));
    std::vector<Target> targets;
    if (host == "localhost") {
        add_targets(targets, "127.0.0.1", port);
        add_targets(targets, "::1", port);
    } else {
        add_targets(targets, host, port);
    }
    return targets;
}

/// A connection being established.
struct Attempt {
    std::uint32_t stream = 0;
    std::string destination;
    std::vector<Target> left; ///< addresses left to try, the next one at the end
    Descriptor socket;
    EventLoop::Watch connected;
    std::unique_ptr<EventLoop::Timer> patience;
    std::string why_not; ///< why an address was refused because of its user
};

class Dialing {
public:
    explicit Dialing(Dialer dialer)
        : m_dialer(std::move(dialer))
        , m_channel(std::move(m_dialer.in), std::move(m_dialer.out))
        , m_streams(m_loop, [this] { return &m_channel; })
    {
        m_loop.add(
            [this] {
                const short events = m_channel.waiting() > 0 ? POLLOUT : 0;
                return EventLoop::Interest{m_channel.output(), events};
            },
            [](short ready) {
                if ((ready & (POLLERR | POLLHUP)) != 0) {
                    std::exit(0); // the peer has closed its end
                }
            });
        m_loop.add([this] { return EventLoop::to_read(m_open ? m_channel.input() : -1); },
                   [this] { read(); });
        m_channel.send(frames::Beat{}); // the channel works
    }

    void run()
    {
        while ((m_open || m_channel.waiting() > 0) && m_channel.write_some()) {
            m_loop.run_once();
        }
    }

private:
    void read()
    {
        const auto bytes = m_channel.read_some();
        m_open = bytes.has_value();
        m_decoder.feed(bytes.value_or(""));
        while (m_open) {
            auto frame = m_decoder.next();
            m_open = static_cast<bool>(frame);
            if (!frame || !*frame) {
                return;
            }
            on_frame(**frame);
        }
    }

    void on_frame(const frames::Frame& frame)
    {
        if (const auto* dial = std::get_if<frames::Dial>(&frame)) {
            return on_dial(*dial);
        }
        if (const auto exceeding = m_streams.on_frame(frame)) {
            m_streams.refuse(*exceeding, "the stream exceeds its window");
        }
        std::erase_if(m_attempts, [&](const auto& each) { return !m_streams.has(each.first); });
    }

    void on_dial(const frames::Dial& dial)
    {
        if (dial.forward >= m_dialer.destinations.size() || m_streams.has(dial.stream) ||
            m_streams.size() >= frames::k_most_streams) {
            return m_channel.send(frames::StreamClosed{dial.stream, "no such destination"});
        }
        const std::string& destination = m_dialer.destinations[dial.forward];
        std::vector<Target> targets = targets_of(destination);
        if (targets.empty()) {
            return m_channel.send(frames::StreamClosed{
                dial.stream, fmt::format("{} can't resolve {}", m_dialer.node, destination)});
        }
        std::reverse(targets.begin(), targets.end());
        m_streams.begin(dial.stream);
        Attempt& attempt = m_attempts[dial.stream]; // replaces one that has lost its stream
        attempt = {dial.stream, destination, std::move(targets), {}, {}, {}, {}};
        attempt.connected =
            m_loop.watch([&attempt] { return EventLoop::to_write(attempt.socket.get()); },
                         [this, &attempt] { on_connected(attempt); });
        attempt.patience =
            std::make_unique<EventLoop::Timer>(m_loop, [this, &attempt] { next_target(attempt); });
        attempt.patience->start_in(k_patience);
        next_target(attempt);
    }

    void on_connected(Attempt& attempt)
    {
        if (is_connected(attempt) && is_own(attempt)) {
            m_streams.give(attempt.stream, std::move(attempt.socket));
            m_attempts.erase(attempt.stream);
        } else {
            next_target(attempt);
        }
    }

    /// Starts connecting to the next address. If none is left, closes the stream and destroys
    /// `attempt`. When the patience is over, each of the addresses left gets little time.
    void next_target(Attempt& attempt)
    {
        if (!attempt.patience->is_started()) {
            attempt.patience->start_in(k_last_attempt);
        }
        while (!attempt.left.empty()) {
            const Target target = attempt.left.back();
            attempt.left.pop_back();
            attempt.socket.reset(
                ::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            if (attempt.socket &&
                (::connect(attempt.socket.get(), reinterpret_cast<const sockaddr*>(&target.storage),
                           target.size) == 0 ||
                 errno == EINPROGRESS)) {
                return;
            }
        }
        m_streams.refuse(attempt.stream, attempt.why_not);
        m_attempts.erase(attempt.stream);
    }

    static bool is_connected(const Attempt& attempt)
    {
        int error = 0;
        socklen_t size = sizeof error;
        sockaddr_storage there{};
        socklen_t length = sizeof there;
        return ::getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
               error == 0 &&
               ::getpeername(attempt.socket.get(), reinterpret_cast<sockaddr*>(&there), &length) ==
                   0;
    }

    /// Must be checked before any data is sent.
    bool is_own(Attempt& attempt)
    {
        const int socket = attempt.socket.get();
        if (!is_within_machine(socket)) {
            return true;
        }
        const auto user = user_of_server(socket);
        if (user && *user == ::geteuid()) {
            return true;
        }
        const std::string whose = user ? "user " + user_name(*user) : "a process of unknown user";
        attempt.why_not = fmt::format("{} on {} is served by {}, not by you: not connected",
                                      attempt.destination, m_dialer.node, whose);
        if (m_dialer.report && m_reported.insert(attempt.why_not).second) {
            m_dialer.report("--forward: " + attempt.why_not);
        }
        return false;
    }

    Dialer m_dialer;
    EventLoop m_loop;
    Channel m_channel;
    frames::Decoder m_decoder;
    Streams m_streams;
    std::map<std::uint32_t, Attempt> m_attempts; ///< by stream
    std::set<std::string> m_reported;
    bool m_open = true;
};

} // namespace

void run_dialer(Dialer dialer)
{
    std::signal(SIGPIPE, SIG_IGN);
    Dialing(std::move(dialer)).run();
}

} // namespace gpuq::remote
