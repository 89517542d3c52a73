// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/reserve.h"
#include "ports/nodes.h"
#include "ports/reservation.h"
#include "runs/queues/reservations.h"

#include <string>
#include <vector>

/// The reservation that `gpuq reserve` requests from Slurm. Pure.
namespace gpuq::cli {

struct AskedReservation {
    ReservationName name;
    std::vector<std::string> accounts; ///< of its maker
    Time start;
    std::chrono::minutes duration{0};
    int gpus = 0;
    std::string model; ///< empty: any
    std::vector<std::string> users;
};

/// The nodes of one pool that have as many GPUs: Slurm reserves whole nodes. `policy`-wide rules
/// apply to all GPUs of these nodes. `denied` with the rule; `missing` if no pool has as many.
Result<ReservationSpec> plan_reservation(const policy::Policy& policy,
                                         const AskedReservation& asked, const Inventory& inventory,
                                         const std::vector<ReservedGpus>& reserved, Time now);

} // namespace gpuq::cli
