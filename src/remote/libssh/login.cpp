// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/login.h"

#include "core/strings.h"
#include "io/local_socket.h"
#include "remote/channel.h"
#include "remote/libssh/authentication.h"
#include "remote/libssh/known_hosts.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr std::size_t k_longest_reason = 300;
int family_of(SshPlan::Family family)
{
    return family == SshPlan::Family::ipv4   ? AF_INET
           : family == SshPlan::Family::ipv6 ? AF_INET6
                                             : AF_UNSPEC;
}

/// A request of the host, such as to open a channel. Without this function libssh would keep all of
/// them for the caller, and answer none.
int refuse_request(ssh_session, ssh_message, void*)
{
    return 1;
}

} // namespace

SshLogin::SshLogin(const Libssh& ssh, Request request)
    : m_ssh(ssh)
    , m_request(std::move(request))
    , m_plan(m_request.plan)
    , m_cancel_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
}

std::variant<LoggedIn, LoginFailure> SshLogin::run()
{
    ssh_channel channel = nullptr;
    Failed failed;
    for (const auto step :
         {&SshLogin::connect, &SshLogin::begin_session, &SshLogin::check_host, &SshLogin::log_in}) {
        failed = failed ? std::move(failed) : (this->*step)();
    }
    failed = failed ? std::move(failed) : open_channel(channel);
    {
        // As long as this copy of the socket is open, the relay at its other end does not end.
        const std::lock_guard lock(m_mutex);
        m_to_cancel.reset();
        m_agent_to_cancel.reset();
    }
    if (failed) {
        // Which function of libssh notices that, and its message, differ by release.
        failed->is_of_proxy = !m_plan.proxy_command.empty() && !m_has_greeting &&
                              failed->verdict.error.kind == Error::Kind::unreachable;
        m_session.reset();
        return *std::move(failed);
    }
    return LoggedIn{std::move(m_session), channel};
}

SshLogin::Failed SshLogin::open_channel(ssh_channel& channel)
{
    channel = m_ssh.channel_new(m_session.get());
    if (channel == nullptr) {
        return broken("out of memory");
    }
    if (const auto& to = m_request.forwards_to) {
        const int result = repeated(m_ssh, m_session.get(), [&] {
            return m_ssh.channel_open_forward(channel, to->host.c_str(), to->port, "127.0.0.1", 0);
        });
        if (result != SSH_OK) {
            return broken(fmt::format("can't connect to {} port {}: {}", sanitised(to->host),
                                      to->port, error_text()));
        }
        return std::nullopt;
    }
    const int result =
        repeated(m_ssh, m_session.get(), [&] { return m_ssh.channel_open_session(channel); });
    return result == SSH_OK ? std::nullopt : broken(error_text());
}

void SshLogin::wait_for_relays(int milliseconds) const
{
    if (m_relay_done) {
        pollfd wait{m_relay_done->get(), POLLIN, 0};
        (void)::poll(&wait, 1, milliseconds);
    }
    if (m_request.jump) { // it has one even if this login failed before
        m_request.jump->wait_for_relays(milliseconds);
    }
}

void SshLogin::cancel()
{
    m_cancelled = true;
    if (m_request.jump) {
        m_request.jump->cancel();
    }
    if (m_request.asker) {
        m_request.asker->cancel();
    }
    const std::uint64_t one = 1;
    (void)!::write(m_cancel_event.get(), &one, sizeof one);
    const std::lock_guard lock(m_mutex);
    for (const Descriptor* const socket : {&m_to_cancel, &m_agent_to_cancel}) {
        if (*socket) {
            ::shutdown(socket->get(), SHUT_RDWR);
        }
    }
}

std::string SshLogin::error_text() const
{
    return clipped(peer_text(m_ssh.get_error(m_session.get())), k_longest_reason);
}

