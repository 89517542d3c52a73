// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <chrono>
#include <string>
#include <vector>

namespace gpuq {

/// Nodes that Slurm keeps for some users or accounts.
struct Reservation {
    std::string name;
    Time start;
    Time end;
    std::string nodes;     ///< Slurm's host list expression
    std::string partition; ///< empty: none named
    std::vector<std::string> users;
    std::vector<std::string> accounts;
    bool operator==(const Reservation&) const = default;
};

/// A reservation to be made. Slurm chooses the nodes: idle ones of the partition at that time.
struct ReservationSpec {
    std::string name;
    Time start;
    std::chrono::minutes duration{0};
    std::string partition;
    int nodes = 1;
    std::vector<std::string> users;
};

} // namespace gpuq
