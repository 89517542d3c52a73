// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace gpuq::slurm {

/// True if a node of the partition is waiting for the processes of an ended job: until then Slurm
/// allocates no resources of that node, not even free ones. False if that can't be determined.
bool is_a_node_completing(const std::string& partition);

} // namespace gpuq::slurm
