// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/ccache.h"

#include "credentials/byte_reader.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpuq::credentials {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t k_most_components = 16;
constexpr std::uint32_t k_forwardable = 0x40000000;
constexpr std::uint32_t k_renewable = 0x00800000;

struct Principal {
    std::string realm;
    std::vector<std::string> names;
    bool operator==(const Principal&) const = default;
};

Principal principal(ByteReader& reader)
{
    Principal found;
    reader.take(4); // its type
    const std::uint32_t count = reader.number(4);
    found.realm = reader.counted();
    for (std::uint32_t i = 0; i < std::min(count, k_most_components) && !reader.broken(); ++i) {
        found.names.emplace_back(reader.counted());
    }
    if (count > k_most_components) {
        reader.take(k_largest_cache + 1); // no real principal: marks the reader as broken
    }
    return found;
}

std::string text_of(const Principal& principal)
{
    std::string text;
    for (const std::string& name : principal.names) {
        text += (text.empty() ? "" : "/") + name;
    }
    return sanitised(fmt::format("{}@{}", text, principal.realm));
}

void skip_pairs(ByteReader& reader)
{
    const std::uint32_t count = reader.number(4);
    for (std::uint32_t i = 0; i < count && !reader.broken(); ++i) {
        reader.take(2);
        reader.counted();
    }
}

Time at(std::uint32_t stamp)
{
    return Time{seconds(stamp)};
}

struct Credential {
    Principal client, server;
    Ticket ticket;
};

Credential credential(ByteReader& reader, int version)
{
    Credential found;
    found.client = principal(reader);
    found.server = principal(reader);
    reader.take(version == 3 ? 4 : 2); // the key type, stored twice in format 3
    reader.counted();                  // the key
    const std::uint32_t authenticated = reader.number(4);
    const std::uint32_t start = reader.number(4);
    const std::uint32_t end = reader.number(4);
    const std::uint32_t renew_till = reader.number(4);
    reader.take(1); // is_skey: encrypted in another session key
    const std::uint32_t flags = reader.number(4);
    skip_pairs(reader); // addresses
    skip_pairs(reader); // authorization data
    reader.counted();
    reader.counted();
    found.ticket = {
        text_of(found.client), at(start != 0 ? start : authenticated), at(end),
        std::nullopt,          (flags & k_forwardable) != 0,           at(authenticated)};
    if ((flags & k_renewable) != 0 && renew_till != 0) {
        found.ticket.renew_till = at(renew_till);
    }
    return found;
}

bool grants_tickets(const Credential& found, const Principal& owner)
{
    const Principal granting{owner.realm, {"krbtgt", owner.realm}};
    return found.server == granting && found.client == owner;
}

struct Head {
    int version = 0;
    Principal owner;
};

Result<Head> head(ByteReader& reader, std::string_view cache)
{
    Head found;
    const std::uint32_t magic = reader.number(2);
    if (cache.size() > k_largest_cache || (magic != 0x0503 && magic != 0x0504)) {
        return fail(Error::Kind::usage, "not a credentials cache that gpuq can read");
    }
    found.version = static_cast<int>(magic & 0xffU);
    if (found.version == 4) {
        reader.take(reader.number(2));
    }
    found.owner = principal(reader);
    if (reader.broken() || found.owner.names.empty()) {
        return fail(Error::Kind::usage, "a truncated credentials cache");
    }
    return found;
}

} // namespace

Result<Ticket> ticket_in(std::string_view cache)
{
    ByteReader reader(cache);
    TRY_ASSIGN(const Head found, head(reader, cache));
    std::optional<Ticket> best;
    while (!reader.at_end()) {
        const Credential one = credential(reader, found.version);
        if (reader.broken()) {
            return fail(Error::Kind::usage, "a truncated credentials cache");
        }
        if (grants_tickets(one, found.owner) &&
            (!best || good_until(one.ticket) >= good_until(*best))) {
            best = one.ticket;
        }
    }
    if (!best) {
        return fail(Error::Kind::missing, "a credentials cache without a ticket-granting ticket");
    }
    return *std::move(best);
}

Time good_until(const Ticket& ticket)
{
    return std::max(ticket.end, ticket.renew_till.value_or(ticket.end));
}

bool is_better(const Ticket& one, const Ticket& other, Time now)
{
    if (one.principal != other.principal || one.end <= now) {
        return false;
    }
    if (other.end <= now) {
        return true;
    }
    return std::pair(good_until(one), one.end) > std::pair(good_until(other), other.end);
}

bool takes_over(const Ticket& fresh, const Ticket& current, Time now)
{
    const bool is_at_limit = good_until(current) <= current.end;
    const bool lives_as_long = 4 * fresh.life() >= 3 * current.life();
    return is_better(fresh, current, now) &&
           (is_at_limit || lives_as_long || fresh.end >= current.end);
}

} // namespace gpuq::credentials
