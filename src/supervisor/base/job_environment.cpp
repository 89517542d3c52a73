// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/job_environment.h"

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

constexpr std::array k_of_the_ranks = {
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_USE_AGENT_STORE",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_NNODES",
    "PET_NODE_RANK",
    "PET_NPROC_PER_NODE",
    "PET_RDZV_ID",
    "PET_RDZV_BACKEND",
    "PET_RDZV_ENDPOINT",
};
/// Below the ports that Linux assigns automatically (ip_local_port_range).
constexpr std::uint32_t k_first_port = 20000;
constexpr std::uint32_t k_ports = 10000;
constexpr const char* k_own_node = "127.0.0.1";

bool is_set_by_user(const Request& request, std::string_view name)
{
    return std::any_of(request.setup.env.begin(), request.setup.env.end(),
                       [&](const auto& pair) { return pair.first == name; });
}

} // namespace

void describe_job(Environment& variables, const Run& run)
{
    if (!variables.value("SLURM_STEP_NUM_NODES")) {
        // A batch job. Since Slurm 26.05 its script has a step number.
        variables.unset("SLURM_STEPID");
        variables.unset("SLURM_STEP_ID");
        return;
    }
    const std::string nodes = fmt::format("{}", run.request.nodes);
    if (const auto gpus = variables.value("SLURM_STEP_GPUS")) {
        variables.set("SLURM_JOB_GPUS", *gpus);
    }
    // Even here SLURM_NODELIST is the job's, but SLURM_JOB_NODELIST is the step's.
    if (const auto list = variables.value("SLURM_NODELIST")) {
        variables.set("SLURM_JOB_NODELIST", *list);
    }
    if (const auto cpus = variables.value("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0")) {
        variables.set("SLURM_JOB_CPUS_PER_NODE", *cpus);
        variables.unset("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0");
    }
    const int tasks = tasks_on_node(run.request);
    for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) {
        variables.set(name, nodes);
    }
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) {
        variables.set(name, fmt::format("{}", tasks * run.request.nodes));
    }
    variables.set("SLURM_TASKS_PER_NODE", run.request.nodes > 1
                                              ? fmt::format("{}(x{})", tasks, nodes)
                                              : fmt::format("{}", tasks));
    if (const auto node = variables.value("SLURMD_NODENAME")) {
        variables.set_default("HOSTNAME", *node); // as slurmd does for a batch script
    }
    variables.set("SLURM_JOB_NAME", run.request.name);
    variables.set("SLURM_SUBMIT_DIR", run.request.work_dir);
    variables.set("SLURM_SUBMIT_HOST", run.host);
    if (run.request.cpus) {
        variables.set("SLURM_CPUS_PER_TASK",
                      fmt::format("{}", std::max(*run.request.cpus / tasks, 1)));
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
    variables.set("GPUQ_DEADLINE_FILE", path(layout::deadline_file(run.key, link)));
    variables.set("GPUQ_STOP_FILE", path(layout::stop_file(run.key, link)));
    variables.set("GPUQ_SAVE_FILE", path(layout::save_file(run.key, link)));
    variables.set_default("PYTHONUNBUFFERED", "1");
    for (const auto& [name, value] : run.request.setup.env) {
        variables.set(name, value);
    }
}

void describe_link(Environment& variables, const Run& run, Restart restart,
                   const std::string& checkpoint)
{
    variables.set("GPUQ_CAUSE", word(restart));
    if (checkpoint.empty()) {
        variables.unset("GPUQ_RESUME_FROM");
    } else {
        variables.set("GPUQ_RESUME_FROM", checkpoint);
    }
    variables.set_default("WANDB_RUN_ID", run.key.text());
    variables.set_default("WANDB_RESUME", "allow");
}

void describe_meeting(Environment& variables, const Run& run, LinkNumber link, JobId job,
                      std::optional<int> port)
{
    const Request& request = run.request;
    for (const char* name : k_of_the_ranks) {
        if (!is_set_by_user(request, name)) {
            variables.unset(name);
        }
    }
    const auto derived = static_cast<int>(k_first_port + job.value % k_ports);
    variables.set_default("MASTER_PORT", fmt::format("{}", port.value_or(derived)));
    if (request.nodes == 1) {
        variables.set_default("MASTER_ADDR", k_own_node);
    }
    if (tasks_on_node(request) > 1) {
        return; // ranks without a launcher
    }
    variables.set_default("PET_MASTER_PORT", *variables.value("MASTER_PORT"));
    if (const auto address = variables.value("MASTER_ADDR")) {
        variables.set_default("PET_MASTER_ADDR", *address);
    }
    variables.set_default("PET_NNODES", fmt::format("{}", request.nodes));
    if (request.gpus.count > 1) {
        variables.set_default("PET_NPROC_PER_NODE", fmt::format("{}", request.gpus.count));
    }
    variables.set_default("PET_RDZV_ID", fmt::format("{}.{}", run.key.text(), link.value));
}

} // namespace gpuq::supervisor
