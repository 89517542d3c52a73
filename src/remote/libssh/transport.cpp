// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/transport.h"

#include "io/local_socket.h"
#include "io/subprocess.h"
#include "log/log.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"
#include "wire/remote_frame.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

constexpr int k_no_status = 255; ///< as of OpenSSH, whose connection has ended

std::string variable(const char* name)
{
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// ssh expands ~ by the password file.
std::string home_of_user()
{
    const passwd* const entry = ::getpwuid(::getuid());
    return entry == nullptr ? variable("HOME") : entry->pw_dir;
}

/// True if a process listens on the socket of a shared connection.
bool is_live(const std::string& socket)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const Descriptor there(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.empty() || socket.size() >= sizeof address.sun_path || !there) {
        return false;
    }
    socket.copy(static_cast<char*>(address.sun_path), socket.size());
    return ::connect(there.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
               0 ||
           errno == EAGAIN;
}

bool is_ssh(const std::vector<std::string>& command)
{
    const std::string& program = command.front();
    return program.substr(program.rfind('/') + 1) == "ssh";
}

} // namespace

HostTransport::HostTransport(TransportChoice choice, SshCommand command, std::string gpuq)
    : m_choice(choice)
    , m_openssh(std::move(command), std::move(gpuq))
    , m_openssh_because(choice == TransportChoice::openssh ? "`transport: openssh` is set" : "")
{
}

HostTransport::~HostTransport()
{
    end(0);
}

std::string HostTransport::description() const
{
    if (m_why_not_libssh.empty()) {
        const auto ssh = libssh();
        return "libssh " + (ssh ? (*ssh)->release : "");
    }
    return "OpenSSH, since " + m_why_not_libssh;
}

Result<SshPlan> HostTransport::plan(Attempt attempt, bool alone)
{
    if (!m_openssh_because.empty()) {
        return fail(Error::Kind::missing, m_openssh_because);
    }
    TRY(libssh());
    if (!is_ssh(m_openssh.command().ssh)) {
        return fail(Error::Kind::missing, "GPUQ_SSH is another program than ssh");
    }
    TRY_ASSIGN(const std::string configuration, m_openssh.configuration());
    const std::string& host = m_openssh.command().host;
    TRY_ASSIGN(SshPlan plan, plan_from(configuration, {home_of_user(), variable("SSH_AUTH_SOCK"),
                                                       host.substr(host.rfind('@') + 1)}));
    if (!alone && is_live(plan.control_path)) {
        return fail(Error::Kind::missing, "a shared connection (ControlPath) exists");
    }
    if (attempt == Attempt::asked) {
        plan.tries = 1; // one answer per Enter, so that no account gets locked
    }
    return plan;
}

Result<Transport::Streams> HostTransport::connect(Attempt attempt, bool alone,
                                                  std::string_view first)
{
    end(0);
    m_connection.reset();
    m_attempt = attempt;
    auto planned = plan(attempt, alone);
    if (planned) {
        m_why_not_libssh.clear();
        log::info(log::Part::remote, "by {}", description());
        return connect_by_libssh(*std::move(planned), attempt, first);
    }
    if (planned.error().kind != Error::Kind::missing) {
        return std::move(planned).error();
    }
    if (m_choice == TransportChoice::libssh) {
        return fail(Error::Kind::usage,
                    fmt::format("`transport: libssh` is set, but OpenSSH is required, since {}",
                                planned.error().text));
    }
    m_why_not_libssh = planned.error().text;
    log::info(log::Part::remote, "by {}", description());
    return m_openssh.connect(attempt, alone, first);
}

