// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "cli/queries/tickets.h"
#include "cli/render/top_picture.h"
#include "core/layout.h"
#include "credentials/cache_bytes.h"
#include "credentials/keytab_bytes.h"
#include "ports/job.h"
#include "runs/credentials.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;
using testing::HasSubstr;

/// A run `train`, pending as job 7, with a ticket in its store.
class Keepalive : public testing::Test {
protected:
    Keepalive()
        : m_run(m_services.memory, fakes::some_run(m_services.time.now() - 10min, "train", 1))
        , m_directory("/secret/" + m_run.key().text())
    {
        m_run.submitted(JobId{7});
        Job job;
        job.id = JobId{7};
        job.comment = job_comment(m_run.key());
        job.state = JobState::pending;
        job.batch = true;
        m_services.slurm.jobs.push_back(job);
        m_services.memory.files[credential_plan_json(m_run.key())] =
            to_json(CredentialPlan{"ada@EXAMPLE.ORG", m_directory, WhenShort::hold, "", ""});
        m_services.secrets.directories[m_directory][k_delivered] = cache(10min, 20min);
    }
    std::string cache(std::chrono::seconds end, std::chrono::seconds renew_till)
    {
        credentials::CacheBytes bytes;
        const auto now = std::chrono::floor<std::chrono::seconds>(m_services.time.now());
        const auto stamp = static_cast<std::uint32_t>(now.time_since_epoch().count());
        bytes.authenticated = bytes.start = stamp;
        bytes.end = stamp + static_cast<std::uint32_t>(end.count());
        bytes.renew_till = stamp + static_cast<std::uint32_t>(renew_till.count());
        return cache_of(bytes);
    }
    Use keepalive(const std::vector<std::string>& message = {}, const Globals& globals = {})
    {
        return use(k_keepalive_verb, m_services, message, globals);
    }

    FakeServices m_services;
    RunOnDisk m_run;
    std::string m_directory;
};

TEST_F(Keepalive, TellsOfTheTicketsOfActiveRuns)
{
    const Use result = keepalive();
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, HasSubstr("ada@EXAMPLE.ORG"));
    EXPECT_THAT(result.out, HasSubstr("fetched when it starts"));
    EXPECT_THAT(result.err, HasSubstr("run 7 (train): the ticket is renewable until"));
    EXPECT_THAT(use(k_show_verb, m_services, {"train"}, {}).out, HasSubstr("log in once before"));
}

TEST_F(Keepalive, ListsSayWhatDoesNotLast)
{
    const Use listed = use(k_ls_verb, m_services, {}, {});
    EXPECT_THAT(listed.err, HasSubstr("run 7 (train): the ticket is renewable until"));
    EXPECT_THAT(listed.out, testing::Not(HasSubstr("renewable")));
    Globals globals;
    globals.json = true;
    EXPECT_THAT(use(k_ls_verb, m_services, {}, globals).out,
                HasSubstr("\"code\": \"ticket_short\""));
    globals.json = false;
    globals.quiet = true;
    EXPECT_EQ(use(k_ls_verb, m_services, {}, globals).err, "");

    m_services.secrets.directories[m_directory][k_delivered] = cache(10min, 200h);
    EXPECT_EQ(use(k_ls_verb, m_services, {}, {}).err, "");
    m_services.secrets.directories[m_directory][k_delivered] = cache(10min, 20min);
    m_services.time.advance(11min);
    EXPECT_THAT(use(k_ls_verb, m_services, {}, {}).err,
                HasSubstr("run 7 (train): the ticket has expired: kinit, then any gpuq command"));
}

TEST_F(Keepalive, TopTellsOfTheTicketOfTheRunItShows)
{
    TopCloser closer{RunStatus{m_run.key()}, {}, {}, {}, {}, {}};
    closer.run.run = fakes::some_run(m_services.time.now(), "train", 1);
    closer.run.state = RunState::waiting;
    closer.credentials = credential_records(m_services.memory, m_services.secrets, m_run.key(),
                                            LinkNumber{1}, m_services.time.now());
    EXPECT_THAT(top_detail(closer, m_services.time.now()).facts,
                testing::Contains(HasSubstr("ticket: ada@EXAMPLE.ORG, good until")));
    closer.run.state = RunState::ended;
    EXPECT_THAT(top_detail(closer, m_services.time.now()).facts,
                testing::Not(testing::Contains(HasSubstr("ticket"))));
}

