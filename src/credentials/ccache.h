// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

/// Validity and lifetime of Kerberos credentials. Pure: bytes and times are the input.
namespace gpuq::credentials {

/// The public properties of a ticket-granting ticket: nothing in here is secret.
struct Ticket {
    std::string principal; ///< `ada@EXAMPLE.ORG`, sanitised
    Time start;            ///< start of this ticket; a renewal has a new one
    Time end;
    std::optional<Time> renew_till; ///< end of the renewable life; nullopt: not renewable
    bool forwardable = false;
    Time login; ///< when a password or key was last used for it

    std::chrono::seconds life() const
    {
        return std::chrono::floor<std::chrono::seconds>(end - start);
    }
    bool operator==(const Ticket&) const = default;
};

/// A larger file is not a credential cache.
constexpr std::size_t k_largest_cache = 1 << 20;

/// Parses a FILE cache (format 3 or 4) and returns the ticket-granting ticket of the cache's own
/// realm; if there are several, the one that lasts longest. The bytes are untrusted: nothing is
/// read beyond them. `usage` if they are not such a cache; `missing` if it has no such ticket.
Result<Ticket> ticket_in(std::string_view cache);

/// The time until which the ticket can be kept alive without another login.
Time good_until(const Ticket& ticket);

/// True if `one` is worth more than `other`: it lasts longer with renewals or, if equal, without.
/// An expired ticket is worth nothing. A ticket of another principal is never better.
bool is_better(const Ticket& one, const Ticket& other, Time now);

/// True if `fresh`, a login's ticket that was just renewed, should replace `current`. A ticket
/// delegated by ssh lives only as long as the laptop's had left, and so does each renewal of it
/// (RFC 4120, 3.3.3): it may be renewable for longer, yet leave the run minutes where it now has
/// hours. It is accepted if it does not end sooner, lives at least 3/4 as long, or `current` cannot
/// be renewed any more.
bool takes_over(const Ticket& fresh, const Ticket& current, Time now);

} // namespace gpuq::credentials
