// SPDX-License-Identifier: GPL-2.0-or-later
#include "machine/machine.h"

#include "cli/base/config.h"
#include "cli/base/message.h"
#include "cli/base/read_only.h"
#include "cli/commands/application.h"
#include "core/number.h"
#include "io/trusted_path.h"
#include "posix/leftovers.h"
#include "posix/random.h"
#include "posix/ssh_keygen.h"
#include "posix/state_dir.h"
#include "posix/store.h"
#include "remote/askpass.h"
#include "remote/verb_process.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <pwd.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpuq {
namespace {

constexpr const char* k_serve_descriptor = "GPUQ_SERVE_FD"; ///< see remote/verb_process.h

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
        return fail(Error::Kind::usage, fmt::format("{} is not a file", path));
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

std::optional<std::string> variable_of_process(const std::string& name)
{
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool is_variable_set(const std::string& name)
{
    return !variable_of_process(name).value_or("").empty();
}

Machine::Machine()
    : m_serve(take_serve_descriptor())
{
}

void Machine::send_to_serve(const std::string& line) const
{
    if (m_serve) {
        (void)!::write(m_serve.get(), line.data(), line.size());
    }
}

std::uint64_t Machine::mark_output()
{
    send_to_serve(fmt::format("{}\n", remote::k_mark));
    return ++m_marks;
}

std::uint64_t Machine::marks_shown()
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

Result<Store*> Machine::store()
{
    if (!m_store) {
        TRY_ASSIGN(const std::string directory, state_dir());
        TRY_ASSIGN(m_store, PosixStore::open(directory, cli::is_read_only(*this)
                                                            ? PosixStore::Access::read_only
                                                            : PosixStore::Access::full));
    }
    return m_store.get();
}

Result<std::string> Machine::state_dir()
{
    TRY_ASSIGN(const cli::Settings set, settings());
    const passwd* const entry = ::getpwuid(::getuid());
    StateDirInputs arguments;
    arguments.config = set.state_dir;
    arguments.state_home = variable_of_process("XDG_STATE_HOME");
    arguments.home = is_variable_set("HOME") ? *variable_of_process("HOME")
                     : entry == nullptr      ? ""
                                             : entry->pw_dir;
    arguments.user = entry == nullptr ? fmt::format("{}", ::getuid()) : entry->pw_name;
    return choose_state_dir(arguments);
}

std::array<unsigned char, 8> Machine::random()
{
    return random_bytes();
}

std::optional<std::string> Machine::variable(const std::string& name)
{
    return variable_of_process(name);
}

void Machine::forget_variable(const std::string& name)
{
    ::unsetenv(name.c_str());
}

std::vector<std::string> Machine::environment()
{
    std::vector<std::string> variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        variables.emplace_back(*entry);
    }
    return variables;
}

Result<std::string> Machine::program()
{
    std::error_code error;
    auto path = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? Result<std::string>(fail(Error::Kind::io, "/proc/self/exe can't be read"))
                 : path.string();
}

Result<cli::TextFile> Machine::text_file(const std::string& path, std::size_t most)
{
    return read_text_file(path, most, user_of_sudo());
}

Result<SshKeyPair> Machine::new_ssh_key()
{
    return make_ssh_key();
}

Result<cli::Settings> Machine::settings()
{
    if (!m_settings) {
        TRY_ASSIGN(m_settings, cli::load_settings({variable_of_process, read_file}));
    }
    return *m_settings;
}

void prepare_process()
{
    fill_standard_streams();
    std::signal(SIGPIPE, SIG_IGN); // a closed pipe becomes an error of the write
    std::signal(SIGXFSZ, SIG_IGN); // and so does the file size limit
    // A parent that ignores it leaves that to its children, whose own would have no exit status.
    std::signal(SIGCHLD, SIG_DFL);
}

int run_program(int argc, char** argv, Machine& machine)
{
    constexpr int k_with_question = 2;
    if (argc == k_with_question && remote::AskPass::is_name(argv[0])) {
        return remote::AskPass::run(argv[0], argv[1]);
    }
    try {
        const int status = cli::run_application(argc, argv, machine);
        sweep_leftovers(); // at the end, so that it does not delay the first output
        return status;
    } catch (const std::exception& exception) {
        cli::print_message(fmt::format("internal error: {}", exception.what()));
    } catch (...) {
        cli::print_message("internal error: unknown exception");
    }
    return static_cast<int>(ExitStatus::internal);
}

} // namespace gpuq
