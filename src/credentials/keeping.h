// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "credentials/ccache.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::credentials {

/// Why a ticket is not renewed.
enum class Trouble {
    none,
    unreachable,   ///< no KDC answered, or another temporary failure: retried
    not_renewable, ///< the ticket, or its principal's entry at the KDC, does not allow it
    at_limit,      ///< a renewal would gain nothing: the renewable life ends
    refused,       ///< the KDC no longer knows or accepts the principal
    expired,       ///< too late
    gone,          ///< the cache does not exist or cannot be read
    no_keytab,     ///< the keytab does not exist or cannot be read; the next attempt may find it
    no_key,        ///< the keytab has no key for the ticket's principal
    key_refused,   ///< the KDC rejects the keytab's key, for example after a password change
};

/// True if only other credentials help.
bool is_permanent(Trouble trouble);
/// True if the keytab is the cause, so that no ticket can come from it.
bool is_of_keytab(Trouble trouble);
/// A message for users: `it is not renewable`. `message` is the message of kinit or of another
/// source; it is all there is for a temporary failure.
std::string describe(Trouble trouble, const std::string& message);
/// The name used in JSON: `unreachable`, `not_renewable`, ...
std::string_view word(Trouble trouble);

/// How to get a new ticket without the user.
enum class Source {
    renewal, ///< `kinit -R`
    keytab,  ///< `kinit -k`: a login with the user's own key
};

/// Classifies an error message of kinit (LC_ALL=C); never `none`.
Trouble trouble_in(std::string_view message, Source source = Source::renewal);

/// A finished attempt. Success shows in the cache, which is read again.
struct Attempt {
    Trouble trouble = Trouble::none;
    std::string message; ///< message of the KDC or of kinit, for users
    Source source = Source::renewal;
};

/// The renewal state of one ticket. Plain data; `step` computes the next state.
struct Keeping {
    std::optional<Ticket> ticket; ///< the ticket that the plan is for
    Time next;                    ///< time of the next renewal or retry
    Trouble trouble = Trouble::none;
    std::string message;            ///< of the last failure, until a renewal succeeds
    int renewals = 0;               ///< including tickets from the keytab
    int failures = 0;               ///< since the last success
    Trouble keytab = Trouble::none; ///< why the last attempt with the keytab gave no ticket

    /// The problem to report. A ticket that cannot be renewed is no problem as long as a keytab
    /// provides the next one.
    Trouble reported_trouble(bool has_keytab) const;
};

struct Observed {
    std::optional<Ticket> ticket;   ///< the ticket in the cache; nullopt: none readable
    std::optional<Attempt> attempt; ///< an attempt that ended since the last step
    bool busy = false;              ///< an attempt is in progress
    bool has_keytab = false;
};

struct Step {
    Keeping keeping;
    std::optional<Source> attempt; ///< start this attempt now
};

/// Computes the next step. Times are wall-clock times, and clock jumps are tolerated: everything is
/// computed from the ticket's own times, and a retry is never scheduled later than it would be from
/// `now`.
///
/// A ticket is first renewed between 40 and 50 % of its life; `jitter` (0 to 1) selects the point.
/// After a temporary failure the next attempt follows after an eighth of the remaining life, but at
/// least 1 s and at most 60 s.
///
/// If only a login helps, the keytab is used: when a renewal would be due, at once if the ticket is
/// lost or has expired, and after the retry delay if the KDC refused a renewal. A login that the
/// KDC rejected for good is not repeated, because that might lock the account; only another ticket
/// in the cache resets this.
Step step(Keeping keeping, const Observed& observed, Time now, double jitter);

/// When a ticket should be renewed for the first time.
Time renewed_first(const Ticket& ticket, double jitter);

/// Time limit of an attempt. A KDC that accepts a request and never answers blocks kinit for half a
/// minute.
std::chrono::milliseconds attempt_limit(const Ticket& ticket, Time now);

/// A number from 0 to 1, the same for all links of a run and different for each run.
double jitter_of(std::string_view key);

} // namespace gpuq::credentials
