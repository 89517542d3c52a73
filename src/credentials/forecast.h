// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "credentials/ccache.h"

#include <optional>
#include <string>

namespace gpuq::credentials {

/// How long a run needs its ticket.
struct Need {
    Time until;                          ///< end of the run, as far as known
    Time link_until;                     ///< end of the link that runs, or would run next
    int link = 1;                        ///< that link's number
    std::chrono::seconds link_length{0}; ///< length of the links after it; 0: none follow
};

/// True if a link of this length may start with the ticket: the ticket lasts for the whole link, or
/// still has at least half of the lifetime that a login gives, so that a new login would gain
/// little.
bool may_begin(const Ticket& ticket, std::chrono::seconds length, Time now);

/// A ticket that ends before the run does.
struct Forecast {
    Time good_until; ///< with renewals alone
    bool renewable = false;
    std::optional<int> waiting_link; ///< the first link that the ticket does not cover
};

/// Nullopt if the ticket lasts long enough.
std::optional<Forecast> forecast(const Ticket& ticket, const Need& need);

/// `the ticket is renewable until Fri 14:02, the run needs it until Sun 03:00: log in once before
/// Fri 14:02, or link 3 waits`. `clock` formats the times.
template <typename ClockText>
std::string describe(const Forecast& found, const Need& need, const ClockText& clock)
{
    const std::string good = clock(found.good_until);
    std::string text = std::string("the ticket is ") + (found.renewable ? "renewable" : "good") +
                       " until " + good + ", the run needs it until " + clock(need.until) +
                       ": log in once before " + good;
    if (found.waiting_link) {
        text += ", or link " + std::to_string(*found.waiting_link) + " waits";
    }
    return text;
}

} // namespace gpuq::credentials
