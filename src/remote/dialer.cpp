// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/dialer.h"

#include "core/user_name.h"
#include "io/socket_owner.h"
#include "remote/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <set>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto k_patience = 30s;
constexpr int k_look_ms = 500;

struct Target {
    sockaddr_storage words{};
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
        if (each->ai_addrlen <= sizeof target.words) {
            std::memcpy(&target.words, each->ai_addr, target.size = each->ai_addrlen);
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
    Clock::time_point until;
    std::string why_not; ///< why an address was refused because of its user
};

class Loop {
public:
    explicit Loop(Dialer dialer)
        : m_dialer(std::move(dialer))
        , m_channel(std::move(m_dialer.in), std::move(m_dialer.out))
    {
        m_channel.send(frames::Beat{}); // the channel works
    }

    void run()
    {
        while (m_open || m_channel.waiting() > 0) {
            if (!m_channel.write_some()) {
                return;
            }
            wait();
        }
    }

private:
    void wait()
    {
        std::vector<pollfd> waits;
        waits.push_back({m_open ? m_channel.input() : -1, POLLIN, 0});
        waits.push_back(
            {m_channel.output(), static_cast<short>(m_channel.waiting() > 0 ? POLLOUT : 0), 0});
        for (const Attempt& attempt : m_attempts) {
            waits.push_back({attempt.socket.get(), POLLOUT, 0});
        }
        const std::size_t fixed = waits.size();
        m_streams.listen(m_channel, waits);
        if (::poll(waits.data(), waits.size(), m_attempts.empty() ? -1 : k_look_ms) < 0) {
            return;
        }
        if ((waits[1].revents & (POLLERR | POLLHUP)) != 0) {
            std::exit(0); // the peer has closed its end
        }
        m_streams.carry(m_channel, std::span(waits).subspan(fixed));
        std::vector<bool> ready;
        for (std::size_t i = 0; i < m_attempts.size(); ++i) {
            ready.push_back(waits[2 + i].revents != 0);
        }
        go_on(ready);
        if (waits[0].revents != 0) {
            read();
        }
    }

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
            on_dial(*dial);
        } else if (const auto* bytes = std::get_if<frames::StreamBytes>(&frame)) {
            if (!m_streams.on_bytes(m_channel, *bytes)) {
                m_streams.refuse(m_channel, bytes->stream, "the stream exceeds its window");
            }
        } else if (const auto* taken = std::get_if<frames::StreamTaken>(&frame)) {
            m_streams.on_taken(*taken);
        } else if (const auto* end = std::get_if<frames::StreamEnd>(&frame)) {
            m_streams.on_end(end->stream);
        } else if (const auto* gone = std::get_if<frames::StreamGone>(&frame)) {
            m_streams.on_gone(gone->stream);
        }
    }

    void on_dial(const frames::Dial& dial)
    {
        if (dial.forward >= m_dialer.destinations.size() || m_streams.has(dial.stream) ||
            m_streams.size() >= frames::k_most_streams) {
            return m_channel.send(frames::StreamGone{dial.stream, "no such destination"});
        }
        Attempt attempt;
        attempt.stream = dial.stream;
        attempt.destination = m_dialer.destinations[dial.forward];
        attempt.left = targets_of(attempt.destination);
        attempt.until = Clock::now() + k_patience;
        if (attempt.left.empty()) {
            return m_channel.send(
                frames::StreamGone{dial.stream, fmt::format("{} can't resolve {}", m_dialer.node,
                                                            attempt.destination)});
        }
        std::reverse(attempt.left.begin(), attempt.left.end());
        m_streams.begin(dial.stream);
        if (next_target(attempt)) {
            m_attempts.push_back(std::move(attempt));
        }
    }

    /// Starts connecting to the next address. False if none is left; the stream is closed then.
    bool next_target(Attempt& attempt)
    {
        while (!attempt.left.empty()) {
            const Target target = attempt.left.back();
            attempt.left.pop_back();
            attempt.socket.reset(
                ::socket(target.words.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            if (attempt.socket &&
                (::connect(attempt.socket.get(), reinterpret_cast<const sockaddr*>(&target.words),
                           target.size) == 0 ||
                 errno == EINPROGRESS)) {
                return true;
            }
        }
        m_streams.refuse(m_channel, attempt.stream, attempt.why_not);
        return false;
    }

    void go_on(const std::vector<bool>& ready)
    {
        std::vector<Attempt> still;
        for (std::size_t i = 0; i < m_attempts.size(); ++i) {
            Attempt& attempt = m_attempts[i];
            if (!m_streams.has(attempt.stream)) {
                continue; // the client has closed it
            }
            if (!ready[i] && Clock::now() < attempt.until) {
                still.push_back(std::move(attempt));
            } else if (is_connected(attempt) && is_own(attempt)) {
                m_streams.give(attempt.stream, std::move(attempt.socket));
            } else if (next_target(attempt)) {
                still.push_back(std::move(attempt));
            }
        }
        m_attempts = std::move(still);
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
    Channel m_channel;
    frames::Decoder m_decoder;
    Streams m_streams;
    std::vector<Attempt> m_attempts;
    std::set<std::string> m_reported;
    bool m_open = true;
};

} // namespace

void run_dialer(Dialer dialer)
{
    std::signal(SIGPIPE, SIG_IGN);
    Loop(std::move(dialer)).run();
}

} // namespace gpuq::remote
