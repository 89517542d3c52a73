// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/keeping.h"

#include "core/fnv.h"

#include <algorithm>
#include <utility>

namespace gpuq::credentials {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr double k_earliest = 0.4;
constexpr double k_latest = 0.5;
constexpr microseconds k_shortest_retry = 1s;
constexpr microseconds k_longest_retry = 60s;
/// KDCs count in whole seconds: a ticket that ends within a second of the limit has reached it.
constexpr microseconds k_at_limit = 1s;

constexpr std::pair<Trouble, std::string_view> k_keywords[] = {
    {Trouble::none, "none"},
    {Trouble::unreachable, "unreachable"},
    {Trouble::not_renewable, "not_renewable"},
    {Trouble::at_limit, "at_limit"},
    {Trouble::refused, "refused"},
    {Trouble::expired, "expired"},
    {Trouble::gone, "gone"},
    {Trouble::no_keytab, "no_keytab"},
    {Trouble::no_key, "no_key"},
    {Trouble::key_refused, "key_refused"}};

/// Messages of MIT and Heimdal. Anything not listed is retried: the next answer may differ.
constexpr std::pair<std::string_view, Trouble> k_meanings[] = {
    {"requested option", Trouble::not_renewable},
    {"non-renewable", Trouble::not_renewable},
    {"icket expired", Trouble::expired},
    {"in database has expired", Trouble::refused},
    {"revoked", Trouble::refused},
    {"locked", Trouble::refused},
    {"not found in Kerberos database", Trouble::refused},
    {"I/O operation failed", Trouble::unreachable}, // a full disk
    {"Credentials cache", Trouble::gone},
    {"credentials cache", Trouble::gone},
    {"Matching credential not found", Trouble::gone}};

/// For logins with a keytab, checked first.
constexpr std::pair<std::string_view, Trouble> k_meanings_of_keytabs[] = {
    {"no suitable keys", Trouble::no_key},
    {"Key table entry not found", Trouble::no_key},
    {"failed to find", Trouble::no_key}, // Heimdal, for a principal in a keytab
    {"Preauthentication failed", Trouble::key_refused},
    {"Decrypt integrity check failed", Trouble::key_refused},
    {"assword incorrect", Trouble::key_refused},
    {"Permission denied", Trouble::no_keytab},
    {"not found while getting initial credentials", Trouble::no_keytab},
    {"No such file or directory", Trouble::no_keytab},
    {"Is a directory", Trouble::no_keytab},
    {"Unsupported key table format", Trouble::no_keytab},
    {"Bad format in keytab", Trouble::no_keytab}};

microseconds retry_pause(microseconds left)
{
    return std::clamp<microseconds>(left / 8, k_shortest_retry, k_longest_retry);
}

/// True if a renewal now would not end later.
bool has_reached_its_limit(const Ticket& ticket)
{
    return ticket.renew_till && ticket.end + k_at_limit > *ticket.renew_till;
}

void fail_with(Keeping& keeping, Trouble trouble, const std::string& message)
{
    keeping.trouble = trouble;
    keeping.message = message;
}

/// The plan for a new ticket.
Keeping planned_for(Keeping keeping, const Ticket& ticket, double jitter)
{
    keeping.ticket = ticket;
    keeping.next = renewed_first(ticket, jitter);
    keeping.failures = 0;
    keeping.keytab = Trouble::none;
    fail_with(keeping, Trouble::none, "");
    if (!ticket.renew_till) {
        fail_with(keeping, Trouble::not_renewable, "");
    } else if (has_reached_its_limit(ticket)) {
        fail_with(keeping, Trouble::at_limit, "");
    }
    return keeping;
}

void take_attempt(Keeping& keeping, const Attempt& attempt, Time now)
{
    if (attempt.trouble == Trouble::none) {
        // The cache is unchanged: nothing was gained, but the next renewal may succeed.
        fail_with(keeping, Trouble::unreachable, "the renewed ticket expires no later");
    } else {
        fail_with(keeping, attempt.trouble, attempt.message);
    }
    ++keeping.failures;
    keeping.next = now + retry_pause(keeping.ticket->end - now);
}

/// Without a ticket, the delay depends on the number of failures.
microseconds login_pause(const Keeping& keeping, Time now)
{
    const microseconds left = keeping.ticket ? keeping.ticket->end - now : microseconds(0);
    return left.count() > 0
               ? retry_pause(left)
               : std::min<microseconds>(k_shortest_retry * (1 << std::min(keeping.failures, 6)),
                                        k_longest_retry);
}

/// A login with the keytab that changed nothing.
void take_login(Keeping& keeping, const Attempt& attempt, Time now)
{
    const bool is_well = attempt.trouble == Trouble::none;
    keeping.keytab = is_well ? Trouble::unreachable : attempt.trouble;
    keeping.message = is_well ? "the new ticket expires no later" : attempt.message;
    keeping.next = now + login_pause(keeping, now);
    ++keeping.failures;
}

/// Repeating such a login might lock the account.
bool is_final(Trouble keytab)
{
    return is_permanent(keytab) && keytab != Trouble::no_keytab;
}

/// A renewal gains nothing: use the keytab if there is one.
Step login_step(Keeping keeping, const Observed& observed, Time now)
{
    if (!observed.has_keytab || is_final(keeping.keytab)) {
        return {std::move(keeping), std::nullopt};
    }
    if (keeping.keytab != Trouble::none) {
        keeping.next = std::min(keeping.next, now + k_longest_retry); // the clock may be set back
    }
    const bool due = !observed.busy && now >= keeping.next;
    return {std::move(keeping), due ? std::optional(Source::keytab) : std::nullopt};
}

} // namespace

