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
};

/// Nothing but other credentials helps.
bool is_permanent(Trouble trouble);
/// The word for it in JSON: `unreachable`, `not_renewable`, ...
std::string_view word(Trouble trouble);

/// What `kinit -R` meant by its words (LC_ALL=C); never `none`.
Trouble trouble_in(std::string_view words);

/// A try to renew that has come to its end: the cache, which is looked at, tells of a success.
struct Attempt {
    Trouble trouble = Trouble::none;
    std::string words; ///< the KDC's or kinit's; for people
};

/// One ticket's keeping. Plain data; `step` makes the next of it.
struct Keeping {
    std::optional<Ticket> ticket; ///< that the plan is made for
    Time next;                    ///< when it is to be renewed, or tried again
    Trouble trouble = Trouble::none;
    std::string words; ///< of the last failure, until a renewal succeeds
    int renewals = 0;
    int failures = 0; ///< since the last success
};

struct Seen {
    std::optional<Ticket> ticket;   ///< in the cache now; nothing: none that could be read
    std::optional<Attempt> attempt; ///< when one has ended since the last step
    bool busy = false;              ///< one is being made
};

struct Step {
    Keeping keeping;
    bool renew = false; ///< begin an attempt now
};

/// The next step. Times are of the wall clock, whose steps are survived: everything is counted from
/// the ticket's own times, and a retry is never further away than it would be from `now`.
/// A ticket is renewed first between 40 and 50 % of its life, `jitter` (0 to 1) says where; after a
/// failure that may pass again in an eighth of what is left, 1 s at least and 60 s at most.
Step step(Keeping keeping, const Seen& seen, Time now, double jitter);

/// When a ticket is to be renewed for the first time.
Time renewed_first(const Ticket& ticket, double jitter);

/// How long an attempt may take: a KDC that takes a request and never answers holds kinit up for
/// half a minute.
std::chrono::milliseconds attempt_limit(const Ticket& ticket, Time now);

/// The same for all links of a run, and another for each run: 0 to 1.
double jitter_of(std::string_view key);

} // namespace gpuq::credentials
