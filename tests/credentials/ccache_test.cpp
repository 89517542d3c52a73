// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/ccache.h"

#include "credentials/cache_bytes.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuq::credentials {
namespace {

using namespace std::chrono_literals;

constexpr Time k_start{1'700'000'000s};

TEST(Ccache, TellsOfATicketWhatMayBeTold)
{
    const auto ticket = ticket_in(cache_of({.start = 100, .end = 160, .renew_till = 1300}));
    ASSERT_TRUE(ticket) << ticket.error().text;
    EXPECT_EQ(*ticket,
              (Ticket{"ada@EXAMPLE.ORG", Time{100s}, Time{160s}, Time{1300s}, true, Time{100s}}));
    EXPECT_EQ(ticket->life(), 60s);
}

TEST(Ccache, ReadsTheFormatBefore)
{
    CacheBytes bytes;
    bytes.version = 3;
    EXPECT_EQ(ticket_in(cache_of(bytes))->principal, "ada@EXAMPLE.ORG");
}

TEST(Ccache, IsNotRenewableWithoutTheFlagWhateverTheTimeSays)
{
    CacheBytes bytes;
    bytes.flags = 0x40000000;
    EXPECT_EQ(ticket_in(cache_of(bytes))->renew_till, std::nullopt);
}

TEST(Ccache, CountsFromTheLoginWhereNoStartIsTold)
{
    CacheBytes bytes;
    bytes.start = 0;
    bytes.authenticated = 90;
    EXPECT_EQ(ticket_in(cache_of(bytes))->start, Time{90s});
}

TEST(Ccache, PassesOverTicketsOfServices)
{
    const std::string bytes =
        cache_of({}) + credential_of({.server = {"host", "node"}, .end = 9'999'999});
    EXPECT_EQ(ticket_in(bytes)->end, Time{160s});
    const auto none = ticket_in(cache_of({.server = {"host", "node"}}));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, Error::Kind::missing);
}

TEST(Ccache, ReadsNothingOfACacheThatBreaksOffAnywhere)
{
    const std::string whole = cache_of({});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(ticket_in(whole.substr(0, size))) << size;
    }
}

TEST(Ccache, SurvivesLengthsThatLie)
{
    const std::string whole = cache_of({});
    for (std::size_t place = 0; place + 4 <= whole.size(); ++place) {
        std::string bytes = whole;
        bytes.replace(place, 4, "\xff\xff\xff\xff");
        (void)ticket_in(bytes);
    }
    EXPECT_FALSE(ticket_in(""));
    EXPECT_FALSE(ticket_in("\x05\x01 old"));
    EXPECT_FALSE(ticket_in(whole + std::string(k_largest_cache, '\0')));
}

TEST(Ccache, ShowsNoControlCharactersOfAPrincipal)
{
    CacheBytes bytes;
    bytes.realm = "EX\x1b[2JAMPLE";
    bytes.server = {"krbtgt", bytes.realm};
    const auto ticket = ticket_in(cache_of(bytes));
    ASSERT_TRUE(ticket);
    EXPECT_EQ(ticket->principal.find('\x1b'), std::string::npos);
}

TEST(Ccache, KnowsTheBetterOfTwo)
{
    const Ticket now{"ada@X", k_start, k_start + 1h, k_start + 10h, true};
    Ticket longer = now;
    longer.renew_till = k_start + 20h;
    longer.end = k_start + 30min;
    EXPECT_TRUE(is_better(longer, now, k_start));
    EXPECT_FALSE(is_better(now, longer, k_start));
    EXPECT_FALSE(is_better(now, now, k_start));

    Ticket renewed = now;
    renewed.end = k_start + 2h;
    EXPECT_TRUE(is_better(renewed, now, k_start));
    EXPECT_TRUE(is_better(renewed, longer, k_start + 40min)); // `longer` has expired
    EXPECT_FALSE(is_better(renewed, now, k_start + 3h));

    Ticket others = longer;
    others.principal = "ben@X";
    EXPECT_FALSE(is_better(others, now, k_start));
}

TEST(Ccache, ATicketOfMinutesDoesNotTakeThePlaceOfOneOfHours)
{
    const Ticket current{"ada@X", k_start, k_start + 10h, k_start + 100h, true};
    const auto fresh = [](std::chrono::seconds life) {
        return Ticket{"ada@X", k_start + 1h, k_start + 1h + life, k_start + 120h, true};
    };
    EXPECT_FALSE(takes_over(fresh(10min), current, k_start + 1h));
    EXPECT_FALSE(takes_over(fresh(7h), current, k_start + 1h));
    EXPECT_TRUE(takes_over(fresh(8h), current, k_start + 1h)); // nearly as long
    EXPECT_TRUE(takes_over(fresh(9h), current, k_start + 1h)); // ends at the same time

    Ticket at_limit = current;
    at_limit.renew_till = at_limit.end;
    EXPECT_TRUE(takes_over(fresh(10min), at_limit, k_start + 1h));
    at_limit.renew_till.reset();
    EXPECT_TRUE(takes_over(fresh(10min), at_limit, k_start + 1h));

    Ticket worse = fresh(10h);
    worse.renew_till = k_start + 50h;
    EXPECT_FALSE(takes_over(worse, current, k_start + 1h));
}

} // namespace
} // namespace gpuq::credentials
