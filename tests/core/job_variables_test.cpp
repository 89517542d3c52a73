// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/job_variables.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using Variables = std::vector<std::string>;

TEST(JobVariables, AreThoseThatMeanTheSameOnANode)
{
    const Variables passed = {"PATH=/bin",       "HOME=/home/ada",
                              "TMPDIRS=x",       "XDG_DATA_HOME=/d",
                              "SLURM_CONF=/c",   "SLURM_CONF_SERVER=h",
                              "SLURM_JWT=t",     "MY_SLURM_X=1",
                              "GPUQ_PROGRESS=p", "BASH_FUNC_module%%=() { x\n}",
                              "NOEQUALS",        "TERM=xterm",
                              "DISPLAYS=1"};
    EXPECT_EQ(variables_for_job(passed), passed);
}

TEST(JobVariables, LeaveOutWhatBelongsToTheLogin)
{
    EXPECT_EQ(variables_for_job({"XDG_RUNTIME_DIR=/run/user/1",
                                 "XDG_SESSION_ID=3",
                                 "DBUS_SESSION_BUS_ADDRESS=unix:x",
                                 "SSH_AUTH_SOCK=/tmp/a",
                                 "SSH_CONNECTION=1 2",
                                 "DISPLAY=:0",
                                 "TMUX=/tmp/t,1",
                                 "TMPDIR=/login",
                                 "TMP=/login",
                                 "HOSTNAME=login",
                                 "INVOCATION_ID=x",
                                 "VSCODE_IPC_HOOK_CLI=/run/x",
                                 "CUDA_VISIBLE_DEVICES=0",
                                 "GPUQ_RESUME_FROM=/old",
                                 "SLURM_JOB_ID=1",
                                 "SRUN_X=1",
                                 "_SLURM_SPANK_OPTION_x_y=1",
                                 "SLURMD_NODENAME=n",
                                 "SBATCH_CLUSTERS=other",
                                 "TMPDIR",
                                 "TMUX_TMPDIR=/run/user/1",
                                 "KITTY_LISTEN_ON=unix:/tmp/k",
                                 "SWAYSOCK=/run/user/1/sway",
                                 "PULSE_SERVER=unix:/run/user/1/pulse",
                                 "JUPYTERHUB_API_TOKEN=secret",
                                 "CUDA_MPS_PIPE_DIRECTORY=/tmp/mps",
                                 "PMI_FD=7",
                                 "PMIX_RANK=3",
                                 "OMPI_COMM_WORLD_SIZE=4",
                                 "GPUQ_PARAM_lr=1",
                                 "KEPT=1"}),
              Variables{"KEPT=1"});
}

TEST(JobVariables, DoNotMakeThisRunAContinuationOfTheOneAround)
{
    EXPECT_EQ(variables_for_job({"WANDB_RUN_ID=k-3", "GPUQ_RUN_ID=k-3", "WANDB_RESUME=allow"}),
              Variables{"WANDB_RESUME=allow"});
    EXPECT_EQ(variables_for_job({"WANDB_RUN_ID=mine", "GPUQ_RUN_ID=k"}),
              Variables{"WANDB_RUN_ID=mine"});
    EXPECT_EQ(variables_for_job({"WANDB_RUN_ID=mine"}), Variables{"WANDB_RUN_ID=mine"});
    EXPECT_EQ(variables_for_job({"PMIX_MCA_psec=native", "OMPI_MCA_btl=self"}).size(), 2U);
}

} // namespace
} // namespace gpuq
