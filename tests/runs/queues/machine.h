// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "fakes/now.h"
#include "ports/job.h"
#include "ports/nodes.h"

#include <utility>
#include <vector>

namespace gpuq::fakes {

// Jobs and nodes for tests of expected starts.

inline Node gpu_node(const char* name, int gpus = 4, const char* queue = "gpu",
                     const char* model = "k80")
{
    Node made;
    made.name = name;
    made.gpus = {{model, gpus, 0}};
    made.partitions = {queue};
    made.cpus = 16;
    made.memory_mib = 64 << 10;
    return made;
}

/// With the queues gpu and other.
inline Inventory machine(std::vector<Node> nodes)
{
    Inventory made;
    for (const char* name : {"gpu", "other"}) {
        Partition queue;
        queue.name = name;
        made.partitions.push_back(queue);
    }
    made.nodes = std::move(nodes);
    return made;
}

inline Job queued(std::uint32_t id, std::uint32_t priority, int gpus, std::chrono::minutes walltime)
{
    Job job;
    job.id = JobId{id};
    job.state = JobState::pending;
    job.partition = "gpu";
    job.reason = "Resources";
    job.priority = priority;
    job.walltime = walltime;
    job.size.gpus = {{"", gpus}};
    job.size.cpus = gpus;
    return job;
}

/// On one node, of its k80 GPUs.
inline Job holding(std::uint32_t id, const char* on, int gpus, std::optional<Time> ends)
{
    Job job;
    job.id = JobId{id};
    job.state = JobState::running;
    job.partition = "gpu";
    job.nodes = on;
    job.ends_at = ends;
    job.held.whole = {{on, "k80", gpus}};
    job.size.cpus = gpus;
    return job;
}

} // namespace gpuq::fakes
