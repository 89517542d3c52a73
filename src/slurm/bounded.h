// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace gpuq::slurm {

/// What `work` returns, computed in a child process; nothing when that has not come within
/// `limit`, and then the child is killed. For calls of libslurm that wait too long.
std::optional<std::string> in_a_child(const std::function<std::string()>& work,
                                      std::chrono::milliseconds limit);

} // namespace gpuq::slurm