SshLogin::Failed SshLogin::broken(std::string_view reason)
{
    return LoginFailure{{Verdict::What::broken,
                         fail(Error::Kind::unreachable,
                              fmt::format("{}: {}", sanitised(m_request.command.host), reason))},
                        ""};
}

SshLogin::Failed SshLogin::needs_openssh(std::string reason, Error error)
{
    return LoginFailure{{Verdict::What::stop, std::move(error)}, std::move(reason)};
}

/// Writes lines for the user; those that do not fit into the pipe are lost.
void SshLogin::show(std::string_view text)
{
    std::string line(text.substr(0, k_longest_reason * 10));
    line += line.ends_with('\n') ? "" : "\n";
    (void)!::write(m_request.messages.get(), line.data(), line.size());
}

SshLogin::Failed SshLogin::connect()
{
    if (!m_request.socket) {
        if (Failed failed = m_request.jump ? connect_by_jump() : connect_over_tcp()) {
            return failed;
        }
    }
    const std::lock_guard lock(m_mutex);
    m_to_cancel.reset(::fcntl(m_request.socket.get(), F_DUPFD_CLOEXEC, 0));
    return m_cancelled || !m_to_cancel ? broken("cancelled") : std::nullopt;
}

SshLogin::Failed SshLogin::connect_by_jump()
{
    auto result = m_request.jump->run();
    if (auto* const failure = std::get_if<LoginFailure>(&result)) {
        return std::move(*failure);
    }
    auto relayed = relay(m_ssh, std::move(std::get<LoggedIn>(result)));
    if (!relayed) {
        return broken(relayed.error().text);
    }
    m_request.socket = std::move(relayed->socket);
    m_relay_done = std::move(relayed->done);
    set_nonblocking(m_request.socket.get());
    return std::nullopt;
}

