// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

/// What Kerberos' credentials are worth, and how long. Bytes and times come in, values go out.
namespace gpuq::credentials {

/// A ticket-granting ticket as far as it may be told to anybody: nothing in here is secret.
struct Ticket {
    std::string principal; ///< `ada@EXAMPLE.ORG`, sanitised
    Time start;            ///< of this ticket; a renewal begins a new one
    Time end;
    std::optional<Time> renew_till; ///< renewable until then; nothing: not at all
    bool forwardable = false;
    Time login; ///< when a password or a key was last given for it

    std::chrono::seconds life() const
    {
        return std::chrono::floor<std::chrono::seconds>(end - start);
    }
    bool operator==(const Ticket&) const = default;
};

/// A file larger than this is no credentials cache.
constexpr std::size_t k_largest_cache = 1 << 20;

/// The ticket-granting ticket of the cache's own realm, out of the bytes of a FILE cache (format 3
/// or 4); of several the one that is good longest. The bytes may be anybody's: nothing is read
/// beyond them. `usage`: they are no such cache; `missing`: it has no such ticket.
Result<Ticket> ticket_in(std::string_view cache);

/// The cache's principal, whether it has a ticket or not; as for a ticket's.
Result<std::string> principal_in(std::string_view cache);

/// Until when it can be kept alive without its owner.
Time good_until(const Ticket& ticket);

/// That `one` is worth more than `other`: good for longer with renewals, then without. A ticket
/// that has expired is worth nothing. Of other principals none is better.
bool is_better(const Ticket& one, const Ticket& other, Time now);

/// That a login's ticket, renewed just now, is to take the place of `current`. One that ssh
/// delegates lives as long as the laptop's had left, at each renewal again (RFC 4120, 3.3.3): it is
/// better in the end, and yet would leave the run minutes where it has hours. Taken where it ends
/// no sooner, lives nearly as long, or `current` can't be renewed any more.
bool takes_over(const Ticket& fresh, const Ticket& current, Time now);

} // namespace gpuq::credentials
