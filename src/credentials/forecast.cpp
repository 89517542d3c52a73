// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/forecast.h"

#include <algorithm>

namespace gpuq::credentials {

bool may_begin(const Ticket& ticket, std::chrono::seconds length, Time now)
{
    const Time until = good_until(ticket);
    const Time login = ticket.login == Time{} ? ticket.start : ticket.login;
    return ticket.end > now && (until >= now + length || until - now >= (until - login) / 2);
}

std::optional<Forecast> forecast(const Ticket& ticket, const Need& need)
{
    Forecast found;
    found.good_until = good_until(ticket);
    found.renewable = ticket.renew_till && *ticket.renew_till > ticket.end;
    if (found.good_until >= need.until) {
        return std::nullopt;
    }
    // A running link continues with the ticket it has; the first link that would start without
    // waits.
    if (need.link_length.count() > 0) {
        const auto short_of = found.good_until - need.link_until;
        const auto whole = std::max<std::int64_t>(short_of / need.link_length, 0);
        found.waiting_link =
            need.link + 1 + static_cast<int>(std::min<std::int64_t>(whole, 1'000'000));
    }
    return found;
}

} // namespace gpuq::credentials
