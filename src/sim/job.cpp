// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/job.h"

#include <algorithm>
#include <fmt/format.h>

namespace gpuq::sim {
namespace {

constexpr Seconds k_longest = std::chrono::hours{24 * 366 * 1000};
constexpr int k_most_gpus = 1'000'000;

bool is_moment(Seconds time)
{
    return time >= Seconds{0} && time <= k_longest;
}

bool is_part(std::optional<std::chrono::milliseconds> part)
{
    return !part || (part->count() >= 0 && *part < Seconds{1});
}

bool is_size(int count)
{
    return count >= 0 && count <= k_most_gpus;
}

bool are_partitions(const Machine& machine, const std::vector<int>& indexes)
{
    return std::all_of(indexes.begin(), indexes.end(), [&](int index) {
        return index >= 0 && static_cast<std::size_t>(index) < machine.partitions.size();
    });
}

bool is_index(const std::optional<int>& index, std::size_t size)
{
    return !index || (*index >= 0 && static_cast<std::size_t>(*index) < size);
}

/// The first problem of a job; empty if it is valid.
std::string problem(const Machine& machine, const Job& job)
{
    if (!is_moment(job.submit) || !is_moment(job.duration) || !is_moment(job.limit)) {
        return "a time that is negative or beyond a thousand years";
    }
    if (!is_part(job.submit_part) || !is_part(job.duration_part)) {
        return "an invalid submit_ms or duration_ms: must be 0 to 999";
    }
    if (!is_size(job.shares) || (job.shares > 0 && (job.gpus > 0 || job.nodes > 1))) {
        return "shares of GPUs beside whole ones, or on several nodes";
    }
    const bool has_none = job.gpus == 0 && job.shares == 0;
    if (!is_size(job.gpus) || (has_none && job.cpus_per_node == 0) || !is_size(job.nodes) ||
        !is_size(job.cpus_per_gpu) || !is_size(job.cpus_per_node) || job.memory_per_gpu_mib < 0 ||
        job.memory_per_node_mib < 0) {
        return "an invalid number of GPUs, nodes or CPUs, or amount of memory";
    }
    if (!are_partitions(machine, job.partitions) ||
        (job.chain && !are_partitions(machine, job.chain->partitions))) {
        return "an unknown partition";
    }
    if (!is_index(job.qos, machine.qos.size()) ||
        !is_index(job.reservation, machine.reservations.size())) {
        return "an unknown QOS or reservation";
    }
    if (job.chain && (!is_moment(job.chain->gap) || !is_moment(job.chain->limit) ||
                      job.chain->lost < Seconds{0} || job.chain->saves < Seconds{0} ||
                      job.chain->lost >= job.chain->limit)) {
        return "links too short to make progress";
    }
    return {};
}

} // namespace

Result<void> check(const Machine& machine, const std::vector<Job>& jobs)
{
    for (const Job& job : jobs) {
        if (const std::string what = problem(machine, job); !what.empty()) {
            return fail(Error::Kind::usage, fmt::format("job {} has {}", job.id, what));
        }
    }
    return {};
}

double gpus_on(const Machine& machine, const Piece& piece, std::size_t i)
{
    const int per_gpu = machine.nodes[static_cast<std::size_t>(piece.nodes[i])].per_gpu;
    return per_gpu > 0 && !piece.parts.empty() ? static_cast<double>(piece.parts[i].sum()) / per_gpu
                                               : static_cast<double>(piece.gpus[i]);
}

} // namespace gpuq::sim
