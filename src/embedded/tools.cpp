// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/tools.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>

namespace gpuq::embedded {
namespace {

struct Program {
    std::string_view name;
    std::string_view package;
    Programs needed = Programs::of_cluster;
};

constexpr Program k_programs[] = {
    {"munged", "munge"},
    {"mariadb-install-db", "mariadb-server-core", Programs::of_accounting},
    {"my_print_defaults", "mariadb-client-core",
     Programs::of_accounting}, // used by mariadb-install-db
    {"mariadbd", "mariadb-server-core", Programs::of_accounting},
    {"slurmdbd", "slurmdbd", Programs::of_accounting},
    {"slurmctld", "slurmctld"},
    {"slurmd", "slurmd"},
    {"sacctmgr", "slurm-client"},
    {"scontrol", "slurm-client"},
    {"sinfo", "slurm-client"},
    {"squeue", "slurm-client"},
    {"scancel", "slurm-client"},
};

std::string_view package_of(std::string_view name)
{
    const auto row = std::find_if(std::begin(k_programs), std::end(k_programs),
                                  [&](const Program& one) { return one.name == name; });
    return row == std::end(k_programs) ? "slurm-client" : row->package;
}

} // namespace

Result<std::string> program(const std::string& name)
{
    if (auto path = find_program(name, std::getenv("PATH"))) {
        return *std::move(path);
    }
    return fail(
        Error::Kind::not_found,
        fmt::format("{} is not installed here; `sudo apt-get install {}`", name, package_of(name)));
}

Result<void> check_programs(Programs wanted)
{
    std::vector<std::string> programs;
    std::vector<std::string> packages;
    for (const Program& one : k_programs) {
        if (one.needed == wanted && !find_program(std::string(one.name), std::getenv("PATH"))) {
            programs.emplace_back(one.name);
            packages.emplace_back(one.package);
        }
    }
    if (programs.empty()) {
        return {};
    }
    std::sort(packages.begin(), packages.end());
    packages.erase(std::unique(packages.begin(), packages.end()), packages.end());
    return fail(Error::Kind::not_found,
                fmt::format("not installed here: {}; `sudo apt-get install {}`",
                            fmt::join(programs, ", "), fmt::join(packages, " ")));
}

namespace {

Result<std::string> installed(const std::string& name)
{
    namespace fs = std::filesystem;
    std::error_code failed;
    const fs::path directory = fs::read_symlink("/proc/self/exe", failed).parent_path();
    for (const fs::path& place : {directory, directory / "../libexec/gpuq"}) {
        const fs::path path = (place / name).lexically_normal();
        // ld.so splits LD_PRELOAD at blanks and colons.
        if (fs::exists(path, failed) && path.string().find_first_of(" :$'") == std::string::npos) {
            return path.string();
        }
    }
    return fail(Error::Kind::internal,
                fmt::format("no {} beside {} (or a space or colon in that path); reinstall gpuq",
                            name, directory.string()));
}

} // namespace

Result<std::string> loopback_library()
{
    return installed("gpuq-loopback.so");
}

Result<std::string> node_probe()
{
    return installed("gpuq-node-probe");
}

std::string marker_of(const Places& places)
{
    return "SLURM_CONF=" + places.slurm_conf();
}

std::vector<std::string> environment_of(const Places& places)
{
    std::vector<std::string> variables{
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG=C.UTF-8",
        "HOME=" + places.dir,
        "MYSQL_UNIX_PORT=" + places.database_socket(),
        marker_of(places),
    };
    if (const char* zone = std::getenv("TZ")) {
        variables.push_back(fmt::format("TZ={}", zone));
    }
    return variables;
}

Result<Finished> run_tool(const Places& places, std::vector<std::string> arguments,
                          std::chrono::milliseconds limit)
{
    TRY_ASSIGN(arguments[0], program(arguments[0]));
    return run_command({std::move(arguments), environment_of(places)}, in(limit));
}

} // namespace gpuq::embedded
