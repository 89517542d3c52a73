// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/forecast.h"

#include <gtest/gtest.h>

namespace gpuq::credentials {
namespace {

using namespace std::chrono_literals;

constexpr Time k_now{1'700'000'000s};

Ticket ticket(std::chrono::hours end, std::optional<std::chrono::hours> renew_till)
{
    Ticket one{"ada@X", k_now, k_now + end, {}, true};
    if (renew_till) {
        one.renew_till = k_now + *renew_till;
    }
    return one;
}

std::string hours(Time time)
{
    return std::to_string((time - k_now) / 1h) + "h";
}

TEST(Forecast, LetsALinkBeginThatTheTicketLasts)
{
    Ticket one = ticket(10h, 100h);
    one.login = k_now - 200h;
    EXPECT_TRUE(may_begin(one, 100h, k_now));
    EXPECT_FALSE(may_begin(one, 101h, k_now));
    EXPECT_FALSE(may_begin(one, 1h, k_now + 11h)); // expired: too late to renew it
}

TEST(Forecast, LetsALinkBeginAfterALoginThatCanGiveNoMore)
{
    Ticket one = ticket(10h, std::nullopt);
    one.login = k_now;
    EXPECT_TRUE(may_begin(one, 48h, k_now + 1h));
    EXPECT_TRUE(may_begin(one, 48h, k_now + 5h));
    EXPECT_FALSE(may_begin(one, 48h, k_now + 6h));
}

TEST(Forecast, SaysNothingOfATicketThatLasts)
{
    EXPECT_FALSE(forecast(ticket(25h, 120h), {k_now + 100h, k_now + 2h, 1, 2h}));
    EXPECT_FALSE(forecast(ticket(25h, std::nullopt), {k_now + 20h, k_now + 20h, 1, 0s}));
}

TEST(Forecast, NamesTheFirstLinkThatWaits)
{
    // The links end at 2, 12, 22 and 32 h; the ticket lasts through the third.
    const Need need{k_now + 100h, k_now + 2h, 1, 10h};
    const auto found = forecast(ticket(8h, 25h), need);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->waiting_link, 4);
    EXPECT_EQ(describe(*found, need, hours),
              "the ticket is renewable until 25h, the run needs it until 100h: log in once before "
              "25h, or link 4 waits");
}

TEST(Forecast, NamesTheNextLinkWhereEvenThisOneIsTooLong)
{
    EXPECT_EQ(forecast(ticket(1h, std::nullopt), {k_now + 9h, k_now + 2h, 3, 2h})->waiting_link, 4);
}

TEST(Forecast, NamesNoLinkOfARunThatHasOne)
{
    const Need need{k_now + 48h, k_now + 48h, 1, 0s};
    const auto found = forecast(ticket(8h, std::nullopt), need);
    ASSERT_TRUE(found);
    EXPECT_EQ(describe(*found, need, hours),
              "the ticket is good until 8h, the run needs it until 48h: log in once before 8h");
}

} // namespace
} // namespace gpuq::credentials
