// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/unit.h"

#include "embedded/directory.h"
#include "embedded/machine.h"
#include "embedded/process.h"
#include "embedded/tools.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* k_users_service_name = "gpuq-cluster-people.service";

std::string unit_path(const std::string& name)
{
    return "/etc/systemd/system/" + name;
}

Result<Finished> systemctl(std::vector<std::string> arguments)
{
    const auto path = find_program("systemctl", nullptr);
    if (!path) {
        return fail(Error::Kind::not_found, "systemd runs this machine, but there is no systemctl");
    }
    arguments.insert(arguments.begin(), *path);
    return run_command(
        {std::move(arguments), {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}},
        in(seconds(180)));
}

Result<void> must(std::vector<std::string> arguments)
{
    const std::string what = arguments.front();
    TRY_ASSIGN(const Finished done, systemctl(std::move(arguments)));
    if (done.status != 0) {
        return fail(Error::Kind::io, fmt::format("systemctl {}: {}see `journalctl -u {}`", what,
                                                 done.output, k_unit_name));
    }
    return {};
}

} // namespace

std::string unit_text(const std::string& gpuq, const std::string& dir)
{
    return fmt::format("# Written by `gpuq cluster up`; `gpuq cluster down` disables it.\n"
                       "[Unit]\n"
                       "Description=Slurm of gpuq on this machine\n"
                       "Documentation=man:gpuq-cluster(1)\n"
                       "After=local-fs.target network.target nss-user-lookup.target "
                       "nvidia-persistenced.service\n"
                       "\n"
                       "[Service]\n"
                       "Type=oneshot\n"
                       "RemainAfterExit=yes\n"
                       "Environment={0}=1\n"
                       "ExecStart={1} cluster up --dir {2}\n"
                       "ExecStop={1} cluster down --dir {2}\n"
                       "TimeoutStartSec=120\n"
                       "TimeoutStopSec=60\n"
                       "Delegate=yes\n"
                       "TasksMax=infinity\n"
                       "LimitNOFILE=65536\n"
                       "LimitMEMLOCK=infinity\n"
                       "\n"
                       "[Install]\n"
                       "WantedBy=multi-user.target\n",
                       k_in_unit, gpuq, dir);
}

std::string users_path_text()
{
    return fmt::format("# Written by `gpuq cluster up`.\n"
                       "[Unit]\n"
                       "Description=New users of gpuq's Slurm\n"
                       "\n"
                       "[Path]\n"
                       "PathChanged=/etc/passwd\n"
                       "\n"
                       "[Install]\n"
                       "WantedBy={}\n",
                       k_unit_name);
}

std::string users_service_text(const std::string& gpuq, const std::string& dir)
{
    return fmt::format("# Written by `gpuq cluster up`.\n"
                       "[Unit]\n"
                       "Description=Accounts for new users of gpuq's Slurm\n"
                       "Requisite={0}\n"
                       "After={0}\n"
                       "\n"
                       "[Service]\n"
                       "Type=oneshot\n"
                       // Daemons restarted by the repair must keep running.
                       "KillMode=process\n"
                       "Delegate=yes\n"
                       "Environment={1}=1\n"
                       "ExecStart={2} cluster up --dir {3}\n",
                       k_unit_name, k_in_unit, gpuq, dir);
}

bool belongs_to_systemd(const Places& places)
{
    return geteuid() == 0 && places.dir == k_machine_dir && has_systemd() &&
           std::getenv(k_in_unit) == nullptr;
}

Result<void> start_unit(const Places& places)
{
    std::error_code failed;
    const std::string gpuq = fs::read_symlink("/proc/self/exe", failed).string();
    if (failed || gpuq.find_first_of(" %\"'\\$") != std::string::npos) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}': a unit of systemd can not hold such a path; install gpuq "
                                "elsewhere",
                                gpuq));
    }
    TRY(write_file(unit_path(k_unit_name), unit_text(gpuq, places.dir), 0644));
    TRY(write_file(unit_path(k_users_service_name), users_service_text(gpuq, places.dir), 0644));
    TRY(write_file(unit_path(k_users_unit_name), users_path_text(), 0644));
    TRY(must({"daemon-reload"}));
    TRY(must({"enable", k_unit_name, k_users_unit_name}));
    // restart, since it may be active although its processes were killed.
    TRY(must({"restart", k_unit_name}));
    return must({"restart", k_users_unit_name});
}

Result<void> stop_unit()
{
    if (!fs::exists(unit_path(k_unit_name))) {
        return {};
    }
    TRY(must({"disable", "--now", k_users_unit_name, k_unit_name}));
    for (const char* name : {k_unit_name, k_users_service_name, k_users_unit_name}) {
        unlink(unit_path(name).c_str());
    }
    return must({"daemon-reload"});
}

} // namespace gpuq::embedded
