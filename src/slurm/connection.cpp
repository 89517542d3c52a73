// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/connection.h"

#include "core/exit_status.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

namespace gpuq {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_usual_places[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"};

/// Set at a site without configuration files ("configless"): libslurm fetches the configuration
/// from this host.
constexpr const char* k_server = "SLURM_CONF_SERVER";
/// Prefix that replaces the path in this case.
constexpr std::string_view k_from_server = "SLURM_CONF_SERVER=";

bool begins_with(const std::string& line, std::string_view word)
{
    return ::strncasecmp(line.c_str(), word.data(), word.size()) == 0;
}

void remove_indent(std::string& line)
{
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

/// The first missing file that `conf` includes.
std::optional<fs::path> missing_include(const fs::path& conf)
{
    constexpr std::string_view k_include = "include";
    std::ifstream text(conf);
    for (std::string line; std::getline(text, line);) {
        remove_indent(line);
        if (!begins_with(line, k_include) || line.find_first_of(" \t") != k_include.size()) {
            continue;
        }
        const std::size_t begin = line.find_first_not_of(" \t", k_include.size());
        const std::size_t end = std::min(line.find_first_of(" \t\r#", begin), line.size());
        if (begin == std::string::npos || line.find('%') < end) { // %c: the cluster's name
            continue;
        }
        const fs::path file = conf.parent_path() / line.substr(begin, end - begin);
        if (::access(file.c_str(), F_OK) != 0 && errno == ENOENT) {
            return file;
        }
    }
    return std::nullopt;
}

Result<std::string> readable(const std::string& path, std::string_view origin)
{
    if (::access(path.c_str(), R_OK) != 0) {
        return fail(Error::Kind::usage, fmt::format("can't read Slurm's configuration {} ({}): {}",
                                                    path, origin, std::strerror(errno)));
    }
    return path;
}

} // namespace

Result<std::string> slurm_configuration(const std::optional<std::string>& path)
{
    if (path) {
        return readable(*path, "as requested");
    }
    if (const char* variable = std::getenv("SLURM_CONF"); variable != nullptr && *variable != 0) {
        return readable(variable, "from SLURM_CONF");
    }
    for (const char* place : k_usual_places) {
        if (::access(place, R_OK) == 0) {
            return std::string(place);
        }
    }
    if (const char* server = std::getenv(k_server); server != nullptr && *server != 0) {
        return fmt::format("{}{}", k_from_server, server);
    }
    return fail(Error::Kind::usage,
                "no Slurm here: set SLURM_CONF, or `gpuq cluster up` starts one");
}

namespace slurm {
namespace {

bool is_from_server(const std::string& conf)
{
    return conf.starts_with(k_from_server);
}

/// The configuration of this process: a path, or k_from_server and a host.
std::string chosen;

/// Receives libslurm's message if libslurm exits in a forked copy of this process.
std::function<void(const std::string&)> on_exit_of_a_copy;

/// Collects libslurm's output on this thread while a request runs, for the handler below.
thread_local const MessageCapture* listening = nullptr;

/// libslurm calls exit(1) on a configuration that it can't use, even in the middle of a request (a
/// missing plugin): print the reason in gpuq's format.
void at_exit()
{
    if (listening == nullptr) {
        if (on_exit_of_a_copy) {
            ::_exit(static_cast<int>(ExitStatus::internal));
        }
        return;
    }
    const std::string text =
        fmt::format("Slurm's configuration can't be used: {}{}", listening->text(),
                    is_from_server(chosen) ? " (" + chosen + ")" : "");
    if (on_exit_of_a_copy) {
        on_exit_of_a_copy(text);
    } else {
        const std::string line = "gpuq: " + text + "\n";
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
    ::_exit(static_cast<int>(ExitStatus::usage));
}

bool names_a_plugin(const char* type)
{
    return type != nullptr && *type != '\0' && std::strstr(type, "none") == nullptr;
}

bool is_loaded = false;

} // namespace

Result<void> check_includes(const std::string& conf)
{
    const auto missing = missing_include(conf);
    if (!missing) {
        return {};
    }
    return fail(
        Error::Kind::usage,
        fmt::format(
            "Slurm's configuration {} includes {}, which does not exist: Slurm programs can't read "
            "the configuration, and slurmctld can't restart. An operator must restore the file; if "
            "it is a policy's, create it empty, then `gpuq policy apply`",
            conf, missing->string()));
}

Result<void> choose_configuration(const std::optional<std::string>& path)
{
    if (!chosen.empty() && (!path || *path == chosen)) {
        return {};
    }
    TRY_ASSIGN(const std::string found, slurm_configuration(path));
    if (!chosen.empty() && found != chosen) {
        return fail(Error::Kind::usage,
                    fmt::format("this gpuq talks to the Slurm of {}; it can't also talk to that "
                                "of {}",
                                chosen, found));
    }
    if (!is_from_server(found)) {
        TRY(check_includes(found));
        ::setenv("SLURM_CONF", found.c_str(), 1);
    }
    chosen = found;
    return {};
}

void load_configuration()
{
    if (chosen.empty() || std::exchange(is_loaded, true)) {
        return;
    }
    std::atexit(at_exit);
    const MessageCapture capture{"slurm.conf"};
    slurm_init(is_from_server(chosen) ? nullptr : chosen.c_str());
}

void load_plugins()
{
    load_configuration();
    for (const char* type : {slurm_conf.select_type, slurm_conf.authtype}) {
        if (type != nullptr && slurm_conf.plugindir != nullptr) {
            std::string file = type; // "auth/munge" is auth_munge.so
            std::replace(file.begin(), file.end(), '/', '_');
            (void)::dlopen(fmt::format("{}/{}.so", slurm_conf.plugindir, file).c_str(), RTLD_LAZY);
        }
    }
}

std::optional<std::string> cluster_name_in(std::istream& conf)
{
    constexpr std::string_view k_name = "clustername=";
    constexpr std::string_view k_include = "include";
    constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    std::optional<std::string> name;
    for (std::string line; std::getline(conf, line);) {
        remove_indent(line);
        if (begins_with(line, k_include)) {
            return std::nullopt; // the included file may set it, too
        }
        if (begins_with(line, k_name)) {
            const auto end = std::min(line.find_first_of(" \t\r#", k_name.size()), line.size());
            std::string value = line.substr(k_name.size(), end - k_name.size());
            if (name || value.empty() || value.find_first_not_of(k_letters) != std::string::npos) {
                return std::nullopt;
            }
            name = std::move(value);
        }
    }
    return name;
}

void leave_without_handlers(std::function<void(const std::string&)> on_exit)
{
    on_exit_of_a_copy = std::move(on_exit);
}

void listen(const MessageCapture* capture)
{
    listening = capture;
}

std::string cluster_name()
{
    if (!is_loaded) {
        std::ifstream conf(chosen);
        if (auto name = cluster_name_in(conf)) {
            return *std::move(name);
        }
    }
    load_configuration();
    return slurm_conf.cluster_name == nullptr ? "" : slurm_conf.cluster_name;
}

bool has_accounting()
{
    load_configuration();
    return names_a_plugin(slurm_conf.accounting_storage_type);
}

bool has_cpu_binding()
{
    load_configuration();
    return names_a_plugin(slurm_conf.task_plugin);
}

} // namespace slurm

Result<std::unique_ptr<SlurmCluster>> SlurmCluster::open(const std::optional<std::string>& path)
{
    TRY(slurm::choose_configuration(path));
    return std::unique_ptr<SlurmCluster>(new SlurmCluster);
}

Result<std::string> SlurmCluster::name()
{
    return slurm::cluster_name();
}

} // namespace gpuq
