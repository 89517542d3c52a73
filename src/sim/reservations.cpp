// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/world.h"

#include "sim/at.h"

namespace gpuq::sim {

NodeSet World::open_nodes(const Shape& shape, Seconds start, Seconds limit) const
{
    NodeSet open = shape.nodes & m_up;
    for (std::size_t i = 0; i < machine.reservations.size(); ++i) {
        const Reservation& reservation = machine.reservations[i];
        const Seconds zero = reservation.floats ? now : Seconds{0};
        const Seconds begin = zero + reservation.start;
        const Seconds until = zero + reservation.end;
        if (shape.reservation && at(*shape.reservation) == i) {
            if (start < begin || start >= until) {
                return {};
            }
        } else if (start < until && begin < start + limit) {
            open &= ~node_set(reservation.nodes);
        }
    }
    return open;
}

std::optional<Seconds> World::next_opening(const Shape& shape, Seconds start) const
{
    std::optional<Seconds> next;
    const auto consider = [&](Seconds moment) {
        if (moment > start && (!next || moment < *next)) {
            next = moment;
        }
    };
    for (std::size_t i = 0; i < machine.reservations.size(); ++i) {
        const Reservation& reservation = machine.reservations[i];
        const Seconds zero = reservation.floats ? now : Seconds{0};
        const bool own = shape.reservation && at(*shape.reservation) == i;
        consider(zero + (own ? reservation.start : reservation.end));
    }
    return next;
}

} // namespace gpuq::sim
