// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sshd/ssh_server.h"

#include "core/exit_status.h"
#include "core/layout.h"
#include "io/signal_descriptor.h"
#include "io/subprocess.h"
#include "io/trusted_path.h"
#include "supervisor/base/descriptor.h"
#include "supervisor/base/job_environment.h"
#include "supervisor/base/link_files.h"
#include "supervisor/base/link_tmp.h"
#include "supervisor/base/process_tree.h"
#include "supervisor/keeper/link_credentials.h"
#include "supervisor/sshd/sshd_config.h"
#include "wire/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_kill_patience = 5s;
/// Debian's sshd, if started by root, needs this directory, which its service would have created.
constexpr const char* k_root_directory = "/run/sshd";

/// The configuration file of one sshd, for as long as it runs.
class ConfigFile {
public:
    ConfigFile(Descriptor directory, std::string name)
        : m_directory(std::move(directory))
        , m_name(std::move(name))
    {
    }
    ~ConfigFile() { ::unlinkat(m_directory.get(), m_name.c_str(), 0); }
    ConfigFile(const ConfigFile&) = delete;
    ConfigFile& operator=(const ConfigFile&) = delete;

    Result<void> write(const std::string& text) const
    {
        const Descriptor file(::openat(m_directory.get(), m_name.c_str(),
                                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file || !write_all(file.get(), text)) {
            return fail(Error::Kind::io, fmt::format("{}: {}", m_name, error_text(errno)));
        }
        return {};
    }

private:
    Descriptor m_directory;
    std::string m_name;
};

/// The check of sshd's StrictModes, which must be off for the run's own keys.
bool has_own_keys(const std::string& home)
{
    return static_cast<bool>(open_trusted_file(home + "/.ssh/authorized_keys"));
}

/// The program's TMPDIR on this node.
std::optional<std::string> tmp_of_program(const RunKey& key)
{
    for (const pid_t pid : started_with("GPUQ_RUN_ID=" + key.text())) {
        const auto tmp = variable_of(pid, "TMPDIR");
        if (tmp && is_link_tmp(*tmp)) {
            return tmp;
        }
    }
    return std::nullopt;
}

std::vector<std::string> environment_for(const Run& run, const Options& options)
{
    Environment variables = Environment::own();
    describe_job(variables, run);
    // The values from the login session are of no use here.
    const CredentialNames own = credentials_of(run, options);
    for (const auto& [name, value] :
         {std::pair{"KRB5CCNAME", own.cache}, std::pair{"BEARER_TOKEN_FILE", own.token}}) {
        variables.unset(name);
        if (value) {
            variables.set(name, *value);
        }
    }
    if (const auto tmp = tmp_of_program(run.key)) {
        variables.set("TMPDIR", *tmp);
    }
    describe_run(variables, run, options.link, options.state_dir);
    return session_environment(variables.texts(), run.request.setup.env);
}

Result<SshdSettings> settings_for(const Run& run, const Options& options)
{
    const passwd* const entry = ::getpwuid(::geteuid());
    if (entry == nullptr) {
        return fail(Error::Kind::internal,
                    fmt::format("{} does not know user {}", options.node, ::geteuid()));
    }
    return SshdSettings{options.state_dir + "/" + layout::connect_dir(run.key), entry->pw_name,
                        has_own_keys(entry->pw_dir), environment_for(run, options)};
}

/// Copies the output of an sshd to standard output until sshd has ended.
class Carrier {
public:
    Carrier(Descriptor signals, Descriptor from, pid_t sshd)
        : m_signals(std::move(signals))
        , m_from(std::move(from))
        , m_sshd(sshd)
    {
        set_nonblocking(m_from.get());
        set_nonblocking(STDOUT_FILENO);
    }

    void run()
    {
        while (!m_done) {
            const bool full = !m_outgoing.empty();
            pollfd waits[] = {{m_signals.get(), POLLIN, 0},
                              {full ? -1 : m_from.get(), POLLIN, 0},
                              {full ? STDOUT_FILENO : -1, POLLOUT, 0}};
            if (::poll(waits, std::size(waits), -1) < 0) {
                continue;
            }
            if (waits[0].revents != 0) {
                read_signals();
            }
            if (waits[1].revents != 0 || (m_sshd_gone && !full)) {
                read_some();
            }
            if (waits[2].revents != 0) {
                write_some();
            }
        }
    }

private:
    void read_signals()
    {
        signalfd_siginfo info{};
        while (::read(m_signals.get(), &info, sizeof info) == sizeof info) {
            if (info.ssi_signo != SIGCHLD) {
                m_done = true; // Slurm ends the job
            }
        }
        pid_t pid = 0;
        while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
            m_sshd_gone = m_sshd_gone || pid == m_sshd;
        }
    }

