// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/supervise.h"

#include <functional>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Serves one connection of ssh on the standard streams: an sshd of this user, in a step of the
/// job, told by files in runs/KEY/connect. What it says goes out in frames (wire::Output). When the
/// connection ends, or Slurm ends the job, everything that it has started is killed. 0, or
/// k_status_no_sshd or another status with a line on stderr.
int serve_ssh(const Options& options);

/// Runs `child` in a child process, which writes to `output` and reads the standard input, and
/// sends what it writes in frames, as above. Kills it and what it has started when the connection
/// or the job ends.
int serve_child(const std::function<void(int output)>& child);

/// The sshd to execute: `chosen` (GPUQ_SSHD) and no other; else the one in `path` (as in PATH), or
/// where systems keep it.
std::optional<std::string> find_sshd(const char* chosen, const char* path);

} // namespace gpuq::supervisor
