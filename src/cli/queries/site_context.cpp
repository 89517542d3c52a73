// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/site_context.h"

#include "cli/queries/node_paths.h"
#include "core/strings.h"
#include "io/trusted_path.h"
#include "ports/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <pwd.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// Linux's device number of /dev/null under any path (null(4)).
constexpr unsigned k_memory_major = 1;
constexpr unsigned k_null_minor = 3;

SiteContext::File file_at(const std::string& path)
{
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) {
        return SiteContext::File::missing;
    }
    if (!S_ISREG(status.st_mode)) {
        return S_ISDIR(status.st_mode) ? SiteContext::File::directory : SiteContext::File::other;
    }
    if (::access(path.c_str(), X_OK) == 0) {
        return SiteContext::File::executable;
    }
    return ::access(path.c_str(), R_OK) == 0 ? SiteContext::File::plain
                                             : SiteContext::File::unreadable;
}

/// The text of a script: a regular file, not large, without NUL at its beginning.
std::string text_at(const std::string& path)
{
    constexpr std::size_t k_most = 256 << 10;
    if (file_at(path) != SiteContext::File::plain &&
        file_at(path) != SiteContext::File::executable) {
        return "";
    }
    std::string text(k_most, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text.find('\0') == std::string::npos ? text : "";
}

/// PWD if it names the working directory (it keeps symbolic links as typed), else its resolved
/// path.
Result<std::string> path_of_working_directory(Services& services)
{
    struct stat here = {};
    struct stat named = {};
    const auto variable = services.variable("PWD");
    if (variable && variable->starts_with('/') && ::stat(".", &here) == 0 &&
        ::stat(variable->c_str(), &named) == 0 && here.st_dev == named.st_dev &&
        here.st_ino == named.st_ino) {
        return *variable;
    }
    std::array<char, PATH_MAX> path{};
    if (::getcwd(path.data(), path.size()) == nullptr) {
        return fail(
            Error::Kind::usage,
            fmt::format("the working directory is gone ({}): cd to another", std::strerror(errno)));
    }
    return std::string(path.data());
}

Result<std::string> working_directory(Services& services)
{
    TRY_ASSIGN(std::string path, path_of_working_directory(services));
    if (::access(".", X_OK) != 0) {
        return fail(Error::Kind::usage,
                    fmt::format("the working directory {} can't be entered ({}): cd to another",
                                path, std::strerror(errno)));
    }
    return path;
}

/// Whether another directory than the working directory is in PATH and has the program.
bool is_elsewhere_in_path(const std::string& program, const SiteContext& here)
{
    const std::string path = here.variable("PATH").value_or("");
    const auto directories = split(path, ":");
    return std::any_of(directories.begin(), directories.end(), [&](std::string_view directory) {
        return directory.starts_with('/') && directory != here.work_dir &&
               file_at(fmt::format("{}/{}", directory, program)) == SiteContext::File::executable;
    });
}

} // namespace

bool on_a_terminal()
{
    return ::isatty(STDIN_FILENO) == 1 || ::isatty(STDOUT_FILENO) == 1 ||
           ::isatty(STDERR_FILENO) == 1;
}

Input kind_of_stdin()
{
    struct stat status = {};
    if (::fstat(STDIN_FILENO, &status) != 0) {
        return Input::none;
    }
    if (S_ISCHR(status.st_mode) && major(status.st_rdev) == k_memory_major &&
        minor(status.st_rdev) == k_null_minor) {
        return Input::none;
    }
    return ::isatty(STDIN_FILENO) == 1 ? Input::terminal : Input::pipe;
}

std::string user_name()
{
    const passwd* const entry = ::getpwuid(::getuid());
    return entry == nullptr ? fmt::format("{}", ::getuid()) : entry->pw_name;
}

std::string host_name()
{
    std::array<char, HOST_NAME_MAX + 1> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

SoftLimits soft_limits()
{
    const auto soft = [](auto resource) {
        struct rlimit limit = {};
        return ::getrlimit(resource, &limit) == 0 ? std::optional<std::uint64_t>(limit.rlim_cur)
                                                  : std::nullopt;
    };
    return {soft(RLIMIT_CORE), soft(RLIMIT_STACK)};
}

Result<void> enter_directory(const std::string& path)
{
    if (::chdir(path.c_str()) != 0) {
        return errno == ENOENT ? fail(Error::Kind::missing, fmt::format("{} is gone", path))
                               : fail(Error::Kind::denied, fmt::format("{} can't be entered ({})",
                                                                       path, std::strerror(errno)));
    }
    ::setenv("PWD", path.c_str(), 1);
    return {};
}

Result<void> enter_given_directory(Services& services, const std::optional<std::string>& given)
{
    if (!given) {
        return {};
    }
    TRY_ASSIGN(const std::string here, working_directory(services));
    std::string path = (std::filesystem::path(here) / *given).lexically_normal(); // as cd reads it
    while (path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    const auto entered = enter_directory(path);
    return entered ? Result<void>()
                   : fail(entered.error().kind, entered.error().kind == Error::Kind::missing
                                                    ? fmt::format("-D: {}: not found", path)
                                                    : "-D: " + entered.error().text);
}

std::function<bool(const std::string&)> same_on_nodes(Services& services,
                                                      const std::string& work_dir)
{
    return [&services, work_dir](const std::string& path) {
        const auto state_dir = services.state_dir();
        return is_same_on_nodes(
            path, {work_dir, services.variable("HOME").value_or(""), state_dir ? *state_dir : ""});
    };
}

Result<void> check_origin(const std::string& program, const SiteContext& here)
{
    const std::string path = here.work_dir + "/" + program;
    if (program.find('/') != std::string::npos || file_at(path) != SiteContext::File::executable ||
        !is_elsewhere_in_path(program, here)) {
        return {};
    }
    const auto opened = open_trusted_file(path);
    if (opened || opened.error().kind != Error::Kind::denied) {
        return {};
    }
    return fail(
        Error::Kind::denied,
        fmt::format("{0}: the working directory has a program of this name, and {1}. To use "
                    "it, write ./{0}; otherwise give the whole path of the other one",
                    program, opened.error().text));
}

Result<SiteContext> site_context(Services& services)
{
    SiteContext here;
    TRY_ASSIGN(here.work_dir, working_directory(services));
    here.host = std::string(cut(host_name(), '.').first); // as Slurm's commands do
    here.now = services.clock().now();
    here.file = file_at;
    here.same_on_nodes = same_on_nodes(services, here.work_dir);
    here.text = text_at;
    TRY_ASSIGN(const Settings settings, services.settings());
    here.network = settings.direct == Direct::network;
    here.container_command = settings.container.value_or(std::vector<std::string>{});
    here.variable = [&services](const std::string& name) { return services.variable(name); };
    return here;
}

} // namespace gpuq::cli
