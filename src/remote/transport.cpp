// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/transport.h"

#include "core/words.h"
#include "io/descriptor.h"
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

/// Starts a child with these streams that ends with this process. Returns its pid or -1.
pid_t start(const std::vector<std::string>& words, const std::array<int, 3>& streams,
            const Asking& asking)
{
    std::vector<std::string> variables = environment_for(asking);
    const auto word_pointers = pointers(words);
    const auto variable_pointers = pointers(variables);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid != 0) {
        return pid;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) {
        ::_exit(1);
    }
    if (asking.by != Asking::By::terminal) {
        ::setsid();
    }
    // It is in our process group because of the terminal, but Ctrl-C is for the remote verb.
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGQUIT, SIG_IGN);
    for (int i = 0; i < 3; ++i) {
        ::dup2(streams[static_cast<std::size_t>(i)], i);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGPIPE, SIGXFSZ, SIGTTIN}) {
        ::signal(number, SIG_DFL);
    }
    ::execvpe(word_pointers[0], word_pointers.data(), variable_pointers.data());
    const std::string_view why = "gpuq: can't start ssh\n";
    (void)!::write(STDERR_FILENO, why.data(), why.size());
    ::_exit(static_cast<int>(ExitStatus::internal));
}

void end_now(pid_t pid)
{
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

/// Output of a command, until it ends or `k_question` has passed.
std::string printed_by(const std::vector<std::string>& words)
{
    auto pipe = make_pipe();
    const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!pipe || !null) {
        return {};
    }
    const pid_t pid = start(words, {null.get(), pipe->write.get(), null.get()}, {});
    pipe->write.reset();
    std::string text;
    const Moment until = std::chrono::steady_clock::now() + k_question;
    while (pid > 0 && text.size() < k_most_facts) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd wait{pipe->read.get(), POLLIN, 0};
        std::array<char, 4096> buffer;
        if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) {
            break;
        }
        const ssize_t count = ::read(pipe->read.get(), buffer.data(), buffer.size());
        if (count <= 0) {
            break;
        }
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    if (pid > 0) {
        end_now(pid);
    }
    return text;
}

} // namespace

SshTransport::~SshTransport()
{
    end(0);
}

/// Reads ssh's configuration, once per session.
Result<void> SshTransport::learn()
{
    if (std::exchange(m_learned, true)) {
        return {};
    }
    m_command.facts = ssh_facts_from(printed_by(ssh_question(m_command, false)));
    if (m_command.facts.without_streams.empty()) {
        return {};
    }
    const SshFacts ours = ssh_facts_from(printed_by(ssh_question(m_command, true)));
    if (!ours.without_streams.empty()) { // set by an option in GPUQ_SSH
        return fail(Error::Kind::usage,
                    fmt::format("GPUQ_SSH sets '{}', but gpuq needs ssh's standard streams: remove "
                                "the option (-n, -N or -f)",
                                ours.without_streams));
    }
    return {};
}

Result<Transport::Streams> SshTransport::connect(Attempt attempt, bool alone,
                                                 std::string_view first)
{
    end(0);
    TRY(learn());
    m_command.attempt = attempt;
    m_command.alone = alone;
    m_command.early = wire::remote::word_of(first);
    if (m_command.early.size() > wire::remote::k_longest_word) {
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
    m_pid =
        start(ssh_words(m_command), {to.read.get(), from.write.get(), errors.write.get()}, asking);
    // An attempt that asks the user is not probed.
    m_probe = m_command.facts.control_path.empty() || alone || attempt == Attempt::asked
                  ? Probe::none
                  : Probe::check;
    m_probe_at = std::chrono::steady_clock::now() + k_patience;
    if (m_pid < 0) {
        return fail(Error::Kind::io, fmt::format("fork: {}", std::strerror(errno)));
    }
    return Streams{std::move(from.read), std::move(to.write), std::move(errors.read)};
}

void SshTransport::begin_probe(Probe probe, Moment now)
{
    const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    m_probe = probe;
    m_probe_at = now;
    m_probe_pid = start(probe == Probe::check ? ssh_check(m_command) : ssh_knock(m_command),
                        {null.get(), null.get(), null.get()}, {});
}

void SshTransport::end_probe()
{
    if (m_probe_pid > 0) {
        end_now(std::exchange(m_probe_pid, -1));
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
    int status = 0;
    if (::waitpid(m_probe_pid, &status, WNOHANG) == 0) {
        return now - m_probe_at >= k_answer;
    }
    m_probe_pid = -1;
    const bool is_shared = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (m_probe == Probe::knock) {
        m_probe = Probe::check; // alive but slow: check again later
        m_probe_at = now + k_answer;
    } else if (is_shared) {
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
    int status = 0;
    constexpr int k_step = 10;
    constexpr int k_gently = 200;
    for (int waited = 0; ::waitpid(m_pid, &status, WNOHANG) == 0; waited += k_step) {
        if (waited >= milliseconds) {
            // TERM first: it may have disabled echo to ask for a password.
            ::kill(m_pid, waited < milliseconds + k_gently ? SIGTERM : SIGKILL);
        }
        ::poll(nullptr, 0, k_step);
    }
    m_pid = -1;
    m_askpass.reset();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
        m_means = login_means_from(printed_by(ssh_question(m_command, false)));
    }
    return state_of(*m_means);
}

Verdict SshTransport::judge(const SshEnd& end) const
{
    return judge_ssh(end, m_command);
}

} // namespace gpuq::remote
