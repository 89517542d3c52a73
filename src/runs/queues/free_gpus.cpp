// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/free_gpus.h"

#include "core/pending_reason.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "runs/queues/queues.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpuq {
namespace {

bool is_open(const std::string& queue, const std::vector<Partition>& partitions)
{
    return std::any_of(partitions.begin(), partitions.end(),
                       [&](const Partition& one) { return one.up && one.name == queue; });
}

bool is_in_open_queue(const Node& node, const std::vector<Partition>& partitions)
{
    return std::any_of(node.partitions.begin(), node.partitions.end(),
                       [&](const std::string& queue) { return is_open(queue, partitions); });
}

/// The number of a node's idle GPUs that a run could have: each needs a core of its own.
int startable(const Node& node, int idle, const std::vector<Partition>& partitions)
{
    if (node.reserved || !is_in_open_queue(node, partitions)) {
        return 0;
    }
    const int cores = node.cpus_in_use ? std::max(0, node.cpus - *node.cpus_in_use) : idle;
    return std::min(idle, cores);
}

std::vector<std::string> sorted(std::vector<std::string> names)
{
    std::sort(names.begin(), names.end());
    return names;
}

int idle_on(const NodeUse& node)
{
    return node.in_use ? std::max(0, node.total - *node.in_use) : 0;
}

NodeUse use_of(const Node& node, const NodeGpus& gpus, const std::vector<Partition>& partitions)
{
    NodeUse use{node.name, gpus.total, gpus.in_use, node.up, node.reserved};
    const int idle = idle_on(use);
    use.blocked = node.up ? idle - startable(node, idle, partitions) : 0;
    return use;
}

void add(GpuPool& pool, const NodeUse& node)
{
    pool.total += node.total;
    if (!node.in_use) {
        pool.in_use = pool.free = pool.most_on_one_node = std::nullopt;
        return;
    }
    pool.down += *down_on(node);
    pool.blocked += node.blocked;
    if (pool.in_use) {
        *pool.in_use += *node.in_use;
        *pool.free += *free_on(node);
        pool.most_on_one_node = std::max(*pool.most_on_one_node, *free_on(node));
    }
}

/// Shares on GPUs that no job holds as a whole.
std::optional<int> free_shares(const Node& node, const NodeGpus& gpus, const NodeShares& shares,
                               const std::vector<Partition>& partitions)
{
    if (!node.up) {
        return 0;
    }
    if (!shares.in_use || !shares.gpus || !gpus.in_use) {
        return std::nullopt;
    }
    const int whole = std::max(0, *gpus.in_use - *shares.gpus);
    const int idle = std::max(0, shares.total - *shares.in_use - whole * shares.per_gpu);
    return shares.kind == GpuShare::Kind::mps // its parts are no number of jobs
               ? (startable(node, 1, partitions) > 0 ? idle : 0)
               : startable(node, idle, partitions);
}

/// A node has shares of one kind in practice; the first counts.
void add_shares(GpuPool& pool, const Node& node, const NodeGpus& gpus,
                const std::vector<Partition>& partitions)
{
    const auto shares =
        std::find_if(node.shares.begin(), node.shares.end(), [&](const NodeShares& one) {
            const bool same = one.model.empty() || one.model == gpus.model;
            return same && (!pool.shares || pool.shares->kind == one.kind);
        });
    if (shares == node.shares.end()) {
        return;
    }
    if (!pool.shares) {
        pool.shares = PoolShares{shares->kind, shares->per_gpu, 0, 0};
    }
    const auto free = free_shares(node, gpus, *shares, partitions);
    pool.shares->per_gpu = std::max(pool.shares->per_gpu, shares->per_gpu);
    pool.shares->total += shares->total;
    pool.shares->free =
        free && pool.shares->free ? std::optional(*pool.shares->free + *free) : std::nullopt;
}

/// A node that accepts jobs.
const Node* usable_node(const std::string& name, const std::vector<Node>& nodes)
{
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& one) { return one.name == name; });
    return node != nodes.end() && node->up && !node->reserved ? &*node : nullptr;
}

struct Release {
    NextFree next;
    std::vector<int> shared; ///< indices of the GPUs whose shares are released; empty: whole GPUs
    bool is_known = true;    ///< false: `shared` has all GPUs, one of which it is
};

Release release_of(const HeldShares& held, const Job& job, const Node& node)
{
    const GpuShare share{held.kind, held.parts, {}, {}, {}};
    // Slurm may count the shares of all models together.
    const bool has_one_model = held.model.empty() && node.gpus.size() == 1;
    Release release{{job.ends_at, has_one_model ? node.gpus.front().model : held.model, 0,
                     sorted(node.partitions), node.name, job.id, share},
                    held.gpus,
                    !held.gpus.empty()};
    int all = 0;
    for (const NodeGpus& gpus : node.gpus) {
        all += release.is_known ? 0 : gpus.total;
    }
    for (int index = 0; index < all; ++index) {
        release.shared.push_back(index);
    }
    return release;
}

/// A shared GPU is free as a whole when the last job with shares of it ends. `list` is in the order
/// of these ends.
void count_whole_gpus(std::vector<Release>& list)
{
    std::set<std::pair<std::string_view, int>> held_longer; ///< node, index
    for (auto release = list.rbegin(); release != list.rend(); ++release) {
        int count = 0;
        for (const int index : release->shared) {
            count += held_longer.emplace(release->next.node, index).second ? 1 : 0;
        }
        if (release->next.share) {
            release->next.count = release->is_known ? count : std::min(count, 1);
        }
    }
}

} // namespace