TEST_F(Keepalive, SaysInJsonWhatIsNext)
{
    Globals globals;
    globals.json = true;
    const Use result = keepalive({"7"}, globals);
    EXPECT_THAT(result.out, HasSubstr("\"next_action\": \"start\""));
    EXPECT_THAT(result.out, HasSubstr("\"when_short\": \"hold\""));
}

TEST_F(Keepalive, SaysWhereThereIsNone)
{
    m_services.memory.files.erase(credential_plan_json(m_run.key()));
    EXPECT_THAT(keepalive().err, HasSubstr("no active run has a Kerberos ticket"));
    EXPECT_THAT(keepalive({"train"}).err, HasSubstr("run 7 (train) has no Kerberos ticket"));
    EXPECT_EQ(keepalive({"a", "b"}).status, 2);
}

TEST_F(Keepalive, RefreshGivesTheLoginsTicketToActiveRuns)
{
    m_services.login.answer = cache(10min, 600min);
    refresh_tickets(m_services);
    EXPECT_EQ(m_services.secrets.directories[m_directory][k_delivered], *m_services.login.answer);
}

TEST_F(Keepalive, RefreshRenewsNothingBeforeItIsDue)
{
    const auto before = m_services.secrets.directories;
    refresh_tickets(m_services);
    EXPECT_EQ(m_services.secrets.directories, before);
    EXPECT_EQ(m_services.memory.files.count("cache/tickets"), 0U);
    m_services.time.advance(6min); // of a lifetime of ten
    refresh_tickets(m_services);
    EXPECT_EQ(m_services.memory.files.count("cache/tickets"), 1U);
}

/// A token that expired in 2023 (`exp` 1700003600).
constexpr const char* k_expired =
    "eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMDM2MDAsImlhdCI6MTcwMDAwMDAwMH0.x";

TEST_F(Keepalive, ARunTakesTheLoginsTokenAndNobodyFindsItInTheEnvironment)
{
    m_services.variables["BEARER_TOKEN"] = "opaque";
    m_services.login.bearer = std::string(" opaque\n");
    const LoginTicket found = login_ticket(m_services, m_run.key());
    ASSERT_TRUE(found.plan);
    EXPECT_TRUE(found.plan->token);
    EXPECT_EQ(found.plan->principal, "");
    EXPECT_EQ(found.token, "opaque");
    EXPECT_EQ(m_services.variables.count("BEARER_TOKEN"), 0U);
    ASSERT_TRUE(store_ticket(m_services.secrets, found));
    EXPECT_EQ(m_services.secrets.directories[found.plan->directory],
              (std::map<std::string, std::string>{{k_token, "opaque"}}));

    m_services.login.bearer = std::string("two words");
    EXPECT_EQ(login_ticket(m_services, m_run.key()).token_problem,
              "the run gets no bearer token: its content is not a bearer token");
    m_services.login.bearer = std::string(k_expired);
    EXPECT_EQ(login_ticket(m_services, m_run.key()).token_problem,
              "the run gets no bearer token: the login's token has expired");
}

TEST_F(Keepalive, ARunIsToldThatTheLoginsTicketHasExpired)
{
    m_services.login.answer = cache(-1min, 20min);
    const LoginTicket found = login_ticket(m_services, m_run.key());
    EXPECT_FALSE(found.plan);
    EXPECT_EQ(
        found.problem,
        "the run gets no Kerberos ticket: the login's ticket has expired; kinit gets another");
    m_services.login.answer = std::string("no cache");
    EXPECT_EQ(login_ticket(m_services, m_run.key()).problem,
              "the run gets no Kerberos ticket: the login's ticket is not a credentials cache that "
              "gpuq can read");
    m_services.login.answer = fail(Error::Kind::missing, "no cache");
    EXPECT_EQ(login_ticket(m_services, m_run.key()).problem, "");
}

