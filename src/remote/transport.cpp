// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/transport.h"

#include "io/subprocess.h"
#include "wire/remote_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto k_question = 3s; ///< a Match exec in the user's configuration can take time
constexpr std::size_t k_most_facts = 64 << 10;

/// How a child can ask questions: ssh on the terminal, through an askpass program, or not at all.
struct Asking {
    enum class By { terminal, program, nobody } by = By::nobody;
    std::string program{};
};

/// ssh's messages are parsed, so LC_ALL=C. Without a terminal, no askpass window may appear,
/// including from the ssh to a jump host.
std::vector<std::string> environment_for(const Asking& asking)
{
    std::vector<std::string> variables{"LC_ALL=C"};
    if (asking.by == Asking::By::program) {
        variables.insert(variables.end(),
                         {"SSH_ASKPASS_REQUIRE=force", "SSH_ASKPASS=" + asking.program});
        if (std::getenv("DISPLAY") == nullptr) {
            variables.emplace_back("DISPLAY=none"); // required for askpass before OpenSSH 8.4
        }
    } else if (asking.by == Asking::By::nobody) {
        variables.insert(variables.end(), {"SSH_ASKPASS_REQUIRE=never", "SSH_ASKPASS=/bin/false"});
    }
    const auto is_set = [&](std::string_view entry) {
        const std::string_view name =
            entry.substr(0, std::min(entry.find('='), entry.size() - 1) + 1);
        return std::any_of(variables.begin(), variables.end(),
                           [name](const std::string& each) { return each.starts_with(name); });
    };
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (**entry != '\0' && !is_set(*entry)) {
            variables.emplace_back(*entry);
        }
    }
    return variables;
}

/// A child with these streams that ends with this process.
Subprocess child_plan(std::vector<std::string> arguments, std::vector<int> streams,
                      const Asking& asking)
{
    const bool by_terminal = asking.by == Asking::By::terminal;
    return {.argv = std::move(arguments),
            .environment = environment_for(asking),
            .descriptors = std::move(streams),
            .group = by_terminal ? Subprocess::Group::same : Subprocess::Group::session,
            .death_signal = SIGTERM,
            // It is in our process group because of the terminal, but Ctrl-C is for the remote
            // verb.
            .ignored_signals = {SIGINT, SIGQUIT}};
}

constexpr int k_null = Subprocess::k_null;

} // namespace

std::string printed_by_ssh(std::vector<std::string> arguments)
{
    const auto finished =
        run(child_plan(std::move(arguments), {k_null, k_null, k_null}, {}),
            {.streams = Capture::Streams::output, .most = k_most_facts, .limit = k_question});
    return finished ? finished->out : "";
}

SshTransport::~SshTransport()
{
    end(0);
}

Result<std::string> SshTransport::configuration()
{
    if (m_configuration) {
        return *m_configuration;
    }
    m_configuration = printed_by_ssh(question());
    m_command.facts = ssh_facts_from(*m_configuration);
    if (m_command.facts.without_streams.empty()) {
        return *m_configuration;
    }
    const SshFacts ours = ssh_facts_from(printed_by_ssh(ssh_question(m_command, true)));
    if (!ours.without_streams.empty()) { // set by an option in GPUQ_SSH
        return fail(Error::Kind::usage,
                    fmt::format("GPUQ_SSH sets '{}', but gpuq needs ssh's standard streams: remove "
                                "the option (-n, -N or -f)",
                                ours.without_streams));
    }
    return *m_configuration;
}

std::vector<std::string> SshTransport::question() const
{
    return ssh_question(m_command, false);
}

void SshTransport::set_configuration(std::string text)
{
    if (m_configuration && !text.empty() && text != *m_configuration) {
        m_command.facts = ssh_facts_from(text);
        m_configuration = std::move(text);
        m_means.reset();
    }
}

