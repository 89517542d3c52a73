// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/connections.h"

#include "cli/client/scripted_client.h"
#include "ports/step_process.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using ::testing::ElementsAre;

const wire::Attach k_greeting{wire::k_version, wire::Role::owner, 3, 0};

class ConnectionsTest : public ::testing::Test {
protected:
    Connections connections(std::chrono::milliseconds handover = 0ms)
    {
        return {m_loop, m_services, m_run, {}, JobId{7}, handover, [] {
                    return std::vector<wire::Frame>{k_greeting};
                }};
    }

    static std::optional<StepProcess> step(Supervisor& supervisor)
    {
        return supervisor.step_for_client();
    }
    void prepare_relay(Supervisor& relay)
    {
        m_services.steps.relays.push_back(relay.step_for_client());
    }
    void prepare_guard(Supervisor& guard)
    {
        m_services.steps.guards.push_back(guard.step_for_client());
    }

    /// Begins with a supervisor's own step and hands over to a relay.
    void hand_over(Connections& connections)
    {
        prepare_relay(m_relay);
        connections.begin(step(m_first));
        connections.greeted();
        connections.started();
        m_loop.run_once(0ms);
        EXPECT_EQ(m_relay.receive<wire::Attach>(), k_greeting);
        m_relay.send(wire::Hello{});
        EXPECT_TRUE(connections.on_next());
    }

    std::chrono::seconds until_next_timer() const
    {
        return std::chrono::round<std::chrono::seconds>(m_loop.next_due().value() -
                                                        Connections::Clock::now());
    }

    const std::vector<std::string>& requests() const { return m_services.steps.requests; }

    EventLoop m_loop;
    ClientServices m_services;
    gpuq::Run m_run = fakes::some_run(m_services.time.now(), "train");
    Supervisor m_first = Supervisor::by_step();
    Supervisor m_relay = Supervisor::by_step();
    Supervisor m_guard = Supervisor::by_step();
};

TEST_F(ConnectionsTest, KeepTheFirstStepUntilTheHandover)
{
    Connections ours = connections(1h);
    ours.begin(step(m_first));
    EXPECT_EQ(ours.current()->kind(), Connection::Kind::first);
    EXPECT_EQ(m_loop.next_due(), std::nullopt) << "not before the program has started";
    ours.greeted();
    ours.started();
    m_loop.run_once(0ms);
    EXPECT_EQ(until_next_timer(), 1h);
    EXPECT_THAT(requests(), ElementsAre());
}

TEST_F(ConnectionsTest, ReplaceTheFirstStepAndLeaveAGuard)
{
    prepare_guard(m_guard);
    Connections ours = connections();
    hand_over(ours);
    EXPECT_EQ(ours.current()->kind(), Connection::Kind::relay);
    EXPECT_THAT(requests(), ElementsAre("relay 1 of job 7", "guard 1 of job 7", "abandon"));
    m_guard.send(wire::Hello{});
    ours.on_guard();
    EXPECT_EQ(requests().back(), "abandon");
    EXPECT_FALSE(ours.guard());
    EXPECT_TRUE(ours.secure()) << "without further steps";
    EXPECT_EQ(requests().size(), 4U);
}

TEST_F(ConnectionsTest, TryAGuardAgainLater)
{
    Connections ours = connections();
    hand_over(ours);
    EXPECT_FALSE(ours.guard()) << "Slurm did not respond";
    EXPECT_EQ(until_next_timer(), 10s);
}

TEST_F(ConnectionsTest, TryAGuardAgainIfItsStepFails)
{
    prepare_guard(m_guard);
    Connections ours = connections();
    hand_over(ours);
    m_guard.disconnect("srun: error\n");
    ours.on_guard();
    EXPECT_FALSE(ours.guard());
    EXPECT_EQ(until_next_timer(), 10s);
}

TEST_F(ConnectionsTest, KeepTheFirstStepIfTheRelayFails)
{
    prepare_relay(m_relay);
    Connections ours = connections();
    ours.begin(step(m_first));
    ours.greeted();
    ours.started();
    m_loop.run_once(0ms);
    m_relay.disconnect("gpuq: no supervisor listens here\n");
    EXPECT_FALSE(ours.on_next());
    EXPECT_EQ(ours.current()->kind(), Connection::Kind::first);
    EXPECT_EQ(ours.why(), "gpuq: no supervisor listens here\n");
    EXPECT_EQ(until_next_timer(), 10s);
}

TEST_F(ConnectionsTest, DropAConnectionAndScheduleAnother)
{
    Connections ours = connections(1h);
    ours.begin(step(m_first));
    m_first.disconnect("srun: error: node failure\n");
    ours.current()->read_errors();
    const Connections::Broken broken = ours.drop_current();
    EXPECT_TRUE(broken.never_began);
    EXPECT_EQ(broken.messages, "srun: error: node failure\n");
    EXPECT_FALSE(ours.current());
    EXPECT_EQ(until_next_timer(), 1s);
    ours.give_up();
    EXPECT_EQ(m_loop.next_due(), std::nullopt);
}

TEST_F(ConnectionsTest, PauseLongerAfterEachFailure)
{
    std::vector<std::chrono::seconds> pauses;
    std::vector<Supervisor> relays;
    for (int i = 0; i < 6; ++i) {
        relays.push_back(Supervisor::by_step());
    }
    Connections ours = connections();
    for (Supervisor& relay : relays) {
        prepare_relay(relay);
        ours.give_up();
        ours.begin(std::nullopt);
        relay.disconnect();
        EXPECT_FALSE(ours.on_next());
        pauses.push_back(until_next_timer());
    }
    EXPECT_THAT(pauses, ElementsAre(1s, 2s, 4s, 8s, 15s, 15s));
}

TEST_F(ConnectionsTest, RememberWhyTheSupervisorRefused)
{
    prepare_relay(m_relay);
    Connections ours = connections();
    ours.begin(std::nullopt);
    m_relay.send(wire::Refused{"too many"});
    EXPECT_FALSE(ours.on_next());
    EXPECT_EQ(ours.refused(), "too many");
    EXPECT_FALSE(ours.was_connected());
}

TEST_F(ConnectionsTest, UseNoSocketIfTheSettingsForbidIt)
{
    m_services.set.direct = false;
    prepare_relay(m_relay);
    Connections ours = connections();
    ours.begin(std::nullopt);
    EXPECT_EQ(ours.next()->kind(), Connection::Kind::relay);
}

TEST_F(ConnectionsTest, SecureARunThatIsStillOnItsFirstStep)
{
    prepare_guard(m_guard);
    Connections ours = connections(1h);
    ours.begin(step(m_first));
    ours.greeted();
    m_guard.send(wire::Hello{});
    EXPECT_TRUE(ours.secure());
    EXPECT_THAT(requests(), ElementsAre("guard 1 of job 7", "abandon", "abandon"));
}

TEST_F(ConnectionsTest, CantSecureARunWhoseStepHasDied)
{
    m_services.steps.first_step_died = true;
    Connections ours = connections(1h);
    ours.begin(step(m_first));
    ours.greeted();
    m_first.disconnect();
    prepare_guard(m_guard);
    EXPECT_FALSE(ours.secure()) << "the guard's step does not begin";
    EXPECT_EQ(requests().back(), "has_first_step 7");
}

} // namespace
} // namespace gpuq::cli