TEST_F(Keepalive, ARunIsToldOfTheTicketAndOfTheToken)
{
    m_services.login.answer = cache(-1min, 20min);
    m_services.set.token_command = {"ask"};
    m_services.machine.ended = {3, ""};
    const LoginTicket found = login_ticket(m_services, m_run.key());
    EXPECT_THAT(found.problem, HasSubstr("has expired"));
    EXPECT_THAT(found.token_problem, HasSubstr("ask exited with 3"));
}

TEST_F(Keepalive, NoCopyOfATicketStaysWhenTheKdcDoesNotAnswer)
{
    m_services.time.advance(6min); // of a lifetime of ten
    m_services.secrets.directories[m_directory]["renewing"] = "a copy";
    m_services.machine.late = {0};
    refresh_tickets(m_services);
    EXPECT_EQ(m_services.secrets.directories[m_directory].count("renewing"), 0U);
}

TEST_F(Keepalive, AVerbThatLooksLeavesTheTokenCommandToAnotherProcess)
{
    CredentialPlan plan{"", m_directory, WhenShort::hold, "", ""};
    plan.token = true;
    m_services.memory.files[credential_plan_json(m_run.key())] = to_json(plan);
    m_services.secrets.directories[m_directory] = {{k_token, k_expired}};
    m_services.set.token_command = {"ask"};
    refresh_tickets(m_services);
    EXPECT_TRUE(m_services.machine.executed.empty());
    EXPECT_EQ(m_services.machine.left,
              (std::vector<std::vector<std::string>>{{"/usr/bin/gpuq", "keepalive", "--stay"}}));
    refresh_tickets(m_services, TokenCommand::here);
    EXPECT_EQ(m_services.machine.executed.size(), 1U);
    refresh_tickets(m_services); // skipped: tried a moment ago
    EXPECT_EQ(m_services.machine.left.size(), 1U);
}

TEST_F(Keepalive, ACommandGivesTokensAsTheyAreDue)
{
    CredentialPlan plan{"", m_directory, WhenShort::hold, "", ""};
    plan.token = true;
    m_services.memory.files[credential_plan_json(m_run.key())] = to_json(plan);
    m_services.secrets.directories[m_directory] = {{k_token, k_expired}};
    m_services.set.token_command = {"ask", "for it"};
    m_services.machine.ended = {0, "fresh\n"};
    refresh_tickets(m_services, TokenCommand::here);
    EXPECT_EQ(m_services.machine.executed,
              (std::vector<std::vector<std::string>>{{"ask", "for it"}}));
    EXPECT_EQ(m_services.secrets.directories[m_directory][k_token], "fresh");
    EXPECT_THAT(keepalive().out, HasSubstr("present"));

    // The command is not run every time, and a failure leaves the current token in place.
    refresh_tickets(m_services, TokenCommand::here);
    EXPECT_EQ(m_services.machine.executed.size(), 1U);
    m_services.time.advance(11min);
    m_services.machine.ended = {1, "no"};
    m_services.secrets.directories[m_directory][k_token] = k_expired;
    refresh_tickets(m_services, TokenCommand::here);
    EXPECT_EQ(m_services.machine.executed.size(), 2U);
    EXPECT_EQ(m_services.secrets.directories[m_directory][k_token], k_expired);

    // The error is shown until an attempt succeeds.
    EXPECT_THAT(keepalive().out, HasSubstr("token_command: ask exited with 1"));
    Globals json;
    json.json = true;
    EXPECT_THAT(
        keepalive({}, json).out,
        HasSubstr(
            "\"token_error\": \"token_command: ask exited with 1; run it by hand to see why\""));
    m_services.time.advance(2min);
    m_services.machine.ended = {0, "fresh\n"};
    refresh_tickets(m_services, TokenCommand::here);
    EXPECT_EQ(m_services.secrets.directories[m_directory][k_token], "fresh");
    EXPECT_THAT(keepalive().out, testing::Not(HasSubstr("ask exits")));
}

TEST_F(Keepalive, ARunThatHasEndedGetsNoToken)
{
    CredentialPlan plan{"", m_directory, WhenShort::hold, "", ""};
    plan.token = true;
    m_services.memory.files[credential_plan_json(m_run.key())] = to_json(plan);
    m_services.secrets.directories.clear();
    m_run.started(JobId{7}, m_services.time.now())
        .ended({0, Cause::finished, "", m_services.time.now()});
    m_services.login.bearer = std::string("opaque");
    refresh_tickets(m_services);
    EXPECT_TRUE(m_services.secrets.directories.empty());
}

