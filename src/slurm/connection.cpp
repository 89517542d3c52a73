// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/connection.h"

#include "core/exit_status.h"
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/errors.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace gpuq {
namespace {

constexpr const char* k_usual_places[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"};

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
        return readable(*path, "as told");
    }
    if (const char* variable = std::getenv("SLURM_CONF"); variable != nullptr && *variable != 0) {
        return readable(variable, "from SLURM_CONF");
    }
    for (const char* place : k_usual_places) {
        if (::access(place, R_OK) == 0) {
            return std::string(place);
        }
    }
    return fail(Error::Kind::usage,
                "no Slurm here: set SLURM_CONF, or `gpuq cluster up` starts one");
}

namespace slurm {
namespace {

/// What an exit of this process would mean at the moment.
enum class Exit { ordinary, of_libslurm, of_a_copy };
Exit exit_means = Exit::ordinary;

/// libslurm's words while it reads the configuration; the handler below reads them.
const Words* words_of_init = nullptr;

/// libslurm calls exit(1) on a configuration that it can't use: say why, in our way.
void at_exit()
{
    if (exit_means == Exit::ordinary) {
        return;
    }
    if (exit_means == Exit::of_libslurm && words_of_init != nullptr) {
        const auto line =
            fmt::format("gpuq: Slurm's configuration can't be used: {}\n", words_of_init->text());
        (void)!::write(STDERR_FILENO, line.data(), line.size());
        ::_exit(static_cast<int>(ExitStatus::usage));
    }
    ::_exit(static_cast<int>(ExitStatus::internal));
}

bool names_a_plugin(const char* type)
{
    return type != nullptr && *type != '\0' && std::strstr(type, "none") == nullptr;
}

void load(const std::string& path)
{
    const Words words;
    words_of_init = &words;
    exit_means = Exit::of_libslurm;
    std::atexit(at_exit);
    ::setenv("SLURM_CONF", path.c_str(), 1);
    slurm_init(path.c_str());
    exit_means = Exit::ordinary;
    words_of_init = nullptr;
}

} // namespace

Result<void> initialise(const std::optional<std::string>& path)
{
    static std::string loaded;
    if (!loaded.empty() && (!path || *path == loaded)) {
        return {};
    }
    TRY_ASSIGN(const std::string found, slurm_configuration(path));
    if (!loaded.empty() && found != loaded) {
        return fail(Error::Kind::usage,
                    fmt::format("this gpuq talks to the Slurm of {}; it can't also talk to that "
                                "of {}",
                                loaded, found));
    }
    load(found);
    loaded = found;
    return {};
}

void leave_without_handlers()
{
    exit_means = Exit::of_a_copy;
}

std::string cluster_name()
{
    return slurm_conf.cluster_name == nullptr ? "" : slurm_conf.cluster_name;
}

bool has_accounting()
{
    return names_a_plugin(slurm_conf.accounting_storage_type);
}

bool has_cpu_binding()
{
    return names_a_plugin(slurm_conf.task_plugin);
}

} // namespace slurm

Result<std::unique_ptr<SlurmCluster>> SlurmCluster::open(const std::optional<std::string>& path)
{
    TRY(slurm::initialise(path));
    return std::unique_ptr<SlurmCluster>(new SlurmCluster);
}

Result<std::string> SlurmCluster::name()
{
    return slurm::cluster_name();
}

} // namespace gpuq
