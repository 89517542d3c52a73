// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq::slurm {

/// True when a node of the partition waits for the processes of an ended job: Slurm gives nothing
/// of such a node to anybody, free or not. False when that can't be found out.
bool is_a_node_completing(const std::string& partition);

} // namespace gpuq::slurm
