// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/credentials.h"

#include "credentials/cache_bytes.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_credentials.h"
#include "fakes/memory_store.h"
#include "runs/run_on_disk.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using credentials::CacheBytes;
using credentials::Trouble;
using fakes::RunOnDisk;

constexpr Time k_ticket_time{1'700'000'000s};
constexpr std::uint32_t k_stamp = 1'700'000'000;
const std::string k_place = "/secret/";

CacheBytes good_for(std::uint32_t hours, std::uint32_t renewable_hours)
{
    CacheBytes bytes;
    bytes.authenticated = bytes.start = k_stamp;
    bytes.end = k_stamp + 3600 * hours;
    bytes.renew_till = k_stamp + 3600 * renewable_hours;
    return bytes;
}

/// A run with a plan for its ticket and an empty store.
class Credentials : public testing::Test {
protected:
    Credentials()
        : m_run(m_store, fakes::some_run(k_ticket_time, "train", 1))
        , m_directory(k_place + m_run.key().text())
    {
        m_run.submitted(JobId{7});
        plan(WhenShort::hold);
    }
    void plan(WhenShort what)
    {
        m_store.files[credential_plan_json(m_run.key())] =
            to_json(CredentialPlan{"ada@EXAMPLE.ORG", m_directory, what, "", ""});
    }
    void state_of_link(const CacheBytes& bytes)
    {
        CredentialState state;
        state.at = k_ticket_time;
        state.ticket = *credentials::ticket_in(cache_of(bytes));
        m_store.files[credential_state_json(m_run.key(), LinkNumber{1})] = to_json(state);
    }
    std::size_t delivered(const CacheBytes& login)
    {
        return deliver(m_store, m_files, cache_of(login), {m_run.key()}, k_ticket_time).size();
    }

    fakes::MemoryStore m_store;
    fakes::FakeSecretFiles m_files;
    RunOnDisk m_run;
    std::string m_directory;
};

TEST_F(Credentials, RecordsComeBackAsTheyWere)
{
    const CredentialPlan plan{"ada@X", "/secret/key", WhenShort::fail, "/usr/bin/aklog", "/k"};
    EXPECT_EQ(*credential_plan_from_json(to_json(plan)), plan);
    CredentialState state;
    state.at = k_ticket_time;
    state.ticket = *credentials::ticket_in(cache_of(good_for(10, 100)));
    state.next = k_ticket_time + 4h;
    state.trouble = Trouble::unreachable;
    state.message = "no answer";
    state.renewals = 3;
    state.has_afs = true;
    state.token = credentials::Token{k_ticket_time, k_ticket_time + 1h};
    state.token_got = k_ticket_time + 1s;
    EXPECT_EQ(*credential_state_from_json(to_json(state)), state);
    state.ticket.reset();
    state.next.reset();
    EXPECT_EQ(*credential_state_from_json(to_json(state)), state);
    const Held held{LinkNumber{3}, k_ticket_time};
    EXPECT_EQ(*held_from_json(to_json(held)), held);
}

TEST_F(Credentials, RecordsOfNobodysAreNone)
{
    for (const char* text : {"", "{}", "[]", R"({"schema": 2})", R"({"schema": 1})",
                             R"({"schema": 1, "principal": "ada@X", "folder": "relative"})",
                             R"({"schema": 1, "link": -1, "at": "x"})"}) {
        EXPECT_FALSE(credential_plan_from_json(text)) << text;
        EXPECT_FALSE(credential_state_from_json(text)) << text;
        EXPECT_FALSE(held_from_json(text)) << text;
    }
}

TEST_F(Credentials, GivesARunTheBetterTicket)
{
    state_of_link(good_for(10, 100));
    EXPECT_EQ(delivered(good_for(10, 100)), 0U);
    EXPECT_EQ(delivered(good_for(5, 20)), 0U);
    EXPECT_EQ(delivered(good_for(10, 120)), 1U);
    EXPECT_EQ(m_files.directories[m_directory][k_delivered], cache_of(good_for(10, 120)));
    EXPECT_EQ(delivered(good_for(10, 120)), 0U); // already delivered
    EXPECT_EQ(delivered(good_for(10, 130)), 1U);
}

TEST_F(Credentials, GivesARunThatHasLostItsOwnAnyTicket)
{
    EXPECT_EQ(delivered(good_for(1, 1)), 1U);
}

TEST_F(Credentials, GivesNobodyAnothersTicketOrAnExpiredOne)
{
    CacheBytes bens = good_for(100, 1000);
    bens.owner = {"ben"};
    EXPECT_EQ(delivered(bens), 0U);
    EXPECT_EQ(delivered(good_for(0, 100)), 0U);
    EXPECT_EQ(deliver(m_store, m_files, "no cache", {m_run.key()}, k_ticket_time).size(), 0U);
    m_store.files.erase(credential_plan_json(m_run.key()));
    EXPECT_EQ(delivered(good_for(100, 1000)), 0U);
    EXPECT_TRUE(m_files.directories.empty());
}

TEST_F(Credentials, TakesTheBestOfWhatWaits)
{
    EXPECT_FALSE(stored_ticket(m_files, m_directory, k_ticket_time));
    m_files.directories[m_directory] = {{k_delivered, cache_of(good_for(10, 100))},
                                        {k_renewed, cache_of(good_for(20, 100))}};
    EXPECT_EQ(stored_ticket(m_files, m_directory, k_ticket_time)->ticket.end, k_ticket_time + 20h);
    m_files.directories[m_directory][k_delivered] = cache_of(good_for(10, 200));
    EXPECT_EQ(stored_ticket(m_files, m_directory, k_ticket_time)->ticket.renew_till,
              k_ticket_time + 200h);
    m_files.directories[m_directory][k_delivered] = "torn";
    EXPECT_EQ(stored_ticket(m_files, m_directory, k_ticket_time)->ticket.end, k_ticket_time + 20h);
}

TEST_F(Credentials, HoldsALinkThatTheTicketDoesNotLast)
{
    const auto what = [&](std::chrono::seconds length, Time now) {
        return short_of_ticket(m_store, m_files, m_run.key(), length, now);
    };
    EXPECT_EQ(what(1h, k_ticket_time), WhenShort::hold); // no ticket at all
    m_files.directories[m_directory][k_renewed] = cache_of(good_for(10, 100));
    EXPECT_EQ(what(100h, k_ticket_time), std::nullopt);
    EXPECT_EQ(what(95h, k_ticket_time + 8h),
              std::nullopt); // more than half of the lifetime is left
    EXPECT_EQ(what(1h, k_ticket_time + 11h), WhenShort::hold);
    m_store.files[credential_plan_json(m_run.key())] = to_json(
        CredentialPlan{"ada@EXAMPLE.ORG", m_directory, WhenShort::hold, "", "/home/ada/key"});
    EXPECT_EQ(what(95h, k_ticket_time + 9h), std::nullopt) << "the keytab gives the next";
    EXPECT_EQ(what(1h, k_ticket_time + 11h), WhenShort::hold) << "it has given none";
    plan(WhenShort::fail);
    EXPECT_EQ(what(1h, k_ticket_time + 11h), WhenShort::fail);
    plan(WhenShort::run);
    EXPECT_EQ(what(1h, k_ticket_time + 11h), std::nullopt);
    m_store.files.erase(credential_plan_json(m_run.key()));
    EXPECT_EQ(what(1h, k_ticket_time + 11h), std::nullopt); // it never had a ticket
}

TEST_F(Credentials, ATokenThatDoesNotTellIsDueTenMinutesAfterItWasGot)
{
    CredentialPlan plan{"", m_directory, WhenShort::hold, "", ""};
    plan.token = true;
    m_store.files[credential_plan_json(m_run.key())] = to_json(plan);
    const auto due = [&](Time now) { return token_due(m_store, m_files, {m_run.key()}, now); };
    EXPECT_EQ(due(k_ticket_time), k_ticket_time) << "there is none";
    m_files.now = k_ticket_time;
    m_files.directories[m_directory];
    ASSERT_TRUE(m_files.write(m_directory, k_token, "opaque"));
    EXPECT_EQ(due(k_ticket_time + 1min), k_ticket_time + 10min);
    EXPECT_EQ(due(k_ticket_time + 20min), k_ticket_time + 10min) << "while it waits, too";
    CredentialState state;
    state.at = k_ticket_time + 19min; // the state was written at that time for another reason
    state.token = credentials::Token{};
    state.token_got = k_ticket_time + 5min;
    m_store.files[credential_state_json(m_run.key(), LinkNumber{1})] = to_json(state);
    EXPECT_EQ(due(k_ticket_time + 20min), k_ticket_time + 15min);
}

TEST_F(Credentials, EmptiesNoFolderButTheRunsOwn)
{
    m_files.directories[m_directory][k_renewed] = "secret";
    m_files.directories["/home/ada"]["thesis"] = "all of it";
    forget_credentials(m_store, m_files, m_run.key());
    EXPECT_EQ(m_files.directories.count(m_directory), 0U);
    m_directory = "/home/ada";
    plan(WhenShort::hold);
    forget_credentials(m_store, m_files, m_run.key());
    EXPECT_EQ(m_files.directories.count("/home/ada"), 1U);
}

} // namespace
} // namespace gpuq