    void read_some()
    {
        char piece[wire::k_piece];
        const ssize_t size = ::read(m_from.get(), piece, sizeof piece);
        if (size > 0) {
            std::string bytes(piece, static_cast<std::size_t>(size));
            m_offset += bytes.size();
            m_outgoing =
                wire::encode(wire::Output{Stream::out, m_offset - bytes.size(), std::move(bytes)});
            m_outgoing += wire::k_flush;
        } else if (size == 0 || m_sshd_gone || (errno != EAGAIN && errno != EINTR)) {
            m_done = true;
        }
    }

    void write_some()
    {
        const ssize_t size = ::write(STDOUT_FILENO, m_outgoing.data(), m_outgoing.size());
        if (size >= 0) {
            m_outgoing.erase(0, static_cast<std::size_t>(size));
        } else if (errno != EAGAIN && errno != EINTR) {
            m_done = true; // the reader is gone
        }
    }

    Descriptor m_signals;
    Descriptor m_from;
    pid_t m_sshd;
    std::string m_outgoing;
    std::uint64_t m_offset = 0;
    bool m_sshd_gone = false;
    bool m_done = false;
};

/// Carries the output of the process that `start` creates.
Result<int> carry(const std::function<Result<pid_t>(int output)>& start)
{
    TRY_ASSIGN(Pipe output, make_pipe());
    become_subreaper();
    Descriptor signal_fd = block_and_report({SIGTERM, SIGHUP, SIGINT, SIGCHLD});
    TRY_ASSIGN(const pid_t pid, start(output.write.get()));
    output.write.reset();
    Carrier(std::move(signal_fd), std::move(output.read), pid).run();
    kill_descendants(k_kill_patience);
    return static_cast<int>(ExitStatus::success);
}

Result<pid_t> start_sshd(const std::string& sshd, const std::string& config, const Run& run,
                         int output)
{
    TRY_ASSIGN(Spawned process, spawn({.argv = {sshd, "-i", "-e", "-f", config},
                                       .descriptors = {STDIN_FILENO, output, STDERR_FILENO},
                                       .death_signal = SIGKILL,
                                       .limits = as_resources(run.limits)}));
    if (const auto failure = failure_of(process)) {
        write_all(STDERR_FILENO, fmt::format("gpuq: {}: {}\n", sshd, error_text(failure->error)));
    }
    return process.pid;
}

/// Forks, without an exec: this process has a single thread.
Result<pid_t> start_copy(const std::function<void(int output)>& child, int output)
{
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::signal(SIGPIPE, SIG_DFL);
        child(output);
        ::_exit(0);
    }
    if (pid < 0) {
        return fail(Error::Kind::io,
                    fmt::format("can't create a child process: {}", error_text(errno)));
    }
    return pid;
}

Result<int> serve(const Options& options)
{
    const auto sshd = find_sshd(std::getenv("GPUQ_SSHD"), std::getenv("PATH"));
    if (!sshd) {
        write_all(STDERR_FILENO, fmt::format("gpuq: no sshd on node {}: install OpenSSH's server "
                                             "on it (it need not be running)\n",
                                             options.node));
        return k_status_no_sshd;
    }
    TRY_ASSIGN(const RunDirectory directory, RunDirectory::open(options.state_dir, options.key));
    TRY_ASSIGN(const Run run, directory.read_run());
    TRY_ASSIGN(Descriptor connect, directory.connect());
    TRY_ASSIGN(const SshdSettings settings, settings_for(run, options));
    TRY_ASSIGN(const std::string text, sshd_config(settings));
    const std::string name = fmt::format("sshd_config.{}.{}", options.node, ::getpid());
    const ConfigFile config(std::move(connect), name);
    TRY(config.write(text));
    if (::geteuid() == 0) {
        ::mkdir(k_root_directory, 0755);
    }
    return carry([&](int output) {
        return start_sshd(*sshd, fmt::format("{}/{}", settings.directory, name), run, output);
    });
}

int status_of(const Result<int>& served)
{
    if (!served) {
        write_all(STDERR_FILENO, fmt::format("gpuq: {}\n", served.error().text));
        return static_cast<int>(exit_status_of(served.error().kind));
    }
    return *served;
}

} // namespace

std::optional<std::string> find_sshd(const char* chosen, const char* path)
{
    if (chosen != nullptr && *chosen != '\0') {
        return ::access(chosen, X_OK) == 0 ? std::optional<std::string>(chosen) : std::nullopt;
    }
    std::string directories = path == nullptr ? "" : path;
    directories += ":/usr/sbin:/usr/local/sbin:/sbin:/usr/lib/ssh";
    for (std::string_view rest = directories; !rest.empty();) {
        const auto end = std::min(rest.find(':'), rest.size());
        std::string file = fmt::format("{}/sshd", rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (file.starts_with('/') && ::access(file.c_str(), X_OK) == 0) {
            return file;
        }
    }
    return std::nullopt;
}

int serve_ssh(const Options& options)
{
    ::signal(SIGPIPE, SIG_IGN);
    return status_of(serve(options));
}

int serve_child(const std::function<void(int output)>& child)
{
    ::signal(SIGPIPE, SIG_IGN);
    return status_of(carry([&](int output) { return start_copy(child, output); }));
}

} // namespace gpuq::supervisor
