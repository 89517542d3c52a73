// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/reservation_plan.h"

#include "core/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gpuq::cli {
namespace {

using policy::Policy;
using policy::Pool;

int gpus_on(const Node& node)
{
    int gpus = 0;
    for (const NodeGpus& one : node.gpus) {
        gpus += one.total;
    }
    return gpus;
}

/// A pool's nodes in Slurm, and the GPUs that each has at least. Slurm chooses any of them.
struct PoolNodes {
    int nodes = 0;
    int gpus_each = 0;
};

PoolNodes nodes_of(const Pool& pool, const Inventory& inventory)
{
    PoolNodes found;
    for (const Node& node : inventory.nodes) {
        if (pool.has_node(node.name)) {
            const int gpus = gpus_on(node);
            found.gpus_each = found.nodes == 0 ? gpus : std::min(found.gpus_each, gpus);
            ++found.nodes;
        }
    }
    return found;
}

std::vector<policy::MadeReservation> made_of(const std::vector<ReservedGpus>& reserved)
{
    std::vector<policy::MadeReservation> made;
    for (const ReservedGpus& one : reserved) {
        if (parse_reservation_name(one.reservation.name)) {
            made.push_back({one.reservation.start, one.reservation.end, one.gpus});
        }
    }
    return made;
}

Error too_many(const AskedReservation& asked)
{
    const std::string what = asked.model.empty()
                                 ? counted(static_cast<std::uint64_t>(asked.gpus), "GPU")
                                 : fmt::format("{} {}", asked.gpus, asked.model);
    return fail(Error::Kind::missing,
                fmt::format("no pool of which nodes may be reserved has {}", what));
}

} // namespace

Result<ReservationSpec> plan_reservation(const Policy& policy, const AskedReservation& asked,
                                         const Inventory& inventory,
                                         const std::vector<ReservedGpus>& reserved, Time now)
{
    policy::ReserveRequest request{asked.name.maker, asked.accounts, asked.start, asked.duration,
                                   asked.gpus};
    const auto made = made_of(reserved);
    // Before the nodes are known: who may not reserve at all is not told about pools.
    if (const auto refusal = refusal_of(policy, request, made, now)) {
        return fail(Error::Kind::denied, *refusal);
    }
    for (const Pool* pool : reservable_pools(policy, asked.model)) {
        const PoolNodes has = nodes_of(*pool, inventory);
        const int nodes = has.gpus_each == 0 ? 0 : (asked.gpus + has.gpus_each - 1) / has.gpus_each;
        if (nodes == 0 || nodes > has.nodes) {
            continue;
        }
        request.gpus = nodes * has.gpus_each;
        if (const auto refusal = refusal_of(policy, request, made, now)) {
            return fail(Error::Kind::denied,
                        fmt::format("{}; Slurm reserves whole nodes, those of pool {} have {} GPUs",
                                    *refusal, pool->name, has.gpus_each));
        }
        return ReservationSpec{to_text(asked.name),         asked.start, asked.duration,
                               partition_of(policy, *pool), nodes,       asked.users};
    }
    return too_many(asked);
}

} // namespace gpuq::cli
