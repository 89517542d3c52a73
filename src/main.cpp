// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/config.h"
#include "cli/base/message.h"
#include "cli/base/verb.h"
#include "cli/commands/application.h"
#include "core/number.h"
#include "embedded/cluster.h"
#include "io/descriptor.h"
#include "io/trusted_path.h"
#include "lua/submit_script.h"
#include "ports/accounting.h"
#include "posix/clock.h"
#include "posix/files.h"
#include "posix/host.h"
#include "posix/leftovers.h"
#include "posix/login_tickets.h"
#include "posix/random.h"
#include "posix/secret_files.h"
#include "posix/ssh_keygen.h"
#include "posix/state_dir.h"
#include "posix/store.h"
#include "remote/askpass.h"
#include "remote/verb_process.h"
#include "slurm/admin.h"
#include "slurm/cluster.h"
#include "slurm/sacct.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <pwd.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpuq {
namespace {

constexpr const char* k_supervisor = "gpuq-supervisor";
constexpr const char* k_local = "local"; ///< for --cluster: the cluster of `gpuq cluster up`
constexpr const char* k_serve_descriptor = "GPUQ_SERVE_FD"; ///< see remote/verb_process.h

std::optional<std::string> variable_of_process(const std::string& name)
{
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool is_set(const std::string& name)
{
    return !variable_of_process(name).value_or("").empty();
}

/// The user who has become root with sudo: root may be given their files.
std::optional<unsigned> user_of_sudo()
{
    const auto number = ::geteuid() == 0 ? variable_of_process("SUDO_UID") : std::nullopt;
    const auto uid = number ? whole_number(*number) : std::nullopt;
    return uid && *uid > 0 ? std::optional(static_cast<unsigned>(*uid)) : std::nullopt;
}

Result<cli::TextFile> read_text_file(const std::string& path, std::size_t most,
                                     std::optional<unsigned> also)
{
    auto trusted = open_trusted_file(path, also);
    std::optional<Error> distrust;
    Descriptor file;
    if (trusted) {
        file = *std::move(trusted);
    } else if (trusted.error().kind == Error::Kind::denied) {
        distrust = std::move(trusted).error();
        // Opening a FIFO without a writer would block forever.
        file.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    } else if (trusted.error().kind == Error::Kind::usage) { // not a regular file
        return fail(Error::Kind::io, trusted.error().text);
    } else {
        return std::move(trusted).error();
    }
    if (!file) {
        const bool missing = errno == ENOENT || errno == ENOTDIR;
        return fail(missing ? Error::Kind::missing : Error::Kind::io,
                    fmt::format("{}: {}", path, std::strerror(errno)));
    }
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return fail(Error::Kind::io, fmt::format("{} is not a file", path));
    }
    if (static_cast<std::size_t>(facts.st_size) > most) {
        return fail(Error::Kind::usage, fmt::format("{}: larger than {} KiB", path, most / 1024));
    }
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
    if (size < 0) {
        return fail(Error::Kind::io, fmt::format("{}: {}", path, std::strerror(errno)));
    }
    text.resize(static_cast<std::size_t>(size));
    constexpr mode_t k_permissions = 07777;
    return cli::TextFile{std::move(text), facts.st_uid, facts.st_mode & k_permissions,
                         std::move(distrust)};
}

/// Reads a configuration file, which must be trusted since it names commands.
Result<std::string> read_file(const std::string& path)
{
    constexpr std::size_t k_most = 1 << 20;
    TRY_ASSIGN(cli::TextFile file, read_text_file(path, k_most, std::nullopt));
    if (file.distrust) {
        return *std::move(file.distrust);
    }
    return std::move(file.text);
}

/// The Slurm configuration to open; nothing: libslurm's default.
Result<std::optional<std::string>> configuration(const std::string& cluster)
{
    if (cluster == k_local) {
        TRY_ASSIGN(std::string conf, embedded::find_cluster_conf());
        return std::optional{std::move(conf)};
    }
    if (is_set("SLURM_CONF") || slurm_configuration({})) {
        return std::optional<std::string>{};
    }
    const auto conf = embedded::find_cluster_conf();
    return conf ? std::optional(*conf) : std::nullopt;
}

/// The descriptor of the `gpuq serve` that has started this process. Not inherited: a program that
/// this process starts is not served.
Descriptor take_serve_descriptor()
{
    const auto number = variable_of_process(k_serve_descriptor);
    ::unsetenv(k_serve_descriptor);
    constexpr const char* k_only = "3";
    if (!number || *number != k_only || ::fcntl(3, F_SETFD, FD_CLOEXEC) != 0) {
        return Descriptor();
    }
    return Descriptor(3);
}

/// The interfaces of this process, each opened on first use.
class MachineServices : public cli::Services {
public:
    MachineServices()
        : m_serve(take_serve_descriptor())
    {
    }

