// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/job_variables.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace gpuq {
namespace {

constexpr std::array k_kept_back = {
    KeptBack{"the session", "XDG_RUNTIME_DIR XDG_SESSION_* XDG_SEAT XDG_SEAT_PATH XDG_VTNR "
                            "XDG_ACTIVATION_TOKEN DBUS_* SESSION_MANAGER GNOME_KEYRING_* "
                            "PAM_KWALLET5_LOGIN AT_SPI_BUS_ADDRESS PULSE_SERVER PIPEWIRE_*"},
    KeptBack{"the display", "DISPLAY XAUTHORITY WAYLAND_DISPLAY WAYLAND_SOCKET ICEAUTHORITY "
                            "WINDOWID SWAYSOCK I3SOCK HYPRLAND_INSTANCE_SIGNATURE NIRI_SOCKET "
                            "WSL_INTEROP"},
    KeptBack{"ssh and agents", "SSH_AUTH_SOCK SSH_AGENT_PID SSH_CLIENT SSH_CONNECTION SSH_TTY "
                               "SSH_ORIGINAL_COMMAND SSH_USER_AUTH SSH_ASKPASS "
                               "SSH_ASKPASS_REQUIRE SUDO_ASKPASS GIT_ASKPASS GPG_AGENT_INFO "
                               "GPG_TTY"},
    KeptBack{"the terminal", "TMUX TMUX_PANE TMUX_TMPDIR STY WINDOW ZELLIJ* VSCODE_* KITTY_* "
                             "WEZTERM_* ALACRITTY_* GNOME_TERMINAL_* KONSOLE_* NVIM "
                             "NVIM_LISTEN_ADDRESS"},
    KeptBack{"temporary files", "TMPDIR TMP TEMP TEMPDIR"},
    KeptBack{"the host's name", "HOSTNAME HOST"},
    KeptBack{"systemd", "INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET LISTEN_FDS LISTEN_PID "
                        "LISTEN_FDNAMES MAINPID MANAGERPID SYSTEMD_EXEC_PID WATCHDOG_PID "
                        "WATCHDOG_USEC MEMORY_PRESSURE_*"},
    KeptBack{"a Jupyter server around this command", "JUPYTERHUB_* JPY_*"},
    KeptBack{"GPUs selected on this host", "CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES "
                                           "ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES "
                                           "GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK CUDA_MPS_*"},
    KeptBack{"a run around this one", "GPUQ_RUN_ID GPUQ_LINK GPUQ_DEADLINE GPUQ_DEADLINE_FILE "
                                      "GPUQ_CHECKPOINT_DIR GPUQ_RESUME_FROM GPUQ_CAUSE "
                                      "GPUQ_STOP_FILE GPUQ_SAVE_FILE GPUQ_SWEEP GPUQ_TRY "
                                      "GPUQ_PARAM_*"},
    KeptBack{"an MPI program around this one",
             "PMI_FD PMI_JOBID PMI_PORT PMI_RANK PMI_SIZE PMIX_NAMESPACE PMIX_RANK PMIX_SERVER_* "
             "OMPI_COMM_WORLD_* OMPI_UNIVERSE_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS"},
    KeptBack{"other commands of Slurm", "SLURM_* SLURMD_* SRUN_* SBATCH_* SALLOC_* "
                                        "_SLURM_SPANK_OPTION_*"},
};

/// Needed to reach the cluster.
constexpr std::string_view k_still_passed[] = {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"};

bool matches(std::string_view name, std::string_view pattern)
{
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : name == pattern;
}

bool is_kept_back(std::string_view variable)
{
    const std::string_view name = variable.substr(0, variable.find('='));
    if (std::find(std::begin(k_still_passed), std::end(k_still_passed), name) !=
        std::end(k_still_passed)) {
        return false;
    }
    for (const KeptBack& row : k_kept_back) {
        for (std::string_view rest = row.names; !rest.empty();) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            if (matches(name, rest.substr(0, end))) {
                return true;
            }
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return false;
}

} // namespace

std::span<const KeptBack> kept_back()
{
    return k_kept_back;
}

std::vector<std::string> variables_for_job(const std::vector<std::string>& environment)
{
    static constexpr std::string_view k_run = "GPUQ_RUN_ID=";
    const auto around = std::find_if(environment.begin(), environment.end(),
                                     [](const auto& one) { return one.starts_with(k_run); });
    // As set for a chain or a try; with it, this run would continue that one's in Weights & Biases.
    const std::string of_that_run =
        around == environment.end() ? "" : "WANDB_RUN_ID=" + around->substr(k_run.size());
    std::vector<std::string> passed;
    std::copy_if(environment.begin(), environment.end(), std::back_inserter(passed),
                 [&](const std::string& variable) {
                     return !is_kept_back(variable) && variable != of_that_run;
                 });
    return passed;
}

} // namespace gpuq