TEST_F(Keepalive, AYoungTokenOfTheLoginSavesTheCommand)
{
    m_services.set.token_command = {"ask"};
    m_services.machine.ended = {0, "fresh"};
    m_services.login.bearer = std::string(k_expired);
    EXPECT_EQ(login_ticket(m_services, m_run.key()).token, "fresh");
    EXPECT_EQ(m_services.machine.executed.size(), 1U);
    // The token is valid from 1700000000 to 1700003600. Five minutes of remaining life are enough
    // at submission; the token is renewed later.
    m_services.time.jump(Time(std::chrono::seconds(1700003200)) - m_services.time.now());
    EXPECT_EQ(login_ticket(m_services, m_run.key()).token, k_expired);
    m_services.time.jump(Time(std::chrono::seconds(1700003400)) - m_services.time.now());
    EXPECT_EQ(login_ticket(m_services, m_run.key()).token, "fresh");
    EXPECT_EQ(m_services.machine.executed.size(), 2U);
}

TEST_F(Keepalive, ATokenThatWasFoundIsFoundAgain)
{
    LoginTicket found = login_ticket(m_services, m_run.key(), "opaque");
    EXPECT_EQ(found.token, "opaque");
    forget(found);
    EXPECT_EQ(found.token, "");
    EXPECT_TRUE(found.plan->token);
}

TEST_F(Keepalive, AHeldLinkGoesOnOnItsOwnClusterOnceAndNotAtEveryCommand)
{
    gpuq::Run chain = fakes::some_run(m_services.time.now() - 10min, "chain", 2);
    chain.cluster = m_services.slurm.cluster_name;
    chain.request.chain = Chain{};
    chain.request.chain->link = 2min;
    RunOnDisk run(m_services.memory, chain);
    const std::string directory = "/secret/" + chain.key.text();
    auto& files = m_services.memory.files;
    files[credential_plan_json(chain.key)] =
        to_json(CredentialPlan{"ada@EXAMPLE.ORG", directory, WhenShort::hold, "", ""});
    m_services.secrets.directories[directory][k_delivered] = cache(10min, 20min);
    const LinkNumber second{2};
    files[held_json(chain.key)] = to_json(Held{second, m_services.time.now()});
    files[layout::job_json(chain.key, second)] =
        to_json(LinkJob{chain.cluster, JobId{8}, m_services.time.now(), true});

    m_services.slurm.cluster_name = "another";
    refresh_tickets(m_services);
    EXPECT_TRUE(m_services.slurm.specs.empty());
    EXPECT_EQ(files.count(held_json(chain.key)), 1U);

    m_services.slurm.cluster_name = chain.cluster;
    m_services.slurm.refusal = "not today";
    m_services.time.advance(20s);
    refresh_tickets(m_services);
    const auto requests = m_services.slurm.requests.size();
    refresh_tickets(m_services);
    EXPECT_EQ(m_services.slurm.requests.size(), requests) << "at once again";
    EXPECT_EQ(files.count(held_json(chain.key)), 1U);

    m_services.slurm.refusal.clear();
    m_services.time.advance(20s);
    const auto refused = m_services.slurm.specs.size();
    refresh_tickets(m_services);
    EXPECT_EQ(m_services.slurm.specs.size(), refused + 1);
    EXPECT_EQ(files.count(held_json(chain.key)), 0U);
}

TEST_F(Keepalive, StaysOnlyWhileARunHasCredentials)
{
    m_services.memory.files.erase(credential_plan_json(m_run.key()));
    EXPECT_EQ(keepalive({"--stay"}).status, 0);
    m_services.memory.files[credential_plan_json(m_run.key())] =
        to_json(CredentialPlan{"ada@EXAMPLE.ORG", m_directory, WhenShort::hold, "", ""});
    m_services.machine.held_by_others.insert(refreshes_as(m_services.memory));
    EXPECT_EQ(keepalive({"--stay"}).status, 0);
}

