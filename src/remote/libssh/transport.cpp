// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/transport.h"

#include "io/local_socket.h"
#include "io/subprocess.h"
#include "log/log.h"
#include "remote/libssh/thread.h"
#include "remote/peer_data.h"
#include "term/sanitise.h"
#include "wire/remote_frame.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

// The way is chosen anew for each connection (plan): an error of the kind `missing` means that
// libssh lacks something that the user's ssh configuration needs, and OpenSSH carries the
// connection. If that only turns out during the first login, the verdict is `other_way`, and
// OpenSSH carries all later connections.
//
// All functions belong to the client's thread. Logins and the channel run in the thread of the
// LibsshConnection. Its questions are asked on the terminal in the first attempt (TerminalAsker)
// and through the client's loop in one that the user has requested (QuestionBox); other attempts
// ask nothing.
//
// Jump hosts are a chain of logins, each of which forwards to the next host. Only the first of them
// can have a ProxyCommand, so there is at most one such process.

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
    return connect_to_path(socket) || errno == EAGAIN;
}

bool is_ssh(const std::vector<std::string>& command)
{
    const std::string& program = command.front();
    return program.substr(program.rfind('/') + 1) == "ssh";
}

} // namespace

/// Runs `ssh -G` once more for all hosts, in a thread that may outlive the attempt: `Match exec` in
/// the configuration may take seconds.
struct HostTransport::Asking {
    std::map<std::vector<std::string>, std::string> configurations;
    Descriptor done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}; ///< readable: the thread is over
};

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

std::string HostTransport::printed_for(const std::vector<std::string>& question)
{
    const auto [found, is_new] = m_configurations.try_emplace(question);
    if (is_new) {
        found->second = printed_by_ssh(question);
    }
    return found->second;
}

int HostTransport::prepare()
{
    auto asking = std::make_shared<Asking>();
    asking->configurations = m_configurations;
    asking->configurations.try_emplace(m_openssh.question());
    const auto started = start_thread([asking] {
        for (auto& [question, text] : asking->configurations) {
            text = printed_by_ssh(question);
        }
        const std::uint64_t one = 1;
        (void)!::write(asking->done.get(), &one, sizeof one);
    });
    m_asking = started ? std::move(asking) : nullptr;
    return m_asking ? m_asking->done.get() : -1;
}

/// Evaluates the configurations for another connection; without prepare(), they are read when they
/// are needed.
void HostTransport::take_answers()
{
    std::uint64_t one = 0;
    const bool is_done = m_asking && ::read(m_asking->done.get(), &one, sizeof one) == sizeof one;
    m_configurations = is_done ? std::move(m_asking->configurations) : decltype(m_configurations)();
    m_openssh.set_configuration(printed_for(m_openssh.question()));
}

/// Adds the jump hosts that lead to a host, before that host itself. As with OpenSSH, the first of
/// them may need jump hosts of its own.
Result<void> HostTransport::add_hops(const std::string& proxy_jump, Way& way)
{
    constexpr std::size_t k_most_hops = 8;
    const std::vector<std::string>& ssh = m_openssh.command().ssh;
    const bool is_plain = ssh.size() == 1 || (ssh.size() == 3 && ssh[1] == "-F");
    if (!is_plain) { // which options are for the host, and which for every hop?
        return fail(Error::Kind::missing, "GPUQ_SSH has options, and a jump host is needed");
    }
    TRY_ASSIGN(const std::vector<Hop> hops, hops_in(proxy_jump));
    for (std::size_t i = 0; i < hops.size(); ++i) {
        const Hop& hop = hops[i];
        std::vector<std::string> question = ssh;
        question.emplace_back("-G");
        if (!hop.user.empty()) {
            question.insert(question.end(), {"-l", hop.user});
        }
        if (!hop.port.empty()) {
            question.insert(question.end(), {"-p", hop.port});
        }
        question.insert(question.end(), {"--", hop.host});
        TRY_ASSIGN(SshPlan plan, plan_from(printed_for(question),
                                           {home_of_user(), variable("SSH_AUTH_SOCK"), hop.host}));
        if (i == 0 && !plan.proxy_jump.empty() && way.size() < k_most_hops) {
            TRY(add_hops(plan.proxy_jump, way));
        }
        if (i > 0) {
            plan.proxy_command.clear();
        }
        if (way.size() >= k_most_hops) {
            return fail(Error::Kind::missing, "there are too many jump hosts");
        }
        way.push_back({hop.host, std::move(plan)});
    }
    return {};
}

