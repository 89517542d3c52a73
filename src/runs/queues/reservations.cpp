// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/reservations.h"

#include "core/host_list.h"
#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpuq {
namespace {

constexpr std::string_view k_made = "gpuq:";

int gpus_on(const Node& node)
{
    int gpus = 0;
    for (const NodeGpus& one : node.gpus) {
        gpus += one.total;
    }
    return gpus;
}

/// Slurm's own list is valid, but may be too long or have several brackets per name: then the nodes
/// are not known.
ReservedGpus with_gpus(const Reservation& reservation, const std::vector<Node>& nodes)
{
    ReservedGpus found{reservation, 0, {}, {}};
    const auto names = expand_hosts(reservation.nodes);
    const std::set<std::string> its =
        names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>{};
    std::set<std::string> queues;
    for (const Node& node : nodes) {
        if (its.contains(node.name) && gpus_on(node) > 0) {
            found.gpus += gpus_on(node);
            found.nodes.push_back(node.name);
            queues.insert(node.partitions.begin(), node.partitions.end());
        }
    }
    found.queues.assign(queues.begin(), queues.end());
    return found;
}

} // namespace

std::string to_text(const ReservationName& name)
{
    return fmt::format("{}{}:{}", k_made, name.maker, name.name);
}

std::optional<ReservationName> parse_reservation_name(std::string_view text)
{
    if (!text.starts_with(k_made)) {
        return std::nullopt;
    }
    const auto [maker, name] = cut(text.substr(k_made.size()), ':');
    return maker.empty() || name.empty()
               ? std::nullopt
               : std::optional(ReservationName{std::string(maker), std::string(name)});
}

std::vector<ReservedGpus> reserved_gpus(const std::vector<Reservation>& reservations,
                                        const std::vector<Node>& nodes)
{
    std::vector<ReservedGpus> list;
    for (const Reservation& reservation : reservations) {
        ReservedGpus found = with_gpus(reservation, nodes);
        if (found.gpus > 0) {
            list.push_back(std::move(found));
        }
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const ReservedGpus& one, const ReservedGpus& two) {
                         return one.reservation.start < two.reservation.start;
                     });
    return list;
}

void mark_reserved(std::vector<Node>& nodes, const std::vector<ReservedGpus>& reserved, Time now)
{
    for (const ReservedGpus& one : reserved) {
        const bool is_on = one.reservation.start <= now && now < one.reservation.end;
        for (Node& node : nodes) {
            node.reserved = node.reserved || (is_on && std::find(one.nodes.begin(), one.nodes.end(),
                                                                 node.name) != one.nodes.end());
        }
    }
}

std::vector<ReservedGpus> in_the_way(const std::vector<ReservedGpus>& reserved,
                                     const std::vector<std::string>& queues, Time now, Time until)
{
    std::vector<ReservedGpus> found;
    for (const ReservedGpus& one : reserved) {
        const bool same = std::any_of(queues.begin(), queues.end(), [&](const std::string& queue) {
            return std::binary_search(one.queues.begin(), one.queues.end(), queue);
        });
        if (same && one.reservation.start < until && now < one.reservation.end) {
            found.push_back(one);
        }
    }
    return found;
}

} // namespace gpuq
