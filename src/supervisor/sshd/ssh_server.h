// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"

#include <functional>
#include <optional>
#include <string>

namespace gpuq::supervisor {

/// Serves one ssh connection on the standard streams with an sshd of this user, in a step of the
/// job, configured by files in runs/KEY/connect. The output of sshd is sent in frames
/// (wire::Output). When the connection or the job ends, all processes that it started are killed.
/// Returns 0, or k_status_no_sshd or another status with a message on stderr.
int serve_ssh(const Options& options);

/// Runs `child` in a child process, which reads standard input and writes to `output`, and sends
/// its output in frames, as above. Kills it and the processes it started when the connection or the
/// job ends.
int serve_child(const std::function<void(int output)>& child);

/// Finds the sshd to execute: only `chosen` (GPUQ_SSHD) if it is set; otherwise in `path` (as in
/// PATH) and in the usual system directories.
std::optional<std::string> find_sshd(const char* chosen, const char* path);

} // namespace gpuq::supervisor