bool could_start(const Job& job)
{
    return job.state == JobState::pending && job.priority != std::uint32_t{0} &&
           is_in_line(job.reason);
}

bool goes_before(const Job& one, const Job& other)
{
    return one.priority && other.priority &&
           (*one.priority > *other.priority ||
            (*one.priority == *other.priority && one.id < other.id));
}

std::optional<int> free_on(const NodeUse& node)
{
    return node.in_use ? std::optional(node.up ? idle_on(node) - node.blocked : 0) : std::nullopt;
}

std::optional<int> down_on(const NodeUse& node)
{
    return node.in_use ? std::optional(node.up ? 0 : idle_on(node)) : std::nullopt;
}

std::vector<GpuPool> gpu_pools(const Inventory& inventory)
{
    std::map<std::pair<std::vector<std::string>, std::string>, GpuPool> pools;
    for (const Node& node : inventory.nodes) {
        const auto queues = sorted(node.partitions);
        for (const NodeGpus& gpus : node.gpus) {
            const GpuPool empty{gpus.model, queues, 0, 0, 0, 0, 0, 0};
            GpuPool& pool = pools.try_emplace({queues, gpus.model}, empty).first->second;
            add(pool, use_of(node, gpus, inventory.partitions));
            add_shares(pool, node, gpus, inventory.partitions);
        }
    }
    std::vector<GpuPool> list;
    for (auto& [name, pool] : pools) {
        list.push_back(std::move(pool));
    }
    return list;
}

std::vector<NodeUse> nodes_of(const GpuPool& pool, const Inventory& inventory)
{
    std::vector<NodeUse> nodes;
    for (const Node& node : inventory.nodes) {
        for (const NodeGpus& gpus : node.gpus) {
            if (gpus.model == pool.model && sorted(node.partitions) == pool.queues) {
                nodes.push_back(use_of(node, gpus, inventory.partitions));
            }
        }
    }
    return nodes;
}

std::optional<bool> is_one_free(const std::vector<GpuPool>& pools)
{
    bool all_known = true;
    for (const GpuPool& pool : pools) {
        if (pool.free.value_or(0) > 0) {
            return true;
        }
        all_known = all_known && pool.free;
    }
    return all_known ? std::optional(false) : std::nullopt;
}

std::optional<Partition> best_queue(const GpuPool& pool, const std::vector<Partition>& partitions)
{
    const auto rank = [](const Partition& queue) {
        return std::tuple(!queue.max_time, queue.max_time.value_or(std::chrono::minutes{0}),
                          !queue.is_default);
    };
    std::optional<Partition> best;
    for (const Partition& queue : partitions) {
        const bool mine =
            queue.up && std::binary_search(pool.queues.begin(), pool.queues.end(), queue.name);
        if (mine && (!best || rank(queue) < rank(*best))) {
            best = queue;
        }
    }
    return best;
}

std::vector<NextFree> next_free(const std::vector<Node>& nodes, const std::vector<Job>& jobs)
{
    std::vector<Release> list;
    for (const Job& job : jobs) {
        for (const HeldGpus& held : job.held.whole) {
            const Node* const node = usable_node(held.node, nodes);
            if (held.count > 0 && node != nullptr) {
                list.push_back({{job.ends_at, held.model, held.count, sorted(node->partitions),
                                 held.node, job.id},
                                {}});
            }
        }
        for (const HeldShares& held : job.held.shares) {
            if (const Node* const node = usable_node(held.node, nodes)) {
                list.push_back(release_of(held, job, *node));
            }
        }
    }
    std::stable_sort(list.begin(), list.end(), [](const Release& one, const Release& other) {
        return std::tuple(!one.next.at, one.next.at, one.next.job) <
               std::tuple(!other.next.at, other.next.at, other.next.job);
    });
    count_whole_gpus(list);
    std::vector<NextFree> next;
    for (Release& release : list) {
        next.push_back(std::move(release.next));
    }
    return next;
}

WaitingLine waiting_line(const std::vector<Job>& jobs)
{
    WaitingLine line;
    for (const Job& job : jobs) {
        if (could_start(job) && (job.gpus > 0 || job.size.share)) {
            ++line.jobs;
            line.gpus += job.gpus;
        }
    }
    return line;
}

std::optional<int> jobs_ahead(const Job& mine, const AllJobs& all)
{
    if (!all.complete || !mine.priority || !could_start(mine)) {
        return std::nullopt;
    }
    const auto goes_first = [&](const Job& other) {
        return other.id != mine.id && could_start(other) &&
               share_a_queue(mine.partition, other.partition) && goes_before(other, mine);
    };
    return static_cast<int>(std::count_if(all.jobs.begin(), all.jobs.end(), goes_first));
}

std::map<JobId, int> jobs_ahead(const AllJobs& all)
{
    std::vector<const Job*> line;
    for (const Job& job : all.jobs) {
        if (all.complete && job.priority && could_start(job)) {
            line.push_back(&job);
        }
    }
    std::sort(line.begin(), line.end(),
              [](const Job* one, const Job* other) { return goes_before(*one, *other); });
    std::map<std::string_view, int> before; // by the queues that a job names
    std::map<JobId, int> ahead;
    for (const Job* const job : line) {
        int count = 0;
        for (const auto& [queues, jobs] : before) {
            count += share_a_queue(job->partition, queues) ? jobs : 0;
        }
        ahead.emplace(job->id, count);
        ++before[job->partition];
    }
    return ahead;
}

} // namespace gpuq
