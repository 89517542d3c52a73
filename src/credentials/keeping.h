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
    unreachable,   ///< no KDC has answered, or something else that passes: it is tried again
    not_renewable, ///< the ticket, or its owner's entry at the KDC, does not allow it
    at_limit,      ///< a renewal would give nothing more: its renewable life ends
    refused,       ///< the KDC no longer knows its owner or takes no part in it
    expired,       ///< too late
    gone,          ///< there is no cache, or none that can be read
    no_keytab,     ///< the keytab is not there, or can't be read: the next try may find it
    no_key,        ///< the keytab has no key of the ticket's owner
    key_refused,   ///< the KDC takes the keytab's key no more, as after a new password
};

/// Nothing but other credentials helps.
bool is_permanent(Trouble trouble);
/// Of the keytab, which then gives no ticket.
bool is_of_keytab(Trouble trouble);
/// For people: `it is not renewable`; `said`, by kinit or of something else, where that is all.
std::string in_words(Trouble trouble, const std::string& said);
/// The word for it in JSON: `unreachable`, `not_renewable`, ...
std::string_view word(Trouble trouble);

/// Where a new ticket comes from without its owner.
enum class Source {
    renewal, ///< `kinit -R`
    keytab,  ///< `kinit -k`: a login with the owner's own key
};

/// What kinit meant by its words (LC_ALL=C); never `none`.
Trouble trouble_in(std::string_view words, Source source = Source::renewal);

/// A try that has come to its end: the cache, which is looked at, tells of a success.
struct Attempt {
    Trouble trouble = Trouble::none;
    std::string words; ///< the KDC's or kinit's; for people
    Source source = Source::renewal;
};

/// One ticket's keeping. Plain data; `step` makes the next of it.
struct Keeping {
    std::optional<Ticket> ticket; ///< that the plan is made for
    Time next;                    ///< when it is to be renewed, or tried again
    Trouble trouble = Trouble::none;
    std::string words;              ///< of the last failure, until a renewal succeeds
    int renewals = 0;               ///< tickets out of the keytab among them
    int failures = 0;               ///< since the last success
    Trouble keytab = Trouble::none; ///< why it gave no ticket when it was last asked

    /// What is wrong for whoever has a keytab, or not: a ticket that can't be renewed is nothing
    /// wrong where a keytab gives the next one.
    Trouble told(bool has_keytab) const;
};

struct Seen {
    std::optional<Ticket> ticket;   ///< in the cache now; nothing: none that could be read
    std::optional<Attempt> attempt; ///< when one has ended since the last step
    bool busy = false;              ///< one is being made
    bool has_keytab = false;
};

struct Step {
    Keeping keeping;
    std::optional<Source> attempt; ///< begin one now
};

/// The next step. Times are of the wall clock, whose steps are survived: everything is counted from
/// the ticket's own times, and a retry is never further away than it would be from `now`.
/// A ticket is renewed first between 40 and 50 % of its life, `jitter` (0 to 1) says where; after a
/// failure that may pass again in an eighth of what is left, 1 s at least and 60 s at most.
/// Where only a login helps, a keytab is asked: when a renewal would be due, at once for a ticket
/// that is lost, refused or has expired. A key that the KDC has refused is not tried again, for it
/// might lock its owner out: only another ticket in the cache begins anew.
Step step(Keeping keeping, const Seen& seen, Time now, double jitter);

/// When a ticket is to be renewed for the first time.
Time renewed_first(const Ticket& ticket, double jitter);

/// How long an attempt may take: a KDC that takes a request and never answers holds kinit up for
/// half a minute.
std::chrono::milliseconds attempt_limit(const Ticket& ticket, Time now);

/// The same for all links of a run, and another for each run: 0 to 1.
double jitter_of(std::string_view key);

} // namespace gpuq::credentials
