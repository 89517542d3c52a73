// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/nodes.h"
#include "ports/reservation.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reservations of GPUs: those of courses, of `gpuq reserve` and of operators. Pure.
namespace gpuq {

/// `gpuq reserve` names a reservation `gpuq:USER:NAME`, by which the job_submit.lua of a policy
/// recognises it.
struct ReservationName {
    std::string maker;
    std::string name;
    bool operator==(const ReservationName&) const = default;
};
std::string to_text(const ReservationName& name);
/// nullopt if `gpuq reserve` has not made it.
std::optional<ReservationName> parse_reservation_name(std::string_view text);

/// A reservation with GPUs.
struct ReservedGpus {
    Reservation reservation;
    int gpus = 0;
    std::vector<std::string> nodes;
    std::vector<std::string> queues; ///< of the nodes, sorted
    bool operator==(const ReservedGpus&) const = default;
};

/// The reservations that have nodes with GPUs, by start.
std::vector<ReservedGpus> reserved_gpus(const std::vector<Reservation>& reservations,
                                        const std::vector<Node>& nodes);

/// Marks the nodes of the reservations that have begun, of which Slurm itself informs some seconds
/// late.
void mark_reserved(std::vector<Node>& nodes, const std::vector<ReservedGpus>& reserved, Time now);

/// Those with nodes in one of the queues that begin before `until`, and have not ended at `now`.
std::vector<ReservedGpus> in_the_way(const std::vector<ReservedGpus>& reserved,
                                     const std::vector<std::string>& queues, Time now, Time until);

} // namespace gpuq
