// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/login.h"

#include "core/strings.h"
#include "remote/channel.h"
#include "remote/libssh/known_hosts.h"
#include "remote/login_means.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

/// Methods of authentication are tried in the order of the user's configuration, as long as the
/// host offers them. Within `publickey`: files of keys that need no passphrase, the agent's keys,
/// then files whose passphrase the user is asked for. A user who is asked nothing loses nothing, so
/// a failure before the first question may be repeated by OpenSSH, which knows other means.
namespace gpuq::remote {
namespace {

constexpr int k_most_rounds = 12;    ///< successful parts of a login, and rounds of questions
constexpr int k_most_questions = 30; ///< in a login
constexpr std::size_t k_longest_reason = 300;
constexpr std::string_view k_certificate = "-cert.pub";

struct Method {
    std::string_view name;
    int bit;
};
constexpr std::array k_methods = {
    Method{"gssapi-with-mic", SSH_AUTH_METHOD_GSSAPI_MIC},
    Method{"publickey", SSH_AUTH_METHOD_PUBLICKEY},
    Method{"keyboard-interactive", SSH_AUTH_METHOD_INTERACTIVE},
    Method{"password", SSH_AUTH_METHOD_PASSWORD},
    Method{"hostbased", SSH_AUTH_METHOD_HOSTBASED},
};

int bit_of(std::string_view name)
{
    const auto* const found = std::find_if(k_methods.begin(), k_methods.end(),
                                           [&](const Method& each) { return each.name == name; });
    return found == k_methods.end() ? 0 : found->bit;
}

/// As OpenSSH lists them: `publickey,password`.
std::string names_of(int bits)
{
    std::vector<std::string_view> names;
    for (const Method& each : k_methods) {
        if ((bits & each.bit) != 0) {
            names.push_back(each.name);
        }
    }
    return fmt::format("{}", fmt::join(names, ","));
}

void wipe(std::string& text)
{
    ::explicit_bzero(text.data(), text.size());
    text.clear();
}

bool exists(const std::string& file)
{
    return ::access(file.c_str(), R_OK) == 0;
}

/// As OpenSSH demands it: nobody else may read a private key.
bool is_private(const std::string& file)
{
    struct stat facts {};
    return ::stat(file.c_str(), &facts) == 0 &&
           (facts.st_uid != ::getuid() || (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0);
}

/// True if the public key beside a private one is on a security key.
bool is_security_key(const std::string& file)
{
    std::string kind;
    return static_cast<bool>(std::ifstream(file + ".pub") >> kind) && kind.starts_with("sk-");
}

int family_of(SshPlan::Family family)
{
    return family == SshPlan::Family::ipv4   ? AF_INET
           : family == SshPlan::Family::ipv6 ? AF_INET6
                                             : AF_UNSPEC;
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
        if (m_ssh.channel_open_forward(channel, to->host.c_str(), to->port, "127.0.0.1", 0) !=
            SSH_OK) {
            return broken(fmt::format("can't connect to {} port {}: {}", sanitised(to->host),
                                      to->port, error_text()));
        }
        return std::nullopt;
    }
    return m_ssh.channel_open_session(channel) == SSH_OK ? std::nullopt : broken(error_text());
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
    if (m_to_cancel) {
        ::shutdown(m_to_cancel.get(), SHUT_RDWR);
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
    const bool is_set =
        set(SSH_OPTIONS_PROCESS_CONFIG, &from_files) &&
        set(SSH_OPTIONS_HOST, m_plan.host.c_str()) && set(SSH_OPTIONS_USER, m_plan.user.c_str()) &&
        set(SSH_OPTIONS_PORT, &port) && set(SSH_OPTIONS_TIMEOUT, &limit) &&
        set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null") &&
        set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") &&
        set(SSH_OPTIONS_COMPRESSION, m_plan.compression ? "yes" : "no") &&
        set(SSH_OPTIONS_GSSAPI_DELEGATE_CREDENTIALS, &delegates) &&
        (m_plan.agent.empty() || set(SSH_OPTIONS_IDENTITY_AGENT, m_plan.agent.c_str())) &&
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
    if (check.is == HostKeyCheck::Is::changed) {
        return needs_openssh(m_plan.takes_changed_key ? "StrictHostKeyChecking is off" : "",
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

SshLogin::Failed SshLogin::denied()
{
    const std::string reason =
        fmt::format("{}@{}: Permission denied ({})", sanitised(m_plan.user), sanitised(m_plan.host),
                    names_of(m_ssh.userauth_list(m_session.get(), nullptr)));
    const SshCommand& command = m_request.command;
    if (command.attempt != Attempt::first) {
        return LoginFailure{{Verdict::What::needs_user, login_wanted(command.host, reason)}, ""};
    }
    const bool was_asked = m_has_answered || m_refused_to_answer;
    return needs_openssh(was_asked                ? ""
                         : m_only_openssh.empty() ? "libssh was refused"
                                                  : m_only_openssh,
                         login_refused(command.host, reason, command.interactive));
}

SshLogin::Failed SshLogin::log_in()
{
    int result = m_ssh.userauth_none(m_session.get(), nullptr);
    if (char* const banner = m_ssh.get_issue_banner(m_session.get())) {
        show(banner);
        m_ssh.string_free_char(banner);
    }
    for (int round = 0; result == SSH_AUTH_DENIED || result == SSH_AUTH_PARTIAL; ++round) {
        result = SSH_AUTH_DENIED;
        for (const std::string& method : m_plan.methods) {
            const int offered = m_ssh.userauth_list(m_session.get(), nullptr);
            if ((offered & bit_of(method)) != 0 && !m_refused_to_answer) {
                result = try_method(method);
            }
            if (result != SSH_AUTH_DENIED) {
                break;
            }
        }
        if (result == SSH_AUTH_DENIED || round >= k_most_rounds) {
            return denied();
        }
    }
    if (result == SSH_AUTH_SUCCESS) {
        return std::nullopt;
    }
    Failed failed = broken(error_text());
    if (!m_has_answered) {
        failed->openssh_because = fmt::format("libssh failed: {}", error_text());
    }
    return failed;
}

/// SSH_AUTH_ERROR: the connection is broken.
int SshLogin::try_method(const std::string& method)
{
    return method == "gssapi-with-mic"        ? m_ssh.userauth_gssapi(m_session.get())
           : method == "publickey"            ? try_keys()
           : method == "keyboard-interactive" ? ask_interactively()
                                              : try_password();
}

int SshLogin::try_keys()
{
    for (const auto source :
         {&SshLogin::try_key_files, &SshLogin::try_agent, &SshLogin::try_encrypted_key_files}) {
        if (const int result = (this->*source)(); result != SSH_AUTH_DENIED) {
            return result;
        }
    }
    return SSH_AUTH_DENIED;
}

/// Each file is used once in a login: a host that wants two keys wants different ones.
int SshLogin::try_key_files()
{
    while (m_next_file < m_plan.identities.size()) {
        const std::string& file = m_plan.identities[m_next_file++];
        if (!exists(file)) {
            // Its private part may be in the agent, which libssh cannot ask for a single key.
            m_only_openssh = m_plan.identities_only && exists(file + ".pub")
                                 ? "IdentitiesOnly selects a key of the agent"
                                 : m_only_openssh;
            continue;
        }
        if (is_security_key(file)) {
            m_only_openssh = "a security key may be needed";
            continue;
        }
        if (!is_private(file)) {
            m_only_openssh = "it refuses a key file that others may read";
            continue;
        }
        std::vector<std::string> certificates = m_plan.certificates;
        certificates.push_back(file + std::string(k_certificate));
        certificates.emplace_back(); // without one
        for (const std::string& certificate : certificates) {
            if (!certificate.empty() && !exists(certificate)) {
                continue;
            }
            ssh_key key = nullptr;
            if (m_ssh.pki_import_privkey_file(file.c_str(), nullptr, nullptr, nullptr, &key) !=
                SSH_OK) {
                m_encrypted.push_back(file);
                break;
            }
            if (const int result = use(SshKey(key), certificate); result != SSH_AUTH_DENIED) {
                return result;
            }
        }
    }
    return SSH_AUTH_DENIED;
}

/// Without an offer first: that saves a round trip.
int SshLogin::use(SshKey key, const std::string& certificate)
{
    if (!certificate.empty()) {
        ssh_key imported = nullptr;
        if (m_ssh.pki_import_cert_file(certificate.c_str(), &imported) != SSH_OK) {
            return SSH_AUTH_DENIED;
        }
        const SshKey owner(imported);
        if (m_ssh.pki_copy_cert_to_privkey(imported, key.get()) != SSH_OK) {
            return SSH_AUTH_DENIED;
        }
    }
    return m_ssh.userauth_publickey(m_session.get(), nullptr, key.get());
}

int SshLogin::try_agent()
{
    if (m_plan.agent.empty() || std::exchange(m_agent_tried, true)) {
        return SSH_AUTH_DENIED;
    }
    if (m_plan.identities_only) {
        m_only_openssh =
            m_encrypted.empty() ? m_only_openssh : "IdentitiesOnly selects a key of the agent";
        return SSH_AUTH_DENIED;
    }
    // libssh would wait without limit for an agent that hangs.
    const bool has_keys = state_of({{}, m_plan.agent}).front() != 0;
    return has_keys ? m_ssh.userauth_agent(m_session.get(), nullptr) : SSH_AUTH_DENIED;
}

int SshLogin::try_encrypted_key_files()
{
    while (!m_encrypted.empty() && m_request.asker && !m_refused_to_answer) {
        const std::string file = m_encrypted.front();
        m_encrypted.erase(m_encrypted.begin());
        if (const int result = try_encrypted(file); result != SSH_AUTH_DENIED) {
            return result;
        }
    }
    return SSH_AUTH_DENIED;
}

/// The user is asked only for the passphrase of a key that the host accepts, if its public part is
/// known.
int SshLogin::try_encrypted(const std::string& file)
{
    ssh_key known = nullptr;
    if (m_ssh.pki_import_pubkey_file((file + ".pub").c_str(), &known) == SSH_OK) {
        const SshKey offered(known);
        const int result = m_ssh.userauth_try_publickey(m_session.get(), nullptr, known);
        if (result != SSH_AUTH_SUCCESS) {
            return result;
        }
    }
    for (int i = 0; i < m_plan.tries; ++i) {
        auto phrase = ask(fmt::format("Enter passphrase for key '{}': ", file), false);
        if (!phrase || phrase->empty()) {
            return SSH_AUTH_DENIED; // the next key
        }
        ssh_key key = nullptr;
        const int result =
            m_ssh.pki_import_privkey_file(file.c_str(), phrase->c_str(), nullptr, nullptr, &key);
        wipe(*phrase);
        if (result == SSH_OK) {
            const std::string certificate = file + std::string(k_certificate);
            return use(SshKey(key), exists(certificate) ? certificate : "");
        }
    }
    return SSH_AUTH_DENIED;
}

std::optional<std::string> SshLogin::ask(const std::string& text, bool echo)
{
    const bool leaves_it_to_openssh = m_request.may_use_openssh && !m_only_openssh.empty();
    if (!m_request.asker || leaves_it_to_openssh || ++m_questions > k_most_questions) {
        return std::nullopt;
    }
    auto answer = m_request.asker->ask(text, echo);
    m_refused_to_answer = !answer;
    m_has_answered = m_has_answered || answer;
    return answer;
}

int SshLogin::ask_interactively()
{
    int result = SSH_AUTH_DENIED;
    for (int i = 0; i < m_plan.tries && m_request.asker && result == SSH_AUTH_DENIED; ++i) {
        result = m_ssh.userauth_kbdint(m_session.get(), nullptr, nullptr);
        for (int round = 0; result == SSH_AUTH_INFO; ++round) {
            if (round >= k_most_rounds || answer_round() != SSH_OK) {
                return SSH_AUTH_DENIED;
            }
            result = m_ssh.userauth_kbdint(m_session.get(), nullptr, nullptr);
        }
        if (m_refused_to_answer || !m_has_answered) {
            break; // the host has no question
        }
    }
    return result;
}

/// Answers the questions of one round of keyboard-interactive.
int SshLogin::answer_round()
{
    const char* const instruction = m_ssh.userauth_kbdint_getinstruction(m_session.get());
    std::string before = instruction == nullptr ? "" : instruction;
    if (m_request.command.attempt == Attempt::first && !before.empty()) {
        show(std::exchange(before, ""));
    }
    const int count = m_ssh.userauth_kbdint_getnprompts(m_session.get());
    for (int i = 0; i < count; ++i) {
        char echo = 0;
        const char* const prompt =
            m_ssh.userauth_kbdint_getprompt(m_session.get(), static_cast<unsigned>(i), &echo);
        auto answer = ask(fmt::format("({}@{}) {}{}{}", m_plan.user, m_plan.host, before,
                                      before.empty() ? "" : " ", prompt == nullptr ? "" : prompt),
                          echo != 0);
        if (!answer) {
            return SSH_ERROR;
        }
        const int result = m_ssh.userauth_kbdint_setanswer(
            m_session.get(), static_cast<unsigned>(i), answer->c_str());
        wipe(*answer);
        if (result < 0) {
            return SSH_ERROR;
        }
    }
    return SSH_OK;
}

int SshLogin::try_password()
{
    int result = SSH_AUTH_DENIED;
    for (int i = 0; i < m_plan.tries && result == SSH_AUTH_DENIED; ++i) {
        auto password = ask(fmt::format("{}@{}'s password: ", m_plan.user, m_plan.host), false);
        if (!password) {
            break;
        }
        result = m_ssh.userauth_password(m_session.get(), nullptr, password->c_str());
        wipe(*password);
    }
    return result;
}

} // namespace gpuq::remote