Result<Transport::Streams> HostTransport::connect_by_libssh(SshPlan plan, Attempt attempt,
                                                            std::string_view first)
{
    TRY_ASSIGN(const Libssh* const ssh, libssh());
    TRY_ASSIGN(Pipe errors, make_pipe());
    set_nonblocking(errors.write.get());
    SshLogin::Request request;
    if (!plan.proxy_command.empty()) {
        TRY_ASSIGN(request.socket, start_proxy(plan, attempt, errors.write.get()));
    }
    request.command = m_openssh.command();
    request.command.attempt = attempt;
    if (attempt == Attempt::asked) {
        request.asker = std::make_unique<QuestionBox>();
    } else if (attempt == Attempt::first && request.command.interactive && !plan.batch) {
        request.asker = std::make_unique<TerminalAsker>();
    }
    request.may_use_openssh =
        m_choice == TransportChoice::automatic && attempt == Attempt::first;
    request.messages.reset(::fcntl(errors.write.get(), F_DUPFD_CLOEXEC, 0));
    request.plan = std::move(plan);
    std::string command = request.command.program + " serve";
    if (const std::string early = wire::remote::escape_argument(first);
        !early.empty() && early.size() <= wire::remote::k_longest_argument) {
        command += " " + early;
    }
    TRY_ASSIGN(m_connection, LibsshConnection::begin(*ssh, std::move(request), std::move(command),
                                                     std::move(errors.write)));
    return Streams{m_connection, std::move(errors.read)};
}

/// Starts ProxyCommand by the user's shell, as ssh does. Returns our end of its streams.
Result<Descriptor> HostTransport::start_proxy(const SshPlan& plan, Attempt attempt, int errors)
{
    std::array<int, 2> pair{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        return fail(Error::Kind::io, "no descriptors are left for ProxyCommand");
    }
    Descriptor here(pair[0]);
    const Descriptor there(pair[1]);
    const std::string shell = variable("SHELL");
    const Subprocess proxy{.argv = {shell.empty() ? "/bin/sh" : shell, "-c",
                                    "exec " + plan.proxy_command},
                           .descriptors = {there.get(), there.get(), errors},
                           .group = attempt == Attempt::first ? Subprocess::Group::same
                                                              : Subprocess::Group::session,
                           .death_signal = SIGTERM,
                           .ignored_signals = {SIGINT, SIGQUIT}};
    TRY_ASSIGN(const Spawned started, spawn(proxy));
    m_proxy = started.pid;
    return here;
}

bool HostTransport::is_stuck(Moment now)
{
    return !m_connection && m_openssh.is_stuck(now);
}

QuestionBox* HostTransport::questions_of_libssh() const
{
    return m_connection ? dynamic_cast<QuestionBox*>(m_connection->asker()) : nullptr;
}

pollfd HostTransport::questions() const
{
    if (const QuestionBox* const box = questions_of_libssh()) {
        return {box->descriptor(), POLLIN, 0};
    }
    return m_openssh.questions();
}

std::optional<Question> HostTransport::next_question()
{
    QuestionBox* const box = questions_of_libssh();
    return box != nullptr ? box->next() : m_openssh.next_question();
}

bool HostTransport::is_asked() const
{
    const QuestionBox* const box = questions_of_libssh();
    return box != nullptr ? box->is_asked() : m_openssh.is_asked();
}

void HostTransport::answer(std::string_view text)
{
    if (QuestionBox* const box = questions_of_libssh()) {
        box->answer(text);
    } else {
        m_openssh.answer(text);
    }
}

int HostTransport::end(int milliseconds)
{
    if (!m_connection) {
        return m_openssh.end(milliseconds);
    }
    m_connection->end(milliseconds);
    if (m_proxy > 0) {
        kill_and_reap(std::exchange(m_proxy, -1));
    }
    const LoginFailure* const failure = m_connection->failure();
    if (failure != nullptr && m_choice == TransportChoice::automatic &&
        m_attempt == Attempt::first && m_openssh_because.empty()) {
        m_openssh_because = failure->openssh_because;
    }
    return m_connection->exit_status().value_or(k_no_status);
}

Verdict HostTransport::classify(const SshEnd& end) const
{
    if (!m_connection) {
        return m_openssh.classify(end);
    }
    SshCommand command = m_openssh.command();
    if (const LoginFailure* const failure = m_connection->failure()) {
        Verdict verdict = failure->verdict;
        if (!m_openssh_because.empty()) {
            verdict.what = Verdict::What::other_way;
        }
        return verdict;
    }
    if (end.status == k_no_status) {
        return {Verdict::What::broken,
                fail(Error::Kind::unreachable,
                     fmt::format("the connection to {} has ended", sanitised(command.host)))};
    }
    command.attempt = m_attempt;
    return classify_ssh(end, command);
}

} // namespace gpuq::remote
