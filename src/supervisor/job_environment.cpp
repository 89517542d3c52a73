// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/job_environment.h"

#include "core/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace gpuq::supervisor {
namespace {

constexpr std::array k_of_the_step = {
    "SLURM_STEPID",
    "SLURM_STEP_ID",
    "SLURM_STEP_GPUS",
    "SLURM_STEP_LAUNCHER_PORT",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_SRUN_COMM_HOST",
    "SLURM_SRUN_COMM_PORT",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_DISTRIBUTION",
    "SLURM_UMASK",
};

constexpr std::array k_of_the_ranks = {"MASTER_ADDR", "MASTER_PORT", "RANK",
                                       "WORLD_SIZE",  "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                       "NODE_RANK",   "GROUP_RANK",  "TORCHELASTIC_RUN_ID"};
/// Below the ports that Linux gives to whoever asks for none (ip_local_port_range).
constexpr std::uint32_t k_first_port = 20000;
constexpr std::uint32_t k_ports = 10000;

} // namespace

void describe_job(Environment& variables, const Run& run)
{
    if (!variables.value("SLURM_STEP_NUM_NODES")) {
        // A batch job. From Slurm 26.05 on its script has a step's number.
        variables.unset("SLURM_STEPID");
        variables.unset("SLURM_STEP_ID");
        return;
    }
    const std::string nodes = fmt::format("{}", run.request.nodes);
    if (const auto gpus = variables.value("SLURM_STEP_GPUS")) {
        variables.set("SLURM_JOB_GPUS", *gpus);
    }
    // SLURM_NODELIST is the job's even here, SLURM_JOB_NODELIST the step's.
    if (const auto list = variables.value("SLURM_NODELIST")) {
        variables.set("SLURM_JOB_NODELIST", *list);
    }
    if (const auto cpus = variables.value("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0")) {
        variables.set("SLURM_JOB_CPUS_PER_NODE", *cpus);
        variables.unset("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0");
    }
    for (const char* name :
         {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_NPROCS"}) {
        variables.set(name, nodes);
    }
    variables.set("SLURM_TASKS_PER_NODE",
                  run.request.nodes > 1 ? fmt::format("1(x{})", nodes) : "1");
    variables.set("SLURM_JOB_NAME", run.request.name);
    variables.set("SLURM_SUBMIT_DIR", run.request.work_dir);
    variables.set("SLURM_SUBMIT_HOST", run.host);
    if (run.request.cpus) {
        variables.set("SLURM_CPUS_PER_TASK", fmt::format("{}", *run.request.cpus));
    }
    for (const char* name : k_of_the_step) {
        variables.unset(name);
    }
}

void describe_run(Environment& variables, const Run& run, LinkNumber link,
                  const std::string& state_dir)
{
    const auto path = [&](const std::string& name) { return state_dir + "/" + name; };
    variables.set("GPUQ_RUN_ID", run.key.text());
    variables.set("GPUQ_LINK", std::to_string(link.value));
    variables.set("GPUQ_CHECKPOINT_DIR", path(layout::checkpoints(run.key)));
    variables.set("GPUQ_CAUSE", "first");
    variables.set("GPUQ_STOP_FILE", path(layout::stop_file(run.key, link)));
    variables.set("GPUQ_SAVE_FILE", path(layout::save_file(run.key, link)));
    variables.set_default("PYTHONUNBUFFERED", "1");
    for (const auto& [name, value] : run.request.env) {
        variables.set(name, value);
    }
}

void describe_link(Environment& variables, const Run& run, Restart restart,
                   const std::string& checkpoint, JobId job)
{
    const auto set_by_user = [&](std::string_view name) {
        return std::any_of(run.request.env.begin(), run.request.env.end(),
                           [&](const auto& pair) { return pair.first == name; });
    };
    variables.set("GPUQ_CAUSE", word(restart));
    if (checkpoint.empty()) {
        variables.unset("GPUQ_RESUME_FROM");
    } else {
        variables.set("GPUQ_RESUME_FROM", checkpoint);
    }
    // Of an earlier link, or of where the run was started: its nodes are others now.
    for (const char* name : k_of_the_ranks) {
        if (!set_by_user(name)) {
            variables.unset(name);
        }
    }
    if (!set_by_user("MASTER_PORT")) {
        variables.set("MASTER_PORT", fmt::format("{}", k_first_port + job.value % k_ports));
    }
    variables.set_default("WANDB_RUN_ID", run.key.text());
    variables.set_default("WANDB_RESUME", "allow");
}

} // namespace gpuq::supervisor
