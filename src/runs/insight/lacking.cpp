// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/lacking.h"

#include "runs/queues/expected_start.h"

#include <cstdint>

namespace gpuq {
namespace {

/// Whether the job would start at once if it requested resources of this size.
bool would_start(const Job& job, const JobSize& size, AllJobs all, const Inventory& inventory,
                 Time now)
{
    for (Job& one : all.jobs) {
        if (one.id == job.id) {
            one.size = size;
        }
    }
    const auto estimates = expected_starts({job.id}, all, inventory, now);
    const auto found = estimates.find(job.id);
    return found != estimates.end() && found->second.at && !found->second.after;
}

} // namespace

std::string lacking_beside_gpus(const Job& job, const AllJobs& all, const Inventory& inventory,
                                Time now)
{
    const auto starts_with = [&](int cpus, std::uint64_t memory_mib) {
        JobSize size = job.size;
        size.cpus = cpus;
        size.memory_mib = memory_mib;
        return would_start(job, size, all, inventory, now);
    };
    const bool wants_gpus = !job.size.gpus.empty() || job.size.share;
    const int cpus = job.size.cpus;
    const std::uint64_t memory = job.size.memory_mib;
    if (!wants_gpus || !all.complete || starts_with(cpus, memory) || !starts_with(0, 0)) {
        return "";
    }
    return starts_with(0, memory) ? "cores" : starts_with(cpus, 0) ? "memory" : "cores and memory";
}

} // namespace gpuq