    bool is_served() const override { return static_cast<bool>(m_serve); }
    void send_to_serve(const std::string& line) const override
    {
        if (m_serve) {
            (void)!::write(m_serve.get(), line.data(), line.size());
        }
    }

    std::uint64_t mark_output() override
    {
        send_to_serve(fmt::format("{}\n", remote::k_mark));
        return ++m_marks;
    }
    std::uint64_t marks_shown() override
    {
        std::array<char, 256> buffer;
        ssize_t count = 0;
        while ((count = ::recv(m_serve.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
            for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(count))) {
                if (c == '\n') {
                    m_marks_shown = std::exchange(m_marks_heard, 0);
                } else {
                    m_marks_heard = m_marks_heard * 10 + static_cast<std::uint64_t>(c - '0');
                }
            }
        }
        return m_marks_shown;
    }

    Result<Cluster*> cluster() override
    {
        if (!m_cluster) {
            if (m_conf) {
                TRY_ASSIGN(m_cluster, SlurmCluster::open(m_conf));
                return m_cluster.get();
            }
            TRY_ASSIGN(const auto chosen, chosen_cluster());
            TRY_ASSIGN(const auto conf, configuration(chosen));
            TRY_ASSIGN(auto opened, SlurmCluster::open(conf));
            TRY(check_name(*opened, chosen));
            m_cluster = std::move(opened);
        }
        return m_cluster.get();
    }

    Result<Accounting*> accounting() override
    {
        TRY(open_accounting());
        return m_accounting.get();
    }

    Result<UseRecords*> use_records() override
    {
        TRY(open_accounting());
        return m_accounting.get();
    }

    Result<Admin*> admin() override
    {
        if (!m_admin) {
            TRY(cluster()); // the same configuration for both
            TRY_ASSIGN(m_admin, SlurmAdmin::open());
        }
        return m_admin.get();
    }

    Result<std::string> jobs_since(Time since) override
    {
        TRY(accounting()); // chooses the configuration
        return slurm::jobs_since(since);
    }

    Result<Store*> store() override
    {
        if (!m_store) {
            TRY_ASSIGN(const std::string directory, state_dir());
            TRY_ASSIGN(m_store, PosixStore::open(directory));
        }
        return m_store.get();
    }

    Result<std::string> state_dir() override
    {
        TRY_ASSIGN(const cli::Settings set, settings());
        const passwd* const entry = ::getpwuid(::getuid());
        StateDirInputs arguments;
        arguments.config = set.state_dir;
        arguments.state_home = variable_of_process("XDG_STATE_HOME");
        arguments.home = is_set("HOME")     ? *variable_of_process("HOME")
                         : entry == nullptr ? ""
                                            : entry->pw_dir;
        arguments.user = entry == nullptr ? fmt::format("{}", ::getuid()) : entry->pw_name;
        return choose_state_dir(arguments);
    }

    Host& host() override { return m_host; }

    Files& program_files() override { return m_files; }

    SecretFiles& secret_files() override { return m_secret_files; }

    LoginTickets& login_tickets() override { return m_login_tickets; }

    Clock& clock() override { return m_clock; }

    std::array<unsigned char, 8> random() override { return random_bytes(); }

    std::optional<std::string> variable(const std::string& name) override
    {
        return variable_of_process(name);
    }

    void forget_variable(const std::string& name) override { ::unsetenv(name.c_str()); }

    std::vector<std::string> environment() override
    {
        std::vector<std::string> variables;
        for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
            variables.emplace_back(*entry);
        }
        return variables;
    }

    /// $GPUQ_SUPERVISOR; next to gpuq, as in a build tree; ../libexec/gpuq, as installed.
    Result<std::string> supervisor() override
    {
        if (is_set("GPUQ_SUPERVISOR")) {
            return *variable_of_process("GPUQ_SUPERVISOR");
        }
        std::error_code error;
        const auto directory = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
        for (const auto& path : {directory / k_supervisor,
                                 directory.parent_path() / "libexec" / "gpuq" / k_supervisor}) {
            if (::access(path.c_str(), X_OK) == 0) {
                return path.string();
            }
        }
        return fail(
            Error::Kind::io,
            fmt::format(
                "no {} in {} or in libexec/gpuq beside it: reinstall gpuq, or set GPUQ_SUPERVISOR",
                k_supervisor, directory.string()));
    }