TEST_F(Keepalive, ARunTakesTheLoginsTicketToItsOwnStore)
{
    EXPECT_FALSE(login_ticket(m_services, m_run.key()).plan);
    m_services.login.answer = cache(10min, 600min);
    m_services.set.credentials_dir = "/scratch/tickets";
    const LoginTicket found = login_ticket(m_services, m_run.key());
    ASSERT_TRUE(found.plan);
    EXPECT_EQ(found.plan->directory, "/scratch/tickets/" + m_run.key().text());
    EXPECT_EQ(found.plan->principal, "ada@EXAMPLE.ORG");
    EXPECT_EQ(found.problem, "");

    m_services.login.answer = fail(Error::Kind::io, "KCM: does not answer");
    EXPECT_EQ(login_ticket(m_services, m_run.key()).problem,
              "the run gets no Kerberos ticket: KCM: does not answer");
}

TEST_F(Keepalive, ARunTakesThePathOfAKeytab)
{
    using namespace credentials;
    gpuq::Run run = fakes::some_run(m_services.time.now(), "train", 3);
    run.request.work_dir = "/home/ada";
    m_services.set.credentials_dir = "/scratch/tickets";
    m_services.secrets.directories["/home/ada"]["key"] =
        k_keytab_head + key_of({"ada"}, "EXAMPLE.ORG") + key_of({"job"}, "EXAMPLE.ORG");

    LoginTicket none;
    none.problem = "the run gets no Kerberos ticket: it has expired";
    ASSERT_TRUE(add_keytab(m_services, run, "key", none));
    EXPECT_EQ(none.problem, "");
    EXPECT_EQ(none.plan->keytab, "/home/ada/key");
    EXPECT_EQ(none.plan->principal, "ada@EXAMPLE.ORG");
    EXPECT_EQ(none.plan->directory, "/scratch/tickets/" + run.key.text());
    EXPECT_TRUE(none.cache.empty());

    const auto printed = [&](const std::string& path, const std::string& principal) {
        LoginTicket ticket;
        ticket.plan = CredentialPlan{principal, "/f", WhenShort::hold, "", ""};
        const auto added = add_keytab(m_services, run, path, ticket);
        return added ? "as " + ticket.plan->principal : added.error().text;
    };
    EXPECT_EQ(printed("/home/ada/key", "job@EXAMPLE.ORG"), "as job@EXAMPLE.ORG");
    EXPECT_EQ(printed("key", "ben@EXAMPLE.ORG"),
              "--keytab: /home/ada/key has keys of ada@EXAMPLE.ORG, job@EXAMPLE.ORG, but your "
              "ticket is for ben@EXAMPLE.ORG");
    EXPECT_THAT(printed("none", "ada@EXAMPLE.ORG"), HasSubstr("--keytab: /home/ada/none"));
    m_services.secrets.directories["/home/ada"]["notes"] = "of yesterday";
    EXPECT_EQ(printed("notes", "ada@EXAMPLE.ORG"),
              "--keytab: /home/ada/notes: not a keytab that gpuq can read");
}

TEST_F(Keepalive, NobodyIsToLogInWhereAKeytabGivesTickets)
{
    auto& plan = m_services.memory.files[credential_plan_json(m_run.key())];
    plan = to_json(
        CredentialPlan{"ada@EXAMPLE.ORG", m_directory, WhenShort::hold, "", "/home/ada/key"});
    const Use well = keepalive();
    EXPECT_THAT(well.out, HasSubstr("fetched when it starts"));
    EXPECT_EQ(well.err.find("log in"), std::string::npos) << well.err;
    EXPECT_THAT(use(k_show_verb, m_services, {"train"}, {}).out, HasSubstr("/home/ada/key"));

    CredentialState state;
    state.at = m_services.time.now();
    state.trouble = credentials::Trouble::key_refused;
    state.message = "Password incorrect";
    m_services.memory.files[credential_state_json(m_run.key(), LinkNumber{1})] = to_json(state);
    const Use broken = keepalive();
    EXPECT_THAT(broken.out, HasSubstr("the KDC no longer accepts the keytab's key"));
    EXPECT_THAT(broken.err, HasSubstr("log in once before"));
}

} // namespace
} // namespace gpuq::cli
