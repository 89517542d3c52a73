// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace gpuq {

/// Exit statuses of gpuq itself; below 119 and from 131 on they are the program's own
/// (128+N for signal N). man gpuq, EXIT STATUS.
enum class ExitStatus : int {
    success = 0,
    usage = 2,
    lost = 119,           ///< node failed or preempted, not continued
    unreachable = 120,    ///< Slurm does not answer
    refused = 121,        ///< by policy or by Slurm
    max_wait = 122,       ///< --max-wait passed
    stopped = 123,        ///< stopped by a person
    time_limit = 124,     ///< time limit, when gpuq or Slurm had to kill
    internal = 125,       ///< gpuq or its surroundings failed
    not_executable = 126, ///< program found, can not be run
    not_found = 127,      ///< program not found
    detached = 129,       ///< by HUP or TERM
    interrupted = 130,    ///< detached or withdrawn by Ctrl-C
};

/// Exit statuses a program uses to speak to gpuq (contract).
constexpr int k_status_continue_me = 85;
constexpr int k_status_do_not_continue = 93;

/// `gpuq-supervisor connect`: there is no sshd on this node.
constexpr int k_status_no_sshd = 4;

/// `gpuq-supervisor relay` and `guard`: no supervisor listens on this node.
constexpr int k_status_no_supervisor = 3;

} // namespace gpuq
