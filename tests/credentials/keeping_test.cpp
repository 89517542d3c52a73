// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/keeping.h"

#include <gtest/gtest.h>

#include <functional>

namespace gpuq::credentials {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr Time k_login{1'700'000'000s};

Ticket ticket(std::chrono::seconds life, std::chrono::seconds renewable)
{
    return {"ada@EXAMPLE.ORG", k_login, k_login + life, k_login + renewable, true};
}

/// Simulates a KDC, a credentials cache and its renewer in steps of 10 ms.
struct Simulation {
    Ticket cache;
    std::chrono::seconds life;
    std::function<bool(Time)> up = [](Time) { return true; };
    std::function<Time(Time)> clock = [](Time true_time) { return true_time; };
    Trouble answer = Trouble::none; ///< result of an attempt when the KDC is up

    double expired = 0, least_left = 1; ///< seconds; fraction of the lifetime
    int attempts = 0, renewals = 0, logins = 0;
    Keeping keeping = {};
    bool has_keytab = false;
    Trouble answer_to_key = Trouble::none;

    void run(std::chrono::seconds length, double jitter)
    {
        std::optional<Time> ends; // end of the attempt in progress
        Source source = Source::renewal;
        bool well = false;
        for (Time now = k_login; now < k_login + length; now += 10ms) {
            const Time shown = clock(now);
            Observed observed{cache, std::nullopt, ends.has_value(), has_keytab};
            const bool by_key = source == Source::keytab;
            if (ends && now >= *ends) {
                ends.reset();
                observed.busy = false;
                const Trouble met = by_key ? answer_to_key : answer;
                observed.attempt = Attempt{well ? met : Trouble::unreachable, "words", source};
                if (well && met == Trouble::none) {
                    cache.renew_till = by_key ? shown + 3 * life : cache.renew_till;
                    cache.start = shown;
                    cache.end = std::min(shown + life, *cache.renew_till);
                    ++(by_key ? logins : renewals);
                    observed.ticket = cache;
                }
            }
            const Step next = step(keeping, observed, shown, jitter);
            keeping = next.keeping;
            if (next.attempt) {
                ++attempts;
                source = *next.attempt;
                well = up(now);
                ends = now + (well ? 20ms : attempt_limit(cache, shown));
            }
            expired += cache.end <= shown ? 0.01 : 0;
            least_left = std::min(least_left, std::chrono::duration<double>(cache.end - shown) /
                                                  std::chrono::duration<double>(life));
        }
    }
};

TEST(Keeping, RenewsBetween40And50PercentOfTheLife)
{
    for (const double jitter : {0.0, 0.3, 1.0}) {
        const Ticket one = ticket(100s, 1000s);
        const Time first = renewed_first(one, jitter);
        EXPECT_GE(first, k_login + 40s);
        EXPECT_LE(first, k_login + 50s);
        EXPECT_FALSE(step({}, {one, {}, false}, first - 1ms, jitter).attempt);
        EXPECT_TRUE(step({}, {one, {}, false}, first, jitter).attempt);
        EXPECT_FALSE(step({}, {one, {}, true}, first, jitter).attempt); // one is in progress
    }
}

TEST(Keeping, ScattersRunsOverTheJitter)
{
    EXPECT_EQ(jitter_of("a"), jitter_of("a"));
    EXPECT_NE(jitter_of("20261120T131158.042Z-0f3a9c1e5b7d2468"),
              jitter_of("20261120T131158.042Z-0f3a9c1e5b7d2469"));
    for (const char* key : {"", "a", "run"}) {
        EXPECT_GE(jitter_of(key), 0.0);
        EXPECT_LT(jitter_of(key), 1.0);
    }
}

TEST(Keeping, HasAlwaysFortyPercentLeftOverTenLives)
{
    Simulation world{ticket(60s, 1200s), 60s};
    world.run(600s, 1.0);
    EXPECT_EQ(world.expired, 0);
    EXPECT_GE(world.least_left, 0.4);
    EXPECT_EQ(world.attempts, world.renewals);
}

TEST(Keeping, OutlivesAKdcThatIsAwayForTwoFifthsOfALifeWhenever)
{
    for (int from = 0; from < 60; from += 3) {
        for (const double jitter : {0.0, 0.5, 1.0}) {
            Simulation world{ticket(60s, 1200s), 60s};
            const Time away = k_login + 60s + std::chrono::seconds(from);
            world.up = [away](Time now) { return now < away || now >= away + 24s; };
            world.run(300s, jitter);
            EXPECT_EQ(world.expired, 0) << from << " " << jitter;
        }
    }
}

TEST(Keeping, TriesAgainInAnEighthOfWhatIsLeft)
{
    const Ticket day = ticket(24h, 24h * 7);
    Keeping keeping = step({}, {day, {}, false}, k_login, 0).keeping;
    const Attempt silence{Trouble::unreachable, "no answer"};
    auto next = step(keeping, {day, silence, false}, k_login + 10h, 0);
    EXPECT_EQ(next.keeping.next, k_login + 10h + 60s);
    EXPECT_EQ(next.keeping.message, "no answer");
    next = step(keeping, {day, silence, false}, day.end - 80s, 0);
    EXPECT_EQ(next.keeping.next, day.end - 70s);
    next = step(keeping, {day, silence, false}, day.end - 2s, 0);
    EXPECT_EQ(next.keeping.next, day.end - 1s);
}

TEST(Keeping, AsksNoMoreWhereOnlyALoginHelps)
{
    for (const Trouble trouble : {Trouble::not_renewable, Trouble::refused, Trouble::gone}) {
        Simulation world{ticket(60s, 1200s), 60s};
        world.answer = trouble;
        world.run(50s, 0);
        EXPECT_EQ(world.attempts, 1) << word(trouble);
        EXPECT_EQ(world.keeping.trouble, trouble);
        const Ticket fresh = ticket(60s, 2400s);
        EXPECT_EQ(step(world.keeping, {fresh, {}, false}, k_login, 0).keeping.trouble,
                  Trouble::none);
    }
}

TEST(Keeping, KnowsATicketThatCanNotBeRenewedBeforeItAsks)
{
    Ticket one = ticket(60s, 1200s);
    one.renew_till.reset();
    const Step next = step({}, {one, {}, false}, k_login + 30s, 0);
    EXPECT_FALSE(next.attempt);
    EXPECT_EQ(next.keeping.trouble, Trouble::not_renewable);
}

TEST(Keeping, StopsAtTheEndOfTheRenewableLife)
{
    Simulation world{ticket(60s, 150s), 60s};
    world.run(149s, 0.5);
    EXPECT_EQ(world.cache.end, k_login + 150s);
    EXPECT_EQ(world.keeping.trouble, Trouble::at_limit);
    EXPECT_EQ(world.expired, 0);
    EXPECT_LE(world.attempts, 4);
    world.run(151s, 0.5);
    EXPECT_EQ(world.keeping.trouble, Trouble::expired);
}

TEST(Keeping, TakesTheNextTicketFromTheKeytabAtTheEndOfTheRenewableLife)
{
    Simulation world{ticket(60s, 150s), 60s};
    world.has_keytab = true;
    world.run(1000s, 0.5);
    EXPECT_EQ(world.expired, 0);
    EXPECT_GE(world.logins, 4);
    EXPECT_GE(world.renewals, 8);
    EXPECT_EQ(world.attempts, world.renewals + world.logins);
    EXPECT_EQ(world.keeping.renewals, world.attempts);
    EXPECT_EQ(world.keeping.reported_trouble(true), Trouble::none);
}

TEST(Keeping, TakesAnotherFromTheKeytabWhereTheKdcRefusesToRenew)
{
    Simulation world{ticket(60s, 1200s), 60s};
    world.has_keytab = true;
    world.answer = Trouble::refused;
    world.run(300s, 0.5);
    EXPECT_EQ(world.expired, 0);
    EXPECT_GE(world.logins, 5);
}

TEST(Keeping, TriesAKeyThatIsRefusedOnce)
{
    for (const Trouble trouble : {Trouble::no_key, Trouble::key_refused, Trouble::refused}) {
        Simulation world{ticket(60s, 60s), 60s};
        world.has_keytab = true;
        world.answer_to_key = trouble;
        world.run(200s, 0.5);
        EXPECT_EQ(world.attempts, 1) << word(trouble);
        EXPECT_EQ(world.keeping.reported_trouble(true), trouble);
        EXPECT_EQ(world.keeping.message, "words");
        EXPECT_EQ(step(world.keeping, {ticket(60s, 2400s), {}, false, true}, k_login, 0)
                      .keeping.reported_trouble(true),
                  Trouble::none)
            << "a login";
    }
}

TEST(Keeping, LooksForAKeytabThatIsNotThereAgainAndAgain)
{
    Simulation world{ticket(60s, 60s), 60s};
    world.has_keytab = true;
    world.answer_to_key = Trouble::no_keytab;
    world.run(50s, 0);
    EXPECT_GE(world.attempts, 3);
    EXPECT_EQ(world.keeping.reported_trouble(true), Trouble::no_keytab);
    world.run(50s, 0);
    world.answer_to_key = Trouble::none;
    world.run(60s, 0);
    EXPECT_EQ(world.logins, 1);
    EXPECT_EQ(world.keeping.reported_trouble(true), Trouble::none);
}

TEST(Keeping, AsksTheKeytabAtOnceWhereThereIsNoTicketAndThenMoreAndMoreSeldom)
{
    Step next = step({}, {std::nullopt, {}, false, true}, k_login, 0);
    EXPECT_EQ(next.attempt, Source::keytab);
    Time now = k_login;
    for (const auto pause : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
        const Attempt silence{Trouble::unreachable, "no answer", Source::keytab};
        next = step(next.keeping, {std::nullopt, silence, false, true}, now, 0);
        EXPECT_FALSE(next.attempt);
        EXPECT_EQ(next.keeping.reported_trouble(true), Trouble::unreachable);
        now += pause - 1ms;
        EXPECT_FALSE(step(next.keeping, {std::nullopt, {}, false, true}, now, 0).attempt);
        now += 1ms;
        next = step(next.keeping, {std::nullopt, {}, false, true}, now, 0);
        EXPECT_EQ(next.attempt, Source::keytab);
    }
}

TEST(Keeping, SaysThatTheCacheIsGone)
{
    const Step next = step({}, {std::nullopt, {}, false}, k_login, 0);
    EXPECT_FALSE(next.attempt);
    EXPECT_EQ(next.keeping.trouble, Trouble::gone);
    EXPECT_FALSE(next.keeping.ticket);
}

TEST(Keeping, SurvivesAClockThatIsSetForward)
{
    Simulation world{ticket(60s, 12000s), 60s};
    world.clock = [](Time now) { return now < k_login + 70s ? now : now + 25s; };
    world.run(300s, 0.5);
    EXPECT_EQ(world.expired, 0);
    EXPECT_EQ(world.keeping.trouble, Trouble::none);
}

TEST(Keeping, SurvivesAClockThatIsSetBack)
{
    const Ticket day = ticket(24h, 24h * 7);
    Keeping keeping = step({}, {day, {}, false}, k_login, 0).keeping;
    keeping =
        step(keeping, {day, Attempt{Trouble::unreachable, ""}, false}, k_login + 12h, 0).keeping;
    // The clock jumps back an hour: the next attempt is not an hour away.
    keeping = step(keeping, {day, {}, false}, k_login + 11h, 0).keeping;
    EXPECT_LE(keeping.next, k_login + 11h + 60s);
    // The ticket seemed to have expired, but has not.
    keeping = step(keeping, {day, {}, false}, day.end + 1s, 0).keeping;
    EXPECT_EQ(keeping.trouble, Trouble::expired);
    const Step again = step(keeping, {day, {}, false}, k_login + 12h, 0);
    EXPECT_NE(again.keeping.trouble, Trouble::expired);
}

TEST(Keeping, GivesAnAttemptFiveSecondsAtMost)
{
    const Ticket day = ticket(24h, 24h * 7);
    EXPECT_EQ(attempt_limit(day, k_login), 5s);
    EXPECT_EQ(attempt_limit(day, day.end - 24s), 3s);
    EXPECT_EQ(attempt_limit(day, day.end + 16s), 2s);
}

TEST(Keeping, UnderstandsKinit)
{
    const std::pair<const char*, Trouble> cases[] = {
        {"kinit: KDC can't fulfill requested option while renewing credentials",
         Trouble::not_renewable},
        {"kinit: Ticket expired while renewing credentials", Trouble::expired},
        {"kinit: Server krbtgt/X@X not found in Kerberos database while renewing credentials",
         Trouble::refused},
        {"kinit: Client's credentials have been revoked while renewing credentials",
         Trouble::refused},
        {"kinit: No credentials cache found (filename: /x) while renewing credentials",
         Trouble::gone},
        {"kinit: Cannot contact any KDC for realm 'X' while renewing credentials",
         Trouble::unreachable},
        {"kinit: Credentials cache I/O operation failed XXX (filename: /x)", Trouble::unreachable},
        {"kinit: something that nobody has met", Trouble::unreachable}};
    for (const auto& [message, trouble] : cases) {
        EXPECT_EQ(trouble_in(message), trouble) << message;
    }
    const std::string getting = " while getting initial credentials";
    const std::pair<const char*, Trouble> logins[] = {
        {"kinit: Key table file '/k' not found", Trouble::no_keytab},
        {"kinit: Permission denied", Trouble::no_keytab},
        {"kinit: Unsupported key table format version number", Trouble::no_keytab},
        {"kinit: Keytab contains no suitable keys for ada@X", Trouble::no_key},
        {"kinit: Password incorrect", Trouble::key_refused},
        {"kinit: Preauthentication failed", Trouble::key_refused},
        {"kinit: Client's credentials have been revoked", Trouble::refused},
        {"kinit: Client's entry in database has expired", Trouble::refused},
        {"kinit: Client 'ada@X' not found in Kerberos database", Trouble::refused},
        {"kinit: Cannot contact any KDC for realm 'X'", Trouble::unreachable}};
    for (const auto& [message, trouble] : logins) {
        EXPECT_EQ(trouble_in(message + getting, Source::keytab), trouble) << message;
    }
}

} // namespace
} // namespace gpuq::credentials