SshLogin::Failed SshLogin::connect_over_tcp()
{
    addrinfo hints{};
    hints.ai_family = family_of(m_plan.family);
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error =
        ::getaddrinfo(m_plan.host.c_str(), std::to_string(m_plan.port).c_str(), &hints, &found);
    if (error != 0) {
        return broken(fmt::format("can't resolve the name {}: {}", sanitised(m_plan.host),
                                  ::gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    std::string why_not = "it has no address";
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
        if (m_cancelled || connect_to(*each, why_not)) {
            break;
        }
    }
    if (!m_request.socket) {
        return broken(fmt::format("can't connect to {} port {}: {}", sanitised(m_plan.host),
                                  m_plan.port, why_not));
    }
    const int on = 1;
    ::setsockopt(m_request.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(m_request.socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return std::nullopt;
}

bool SshLogin::connect_to(const addrinfo& address, std::string& why_not)
{
    Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0 &&
                    errno != EINPROGRESS)) {
        why_not = std::strerror(errno);
        return false;
    }
    std::array<pollfd, 2> wait{{{socket.get(), POLLOUT, 0}, {m_cancel_event.get(), POLLIN, 0}}};
    const auto limit =
        std::chrono::duration_cast<std::chrono::milliseconds>(m_plan.connect_timeout);
    const int ready = ::poll(wait.data(), wait.size(), static_cast<int>(limit.count()));
    int error = 0;
    socklen_t size = sizeof error;
    if (ready <= 0 || wait[0].revents == 0) {
        error = ETIMEDOUT;
    } else if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error != 0) {
        why_not = std::strerror(error);
        return false;
    }
    m_request.socket = std::move(socket);
    return true;
}

bool SshLogin::set(ssh_options_e option, const void* value)
{
    return m_ssh.options_set(m_session.get(), option, value) == SSH_OK;
}

SshLogin::Failed SshLogin::set_options()
{
    const bool from_files = false;
    const unsigned port = m_plan.port;
    const long limit = m_plan.connect_timeout.count();
    const int delegates = m_plan.delegates ? 1 : 0;
    const socket_t socket = m_request.socket.get();
    // libssh accepts fewer characters in names than OpenSSH, and gives no reason.
    for (const auto& [option, name] :
         {std::pair{SSH_OPTIONS_HOST, m_plan.host}, std::pair{SSH_OPTIONS_USER, m_plan.user}}) {
        if (!set(option, name.c_str())) {
            const std::string reason =
                fmt::format("libssh does not accept the name {}", sanitised(name));
            return needs_openssh(reason, fail(Error::Kind::usage, reason));
        }
    }
    const bool is_set =
        set(SSH_OPTIONS_PROCESS_CONFIG, &from_files) && set(SSH_OPTIONS_PORT, &port) &&
        set(SSH_OPTIONS_TIMEOUT, &limit) && set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null") &&
        set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") &&
        set(SSH_OPTIONS_COMPRESSION, m_plan.compression ? "yes" : "no") &&
        set(SSH_OPTIONS_GSSAPI_DELEGATE_CREDENTIALS, &delegates) &&
        (m_plan.agent.empty() || set(SSH_OPTIONS_IDENTITY_AGENT, m_plan.agent.c_str())) &&
        (m_plan.key_rules.least_rsa_bits == 0 ||
         set(SSH_OPTIONS_RSA_MIN_SIZE, &m_plan.key_rules.least_rsa_bits)) &&
        set(SSH_OPTIONS_FD, &socket);
    if (!is_set) {
        return broken(error_text());
    }
    m_request.socket.release(); // now of the session
    const std::string host_keys = preferred_host_keys(m_ssh, m_plan, known_host(m_ssh, m_plan));
    struct Algorithms {
        ssh_options_e option;
        const std::string& list;
    };
    for (const Algorithms& each :
         {Algorithms{SSH_OPTIONS_KEY_EXCHANGE, m_plan.key_exchange},
          Algorithms{SSH_OPTIONS_HOSTKEYS, host_keys},
          Algorithms{SSH_OPTIONS_CIPHERS_C_S, m_plan.ciphers},
          Algorithms{SSH_OPTIONS_CIPHERS_S_C, m_plan.ciphers},
          Algorithms{SSH_OPTIONS_HMAC_C_S, m_plan.macs},
          Algorithms{SSH_OPTIONS_HMAC_S_C, m_plan.macs},
          Algorithms{SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES, m_plan.user_keys}}) {
        if (!each.list.empty() && !set(each.option, each.list.c_str())) {
            Failed failed = broken(error_text());
            failed->openssh_because = "libssh has none of the algorithms in ssh's configuration";
            return failed;
        }
    }
    return std::nullopt;
}

SshLogin::Failed SshLogin::begin_session()
{
    m_session.reset(m_ssh.new_session());
    if (!m_session) {
        return broken("out of memory");
    }
    m_ssh.set_message_callback(m_session.get(), &refuse_request, nullptr);
    if (Failed failed = set_options()) {
        return failed;
    }
    if (m_ssh.connect(m_session.get()) != SSH_OK) {
        const std::string reason = error_text();
        Failed failed = broken(reason);
        if (reason.find("disconnected") != std::string::npos) {
            failed->verdict.error = closed_before_login(m_request.command.host, reason);
        }
        failed->openssh_because = fmt::format("libssh failed: {}", reason);
        return failed;
    }
    return std::nullopt;
}

SshLogin::Failed SshLogin::check_host()
{
    ssh_key shown = nullptr;
    if (m_ssh.get_server_publickey(m_session.get(), &shown) != SSH_OK) {
        return broken(error_text());
    }
    m_has_greeting = true;
    const std::string& host = m_request.command.host;
    const SshKey key(shown);
    const KnownHost known = known_host(m_ssh, m_plan);
    const HostKeyCheck check = check_host_key(m_ssh, known, key);
    if (known.is_special) {
        return needs_openssh("known_hosts has @cert-authority, @revoked or !NAME for the host",
                             fail(Error::Kind::denied,
                                  fmt::format("known_hosts has @cert-authority, @revoked or !NAME "
                                              "for {}, which libssh can't evaluate",
                                              sanitised(host))));
    }
    if (m_plan.key_rules.least_rsa_bits > 0 && m_ssh.key_type(key.get()) == SSH_KEYTYPE_RSA) {
        // libssh checks only the size of the user's keys.
        return needs_openssh("RequiredRSASize is set, and the host has an RSA key",
                             fail(Error::Kind::denied,
                                  fmt::format("{} has an RSA key, whose size libssh can't check "
                                              "(RequiredRSASize)",
                                              sanitised(host))));
    }
    if (check.is == HostKeyCheck::Is::changed) {
        return needs_openssh(m_plan.key_rules.takes_changed ? "StrictHostKeyChecking is off" : "",
                             host_key_changed(host, sanitised(check.where)));
    }
    if (check.is == HostKeyCheck::Is::unknown) {
        return needs_openssh(
            "it asks about the unknown host key",
            fail(Error::Kind::denied, fmt::format("the host key of {0} is not known on this "
                                                  "machine: connect once by hand, ssh {0}",
                                                  sanitised(host))));
    }
    return std::nullopt;
}

SshLogin::Failed SshLogin::denied(const Authentication& authentication)
{
    const std::string reason = fmt::format("{}@{}: Permission denied ({})", sanitised(m_plan.user),
                                           sanitised(m_plan.host), authentication.offered());
    const SshCommand& command = m_request.command;
    if (command.attempt != Attempt::first) {
        return LoginFailure{{Verdict::What::needs_user, login_wanted(command.host, reason)}, ""};
    }
    return needs_openssh(authentication.was_asked()              ? ""
                         : authentication.only_openssh().empty() ? "libssh was refused"
                                                                 : authentication.only_openssh(),
                         login_refused(command.host, reason, command.interactive));
}

/// The agent may hang, or wait for its user to confirm the use of a key: libssh's own connection to
/// it could not be cancelled.
void SshLogin::connect_agent()
{
    Descriptor agent = connect_to_path(m_plan.agent);
    const std::lock_guard lock(m_mutex);
    if (agent && !m_cancelled) {
        m_agent_to_cancel.reset(::fcntl(agent.get(), F_DUPFD_CLOEXEC, 0));
        m_ssh.set_agent_socket(m_session.get(), agent.release());
    }
}

SshLogin::Failed SshLogin::log_in()
{
    // The host may wait for a confirmation on a phone: the caller limits the attempt, and each call
    // is repeated.
    const long seconds = 0, microseconds = 200'000;
    (void)(set(SSH_OPTIONS_TIMEOUT, &seconds) && set(SSH_OPTIONS_TIMEOUT_USEC, &microseconds));
    const int result = repeated(m_ssh, m_session.get(),
                                [this] { return m_ssh.userauth_none(m_session.get(), nullptr); });
    if (char* const banner = m_ssh.get_issue_banner(m_session.get())) {
        show(banner);
        m_ssh.string_free_char(banner);
    }
    connect_agent();
    Authentication authentication(m_ssh, m_session.get(), m_plan,
                                  {m_request.asker.get(), m_request.may_use_openssh,
                                   m_request.command.attempt == Attempt::first
                                       ? [this](std::string_view text) { show(text); }
                                       : std::function<void(std::string_view)>()});
    switch (authentication.complete(result)) {
    case SSH_AUTH_SUCCESS:
        return std::nullopt;
    case SSH_AUTH_DENIED:
        return denied(authentication);
    default:
        break;
    }
    // sshd closes the connection after the last of MaxAuthTries.
    if (error_text().find("Too many authentication failures") != std::string::npos) {
        return denied(authentication);
    }
    Failed failed = broken(error_text());
    if (!authentication.has_answered()) {
        failed->openssh_because = fmt::format("libssh failed: {}", error_text());
    }
    return failed;
}

} // namespace gpuq::remote
