// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/follow.h"

#include "cli/client/scripted_client.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

class FollowTest : public ::testing::Test {
protected:
    FollowTest()
    {
        m_options.handover = 1h;
        m_run.request.chain.emplace();
        (void)m_client.store->write(layout::run_json(m_run.key), to_json(m_run));
    }

    void start(User user = User::pipes)
    {
        m_options.terminal = user == User::terminal;
        m_client.start(user, [this](Services& services, Signals& signals) {
            return follow_run(services, signals, m_run, JobId{7}, m_options, m_client.first);
        });
    }

    /// The same with a command for notices; their texts are on stderr when the client has ended.
    void start_with_notices()
    {
        m_client.start(User::pipes, [this](Services& services, Signals& signals) {
            auto& fakes = static_cast<FakeServices&>(services);
            fakes.set.notify = {"tell", "{event}: {text}"};
            auto status = follow_run(services, signals, m_run, JobId{7}, m_options, m_client.first);
            for (const auto& notice : fakes.machine.unattended) {
                fmt::print(stderr, "{}\n", fmt::join(notice.arguments, " "));
            }
            return status;
        });
    }

    /// The first link ends, and the next one continues the run.
    void end_first_link(Supervisor& supervisor)
    {
        supervisor.greet();
        supervisor.send(wire::Output{Stream::out, 0, "one\n"});
        supervisor.send(wire::Ended{{0, Cause::time_limit, "", Time{}, /*continues=*/true}});
        (void)supervisor.receive<wire::Bye>();
    }

    void record(LinkNumber link, Event event)
    {
        event.at = m_client.services.time.now();
        m_journals[link] += to_line(event);
        ASSERT_TRUE(m_client.store->write(layout::journal(m_run.key, link), m_journals[link]));
    }

    void record_start(LinkNumber link, std::uint32_t job)
    {
        Event started;
        started.job = job;
        record(link, started);
    }

    void record_end(LinkNumber link, bool continues, int status)
    {
        Event ended;
        ended.kind = Event::Kind::ended;
        ended.status = status;
        ended.cause = Cause::finished;
        ended.continues = continues;
        record(link, ended);
    }

    void record_second_job()
    {
        m_client.services.steps.jobs.push_back(running_job(m_run, 8));
        ASSERT_TRUE(m_client.store->write(
            layout::job_json(m_run.key, LinkNumber{2}),
            to_json(LinkJob{"lab", JobId{8}, m_client.services.time.now(), true})));
    }

    ScriptedClient m_client;
    gpuq::Run m_run = recorded_run(m_client);
    SessionOptions m_options;
    std::map<LinkNumber, std::string> m_journals;
};

TEST_F(FollowTest, ContinuesWithTheNextLink)
{
    Supervisor& first = m_client.first_step();
    Supervisor& second = m_client.relay();
    record_start(LinkNumber{1}, 7);
    record_end(LinkNumber{1}, /*continues=*/true, 0);
    record_second_job();
    record_start(LinkNumber{2}, 8);
    start();
    end_first_link(first);
    EXPECT_EQ(second.receive<wire::Attach>(),
              (wire::Attach{wire::k_version, wire::Role::owner, 0, 0}))
        << "the log of the new link begins at 0";
    second.greet();
    second.send(wire::Output{Stream::out, 0, "two\n"});
    second.send(wire::Ended{{4, Cause::finished, "", Time{}}});
    EXPECT_EQ(m_client.status(), 4);
    EXPECT_EQ(m_client.out(), "one\ntwo\n");
    EXPECT_THAT(m_client.requests(), ::testing::HasSubstr("relay 2 of job 8"));
    EXPECT_THAT(m_client.err(), ::testing::HasSubstr("the run continues in the next one\n"));
}

TEST_F(FollowTest, ReportsARunThatEndsBetweenTwoLinks)
{
    Supervisor& first = m_client.first_step();
    record_start(LinkNumber{1}, 7);
    start();
    end_first_link(first);
    record_end(LinkNumber{1}, /*continues=*/false, 6);
    EXPECT_EQ(m_client.status(), 6);
    EXPECT_THAT(m_client.err(), ::testing::HasSubstr("run 7 (train) ended with status 6"));
}

TEST_F(FollowTest, GivesANoticeOfWarningsAndOfTheEnd)
{
    m_options.notice_after = 0ms;
    Supervisor& first = m_client.first_step();
    start_with_notices();
    first.greet();
    first.send(wire::Note{"15 minutes left"});
    first.send(wire::Ended{{4, Cause::finished, "", Time{}}});
    EXPECT_EQ(m_client.status(), 4);
    EXPECT_THAT(m_client.err(),
                ::testing::EndsWith("tell warning: run 7 (train): 15 minutes left\n"
                                    "tell failure: run 7 (train) ended with status 4\n"));
}

TEST_F(FollowTest, GivesANoticeOfTheEndBetweenTwoLinksButNotOfALink)
{
    m_options.notice_after = 0ms;
    Supervisor& first = m_client.first_step();
    record_start(LinkNumber{1}, 7);
    start_with_notices();
    end_first_link(first);
    record_end(LinkNumber{1}, /*continues=*/false, 0);
    EXPECT_EQ(m_client.status(), 0);
    EXPECT_THAT(m_client.err(),
                ::testing::EndsWith("continues in the next one\n"
                                    "tell end: run 7 (train) ended with status 0\n"));
}

TEST_F(FollowTest, GivesNoNoticeOfTheEndOfAShortRun)
{
    Supervisor& first = m_client.first_step();
    start_with_notices();
    first.greet();
    first.send(wire::Ended{{4, Cause::finished, "", Time{}}});
    EXPECT_EQ(m_client.status(), 4);
    EXPECT_THAT(m_client.err(), ::testing::Not(::testing::HasSubstr("tell")));
}

TEST_F(FollowTest, DetachesBetweenTwoLinks)
{
    Supervisor& first = m_client.first_step();
    record_start(LinkNumber{1}, 7);
    start(User::terminal);
    end_first_link(first);
    ASSERT_TRUE(m_client.prints("the run continues in the next one"));
    m_client.signal(SIGINT);
    EXPECT_EQ(m_client.status(), 130);
    EXPECT_THAT(
        m_client.err(),
        ::testing::EndsWith("gpuq: detached; run 7 continues. Back to it: gpuq attach 7\n"));
}

TEST_F(FollowTest, ReturnsTheStatusOfARunWithoutAnotherLink)
{
    Supervisor& first = m_client.first_step();
    start();
    first.greet();
    first.send(wire::Ended{{9, Cause::finished, "", Time{}}});
    EXPECT_EQ(m_client.status(), 9);
}

} // namespace
} // namespace gpuq::cli