    Result<std::string> program() override
    {
        std::error_code error;
        auto path = std::filesystem::read_symlink("/proc/self/exe", error);
        return error ? Result<std::string>(fail(Error::Kind::io, "/proc/self/exe can't be read"))
                     : path.string();
    }

    Result<cli::TextFile> text_file(const std::string& path, std::size_t most) override
    {
        return read_text_file(path, most, user_of_sudo());
    }

    Result<std::unique_ptr<SubmitScript>> submit_script(const std::string& text) override
    {
        return lua::load_submit_script(text);
    }

    Result<SshKeyPair> new_ssh_key() override { return make_ssh_key(); }

    Result<cli::Settings> settings() override
    {
        if (!m_settings) {
            TRY_ASSIGN(m_settings, cli::load_settings({variable_of_process, read_file}));
        }
        return *m_settings;
    }

    void choose_cluster(const std::string& name) override { m_chosen = name; }
    void choose_configuration(const std::string& slurm_conf) override { m_conf = slurm_conf; }

private:
    Result<void> open_accounting()
    {
        if (!m_accounting) {
            TRY(cluster()); // the same configuration for both
            TRY_ASSIGN(m_accounting, SlurmAccounting::open());
        }
        return {};
    }

    Result<std::string> chosen_cluster()
    {
        if (m_chosen) {
            return *m_chosen;
        }
        TRY_ASSIGN(const cli::Settings set, settings());
        return set.cluster.value_or("");
    }

    static Result<void> check_name(Cluster& cluster, const std::string& chosen)
    {
        TRY_ASSIGN(const std::string name, cluster.name());
        if (!chosen.empty() && chosen != k_local && chosen != name) {
            return fail(
                Error::Kind::missing,
                fmt::format("no cluster '{}' here: this machine belongs to '{}'", chosen, name));
        }
        return {};
    }

    Descriptor m_serve;
    std::uint64_t m_marks = 0, m_marks_shown = 0;
    std::uint64_t m_marks_heard = 0; ///< the number in an incomplete line so far
    std::optional<std::string> m_chosen;
    std::optional<std::string> m_conf;
    std::optional<cli::Settings> m_settings;
    std::unique_ptr<Cluster> m_cluster;
    std::unique_ptr<SlurmAccounting> m_accounting;
    std::unique_ptr<Admin> m_admin;
    std::unique_ptr<Store> m_store;
    SystemClock m_clock;
    PosixHost m_host;
    PosixFiles m_files;
    PosixSecretFiles m_secret_files;
    PosixLoginTickets m_login_tickets{variable_of_process, m_host};
};

/// If a standard stream is closed (`<&-`), the next descriptor would take its place, and the
/// program would read it as its input. Opens /dev/null instead, as glibc does for setuid programs.
void fill_standard_streams()
{
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) < 0) {
            (void)::open("/dev/null", O_RDWR); // gets the lowest free number: this one
        }
    }
}

} // namespace
} // namespace gpuq

int main(int argc, char** argv)
{
    gpuq::fill_standard_streams();
    std::signal(SIGPIPE, SIG_IGN); // a closed pipe becomes an error of the write
    std::signal(SIGXFSZ, SIG_IGN); // and so does the file size limit
    if (argc == 1 && gpuq::is_accounting_process(argv[0])) {
        return gpuq::answer_query();
    }
    constexpr int k_with_question = 2;
    if (argc == k_with_question && gpuq::remote::AskPass::is_name(argv[0])) {
        return gpuq::remote::AskPass::run(argv[0], argv[1]);
    }
    try {
        gpuq::MachineServices services;
        const int status = gpuq::cli::run_application(argc, argv, services);
        gpuq::sweep_leftovers(); // at the end, so that it does not delay the first output
        return status;
    } catch (const std::exception& exception) {
        gpuq::cli::print_message(fmt::format("internal error: {}", exception.what()));
    } catch (...) {
        gpuq::cli::print_message("internal error: unknown exception");
    }
    return static_cast<int>(gpuq::ExitStatus::internal);
}
