// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace gpuq {

/// Exit statuses of gpuq itself. Statuses below 119 and from 131 on are the program's own (128+N
/// for signal N). See man gpuq, EXIT STATUS.
enum class ExitStatus : int {
    success = 0,
    usage = 2,
    lost = 119,           ///< node failed or preempted, not continued
    unreachable = 120,    ///< Slurm does not respond
    refused = 121,        ///< by a policy rule or by Slurm
    max_wait = 122,       ///< --max-wait exceeded
    stopped = 123,        ///< stopped by a user
    time_limit = 124,     ///< time limit reached, and gpuq or Slurm had to kill
    internal = 125,       ///< gpuq or its environment failed
    not_executable = 126, ///< program found but cannot be executed
    not_found = 127,      ///< program not found
    detached = 129,       ///< by HUP or TERM
    interrupted = 130,    ///< detached or withdrawn by Ctrl-C
};

/// Exit statuses by which a program controls whether its chain continues (part of the contract).
constexpr int k_status_continue_me = 85;
constexpr int k_status_do_not_continue = 93;

/// Exit status of `gpuq-supervisor connect`: no sshd is installed on the node.
constexpr int k_status_no_sshd = 4;

/// Exit status of `gpuq-supervisor relay` and `guard`: no supervisor listens on the node.
constexpr int k_status_no_supervisor = 3;

} // namespace gpuq
