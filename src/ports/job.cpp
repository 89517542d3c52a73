// SPDX-License-Identifier: GPL-2.0-or-later
#include "ports/job.h"

namespace gpuq {

bool is_over(JobState state)
{
    switch (state) {
    case JobState::pending:
    case JobState::running:
    case JobState::suspended:
    case JobState::completing:
    case JobState::unknown:
        return false;
    case JobState::completed:
    case JobState::failed:
    case JobState::cancelled:
    case JobState::timeout:
    case JobState::node_fail:
    case JobState::preempted:
    case JobState::out_of_memory:
    case JobState::boot_fail:
    case JobState::deadline:
        return true;
    }
    return false;
}

} // namespace gpuq