bool is_permanent(Trouble trouble)
{
    return trouble != Trouble::none && trouble != Trouble::unreachable;
}

bool is_of_keytab(Trouble trouble)
{
    return trouble == Trouble::no_keytab || trouble == Trouble::no_key ||
           trouble == Trouble::key_refused;
}

std::string describe(Trouble trouble, const std::string& message)
{
    switch (trouble) {
    case Trouble::none:
    case Trouble::unreachable:
        return message;
    case Trouble::not_renewable:
        return "it is not renewable";
    case Trouble::at_limit:
        return "its renewable lifetime ends";
    case Trouble::refused:
        return "refused: " + message;
    case Trouble::expired:
        return "it has expired";
    case Trouble::gone:
        return "its cache was deleted";
    case Trouble::no_keytab:
        return "the node can't read the keytab: " + message;
    case Trouble::no_key:
        return "the keytab has no key for its owner: " + message;
    case Trouble::key_refused:
        return "the KDC no longer accepts the keytab's key, as after a password change: " + message;
    }
    return "";
}

Trouble Keeping::reported_trouble(bool has_keytab) const
{
    if (!has_keytab || !is_permanent(trouble)) {
        return trouble;
    }
    return keytab;
}

std::string_view word(Trouble trouble)
{
    const auto* const found = std::find_if(std::begin(k_keywords), std::end(k_keywords),
                                           [&](const auto& row) { return row.first == trouble; });
    return found->second;
}

Trouble trouble_in(std::string_view message, Source source)
{
    for (const auto& [part, meaning] : k_meanings_of_keytabs) {
        if (source == Source::keytab && message.find(part) != std::string_view::npos) {
            return meaning;
        }
    }
    for (const auto& [part, meaning] : k_meanings) {
        if (message.find(part) != std::string_view::npos) {
            return meaning;
        }
    }
    return Trouble::unreachable;
}

Time renewed_first(const Ticket& ticket, double jitter)
{
    const double part = k_earliest + (k_latest - k_earliest) * std::clamp(jitter, 0.0, 1.0);
    const auto life = std::chrono::duration_cast<microseconds>(ticket.end - ticket.start);
    return ticket.start +
           microseconds(static_cast<std::int64_t>(part * static_cast<double>(life.count())));
}

double jitter_of(std::string_view key)
{
    return static_cast<double>(fnv1a(key) >> 11U) / static_cast<double>(1ULL << 53U);
}

std::chrono::milliseconds attempt_limit(const Ticket& ticket, Time now)
{
    constexpr std::chrono::milliseconds k_shortest = 2s; // a busy node needs one to start kinit
    constexpr std::chrono::milliseconds k_longest = 5s;
    const auto left = std::chrono::floor<std::chrono::milliseconds>(ticket.end - now);
    return std::clamp(left / 8, k_shortest, k_longest);
}

Step step(Keeping keeping, const Observed& observed, Time now, double jitter)
{
    const bool is_new = keeping.ticket != observed.ticket;
    if (is_new && observed.ticket) {
        const bool renewed = observed.attempt && observed.attempt->trouble == Trouble::none;
        keeping = planned_for(std::move(keeping), *observed.ticket, jitter);
        keeping.renewals += renewed ? 1 : 0;
    } else if (is_new) {
        keeping = {std::nullopt, now, Trouble::none, "", keeping.renewals};
    } else if (observed.attempt && observed.attempt->source == Source::keytab) {
        take_login(keeping, *observed.attempt, now);
    } else if (observed.attempt && observed.ticket) {
        take_attempt(keeping, *observed.attempt, now);
    }
    if (!observed.ticket || observed.ticket->end <= now) {
        // An expired ticket cannot be renewed: only a login helps.
        keeping.trouble = observed.ticket ? Trouble::expired : Trouble::gone;
        return login_step(std::move(keeping), observed, now);
    }
    if (keeping.trouble == Trouble::expired) {
        keeping.trouble = Trouble::unreachable; // the clock was set back
    }
    if (is_permanent(keeping.trouble)) {
        return login_step(std::move(keeping), observed, now);
    }
    if (keeping.trouble == Trouble::unreachable) {
        keeping.next = std::min(keeping.next, now + retry_pause(observed.ticket->end - now));
    }
    const bool due = !observed.busy && now >= keeping.next;
    return {std::move(keeping), due ? std::optional(Source::renewal) : std::nullopt};
}

} // namespace gpuq::credentials
