// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/jobs.h"

#include <cerrno>
#include <memory>

namespace gpuq {
namespace {

struct FreeConf {
    void operator()(slurm_conf_t* conf) const { slurm::free_conf(conf); }
};

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

/// 0 for Slurm's values "none" and "not set".
std::chrono::seconds seconds_of(std::uint16_t value)
{
    return std::chrono::seconds(value >= NO_VAL16 ? 0 : value);
}

} // namespace

Result<Controller> SlurmCluster::controller()
{
    const slurm::Words words;
    slurm_conf_t* answer = nullptr;
    if (slurm_load_ctl_conf(0, &answer) != SLURM_SUCCESS) {
        return slurm::error_of(errno, slurm::Question::other,
                               "can't ask Slurm for its configuration", words.text());
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
    return controller;
}

} // namespace gpuq
