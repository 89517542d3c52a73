// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/giving_way.h"

#include "core/comment.h"
#include "runs/queues/free_gpus.h"
#include "runs/queues/queues.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace gpuq {

bool must_give_way(const AllJobs& all, JobId worker, int more)
{
    const auto self = std::find_if(all.jobs.begin(), all.jobs.end(),
                                   [&](const Job& job) { return job.id == worker; });
    if (self == all.jobs.end()) {
        return false;
    }
    bool does_other_user_wait = false;
    int own = more * self->gpus;
    std::map<std::uint32_t, int> held; // by other users
    for (const Job& job : all.jobs) {
        if (!share_a_queue(job.partition, self->partition)) {
            continue;
        }
        const bool is_own = job.uid == self->uid;
        if (job.state == JobState::running) {
            (is_own ? own : held[job.uid]) += job.gpus;
        }
        if (!could_start(job) || (job.gpus == 0 && !job.size.share)) {
            continue;
        }
        if (is_own && submitter_in(job.comment) != Submitter::sweep) {
            return true;
        }
        does_other_user_wait = does_other_user_wait || !is_own;
    }
    return does_other_user_wait && std::all_of(held.begin(), held.end(),
                                               [&](const auto& user) { return user.second < own; });
}

} // namespace gpuq