Result<Transport::Streams> SshTransport::connect(Attempt attempt, bool alone,
                                                 std::string_view first)
{
    end(0);
    TRY(configuration());
    m_command.attempt = attempt;
    m_command.alone = alone;
    m_command.early = wire::remote::escape_argument(first);
    if (m_command.early.size() > wire::remote::k_longest_argument) {
        m_command.early.clear();
    }
    TRY_ASSIGN(Pipe to, make_pipe());
    TRY_ASSIGN(Pipe from, make_pipe());
    TRY_ASSIGN(Pipe errors, make_pipe());
    // A larger pipe means fewer wakeups during heavy output.
    ::fcntl(from.read.get(), F_SETPIPE_SZ, k_largest_pipe);
    Asking asking{attempt == Attempt::first ? Asking::By::terminal : Asking::By::nobody};
    if (attempt == Attempt::asked) {
        TRY_ASSIGN(AskPass made, AskPass::open(m_gpuq));
        m_askpass.emplace(std::move(made));
        asking = {Asking::By::program, m_askpass->program()};
    }
    TRY_ASSIGN(Spawned ssh,
               spawn(child_plan(ssh_arguments(m_command),
                                {to.read.get(), from.write.get(), errors.write.get()}, asking)));
    m_pid = ssh.pid;
    if (const auto failure = failure_of(ssh)) {
        return fail(Error::Kind::internal,
                    fmt::format("can't start ssh: {}", std::strerror(failure->error)));
    }
    // An attempt that asks the user is not probed.
    m_probe = m_command.facts.control_path.empty() || alone || attempt == Attempt::asked
                  ? Probe::none
                  : Probe::check;
    m_probe_at = std::chrono::steady_clock::now() + k_patience;
    return Streams{link_of(std::move(from.read), std::move(to.write)), std::move(errors.read)};
}

void SshTransport::begin_probe(Probe probe, Moment now)
{
    m_probe = probe;
    m_probe_at = now;
    const auto started =
        spawn(child_plan(probe == Probe::check ? ssh_check(m_command) : ssh_knock(m_command),
                         {k_null, k_null, k_null}, {}));
    m_probe_pid = started ? started->pid : -1;
}

void SshTransport::end_probe()
{
    if (m_probe_pid > 0) {
        kill_and_reap(std::exchange(m_probe_pid, -1));
    }
}

/// Checks whether a shared connection exists and its master is alive, then whether the host
/// responds through it. There is no other way to detect a frozen master or a dead network, because
/// the socket still accepts data. Without a shared connection, ssh may be asking the user, so the
/// probing ends.
bool SshTransport::is_stuck(Moment now)
{
    if (m_probe == Probe::none) {
        return false;
    }
    if (m_probe_pid < 0) {
        if (now >= m_probe_at) {
            begin_probe(Probe::check, now);
        }
        return false;
    }
    const auto status = exit_code_if_ended(m_probe_pid);
    if (!status) {
        return now - m_probe_at >= k_answer;
    }
    m_probe_pid = -1;
    if (m_probe == Probe::knock) {
        m_probe = Probe::check; // alive but slow: check again later
        m_probe_at = now + k_answer;
    } else if (*status == 0) {
        begin_probe(Probe::knock, now);
    } else {
        m_probe = Probe::none;
    }
    return false;
}

int SshTransport::end(int milliseconds)
{
    end_probe();
    if (m_pid < 0) {
        return 0;
    }
    std::optional<int> status;
    constexpr int k_step = 10;
    constexpr int k_gently = 200;
    for (int waited = 0; !(status = exit_code_if_ended(m_pid)); waited += k_step) {
        if (waited >= milliseconds) {
            // TERM first: it may have disabled echo to ask for a password.
            ::kill(m_pid, waited < milliseconds + k_gently ? SIGTERM : SIGKILL);
        }
        ::poll(nullptr, 0, k_step);
    }
    m_pid = -1;
    m_askpass.reset();
    return *status;
}

pollfd SshTransport::questions() const
{
    return m_askpass ? pollfd{m_askpass->descriptor(), m_askpass->events(), 0} : pollfd{-1, 0, 0};
}

std::optional<Question> SshTransport::next_question()
{
    return m_askpass ? m_askpass->next() : std::nullopt;
}

void SshTransport::answer(std::string_view text)
{
    if (m_askpass) {
        m_askpass->answer(text);
    }
}

LoginState SshTransport::login_state()
{
    if (!m_means) {
        m_means = login_means_from(m_configuration.value_or(""));
    }
    return state_of(*m_means);
}

Verdict SshTransport::classify(const SshEnd& end) const
{
    return classify_ssh(end, m_command);
}

} // namespace gpuq::remote