Result<HostTransport::Way> HostTransport::plan(Attempt attempt, bool alone)
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
    Way way;
    if (!plan.proxy_jump.empty()) {
        TRY(add_hops(plan.proxy_jump, way));
    }
    way.push_back({host, std::move(plan)});
    // A session without OpenSSH cannot move to a shared connection that has begun since.
    const bool may_share =
        !alone && (m_choice != TransportChoice::libssh || attempt == Attempt::first);
    for (Stop& each : way) {
        if (may_share && is_live(each.plan.control_path)) {
            return fail(Error::Kind::missing, "a shared connection (ControlPath) exists");
        }
        if (attempt == Attempt::asked) {
            each.plan.tries = 1; // one answer per Enter, so that no account gets locked
        }
    }
    return way;
}

Result<Transport::Streams> HostTransport::connect(Attempt attempt, bool alone,
                                                  std::string_view first)
{
    if (attempt != Attempt::first) {
        take_answers();
    }
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

Result<Transport::Streams> HostTransport::connect_by_libssh(Way way, Attempt attempt,
                                                            std::string_view first)
{
    TRY_ASSIGN(const Libssh* const ssh, libssh());
    TRY_ASSIGN(Pipe errors, make_pipe());
    set_nonblocking(errors.write.get());
    std::shared_ptr<Asker> asker;
    if (attempt == Attempt::asked) {
        asker = std::make_shared<QuestionBox>();
    } else if (attempt == Attempt::first && m_openssh.command().interactive) {
        asker = std::make_shared<TerminalAsker>();
    }
    const auto request_for = [&](Stop& stop) -> Result<SshLogin::Request> {
        SshLogin::Request request;
        request.plan = std::move(stop.plan);
        if (!request.plan.proxy_command.empty()) {
            TRY_ASSIGN(request.socket, start_proxy(request.plan, attempt, errors.write.get()));
        }
        request.command = m_openssh.command();
        request.command.host = stop.name;
        request.command.attempt = attempt;
        request.asker = request.plan.batch ? nullptr : asker;
        request.may_use_openssh =
            m_choice == TransportChoice::automatic && attempt == Attempt::first;
        request.messages.reset(::fcntl(errors.write.get(), F_DUPFD_CLOEXEC, 0));
        return request;
    };
    std::unique_ptr<SshLogin> jump;
    for (std::size_t i = 0; i + 1 < way.size(); ++i) {
        TRY_ASSIGN(SshLogin::Request request, request_for(way[i]));
        request.jump = std::move(jump);
        request.forwards_to = {way[i + 1].plan.host, way[i + 1].plan.port};
        jump = std::make_unique<SshLogin>(*ssh, std::move(request));
    }
    TRY_ASSIGN(SshLogin::Request request, request_for(way.back()));
    request.jump = std::move(jump);
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
    TRY_ASSIGN(auto ends, make_socket_pair());
    auto& [here, there] = ends;
    const std::string shell = variable("SHELL");
    const Subprocess proxy{
        .argv = {shell.empty() ? "/bin/sh" : shell, "-c", "exec " + plan.proxy_command},
        .descriptors = {there.get(), there.get(), errors},
        .group = attempt == Attempt::first ? Subprocess::Group::same : Subprocess::Group::session,
        .death_signal = SIGTERM,
        .ignored_signals = {SIGINT, SIGQUIT}};
    TRY_ASSIGN(const Spawned started, spawn(proxy));
    m_proxy = started.pid;
    return std::move(here);
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

void HostTransport::end_proxy()
{
    if (m_proxy > 0) {
        kill_and_reap(std::exchange(m_proxy, -1));
    }
}

int HostTransport::end(int milliseconds)
{
    m_asking.reset();
    if (!m_connection) {
        end_proxy(); // of an attempt that has failed on this machine
        return m_openssh.end(milliseconds);
    }
    m_connection->end(milliseconds);
    end_proxy();
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
        if (failure->is_of_proxy) {
            verdict.error = proxy_ended(command.host, last_message(end.errors));
        }
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
