// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace gpuq::slurm {

/// The result of `work`, computed in a child process; nullopt if it is not complete within `limit`,
/// in which case the child is killed. For libslurm calls that may block too long.
std::optional<std::string> in_a_child(const std::function<std::string()>& work,
                                      std::chrono::milliseconds limit);

} // namespace gpuq::slurm
