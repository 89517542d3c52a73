// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/jobs.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <utility>

namespace gpuq {
namespace {

struct FreeConf {
    void operator()(slurm_conf_t* conf) const { slurm::free_conf(conf); }
};

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

/// cgroup.conf as slurmctld has it: `ConstrainRAMSpace = yes` and the like, one per line.
std::string cgroup_settings(const slurm_conf_t& conf)
{
    char* printed = nullptr;
    std::size_t size = 0;
    std::FILE* const file = ::open_memstream(&printed, &size);
    if (file == nullptr) {
        return {};
    }
    std::string title;
    if (conf.cgroup_conf != nullptr) {
        slurm_print_key_pairs(file, conf.cgroup_conf, title.data());
    }
    std::fclose(file);
    const std::unique_ptr<char, decltype(&std::free)> owner(printed, std::free);
    return std::string(printed, size);
}

/// Whether a job that uses more memory than it has is stopped.
bool limits_memory(const slurm_conf_t& conf)
{
    static const std::regex confined("ConstrainRAMSpace\\s*=\\s*yes", std::regex::icase);
    return conf.job_acct_oom_kill != 0 ||
           (text(conf.task_plugin).find("cgroup") != std::string::npos &&
            std::regex_search(cgroup_settings(conf), confined));
}

std::vector<std::string> private_data(std::uint16_t flags)
{
    constexpr std::array<std::pair<std::uint32_t, const char*>, 8> k_names = {
        {{PRIVATE_DATA_JOBS, "jobs"},
         {PRIVATE_DATA_NODES, "nodes"},
         {PRIVATE_DATA_PARTITIONS, "partitions"},
         {PRIVATE_DATA_USAGE, "usage"},
         {PRIVATE_DATA_USERS, "users"},
         {PRIVATE_DATA_ACCOUNTS, "accounts"},
         {PRIVATE_DATA_RESERVATIONS, "reservations"},
         {PRIVATE_DATA_EVENTS, "events"}}};
    std::vector<std::string> names;
    for (const auto& [flag, name] : k_names) {
        if ((flags & flag) != 0) {
            names.emplace_back(name);
        }
    }
    return names;
}

/// 0 for Slurm's values "none" and "not set".
std::chrono::seconds seconds_of(std::uint16_t value)
{
    return std::chrono::seconds(value >= NO_VAL16 ? 0 : value);
}

} // namespace

Result<Controller> SlurmCluster::controller()
{
    const slurm::MessageCapture capture{"the controller's configuration"};
    slurm_conf_t* answer = nullptr;
    if (slurm_load_ctl_conf(0, &answer) != SLURM_SUCCESS) {
        return slurm::error_of(errno, slurm::Question::other,
                               "can't ask Slurm for its configuration", capture.text());
    }
    const std::unique_ptr<slurm_conf_t, FreeConf> conf(answer);
    Controller controller;
    controller.version = text(conf->version);
    controller.library = slurm::library_version();
    controller.now = slurm::time_of(conf->last_update); // when slurmctld created the response
    controller.scheduler_parameters = text(conf->sched_params);
    controller.kill_wait = seconds_of(conf->kill_wait);
    controller.inactive_limit = seconds_of(conf->inactive_limit);
    controller.keeps_accounting = slurm::has_accounting();
    controller.counts_memory = slurm::counts_memory(*conf);
    controller.limits_memory = limits_memory(*conf);
    controller.private_data = private_data(conf->private_data);
    if (text(conf->mcs_plugin_params).find("privatedata") != std::string::npos) {
        controller.private_data.emplace_back("mcs");
    }
    return controller;
}

} // namespace gpuq
