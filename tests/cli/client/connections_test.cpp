// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/connections.h"

#include "cli/client/scripted_client.h"
#include "core/layout.h"
#include "io/network_socket.h"
#include "ports/step_process.h"
#include "runs/records/network_login.h"
#include "runs/run_on_disk.h"

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
    void hand_over(Connections& connections, int signal = 0)
    {
        prepare_relay(m_relay);
        connections.begin(step(m_first));
        connections.greeted();
        connections.started();
        m_loop.run_once(0ms);
        EXPECT_EQ(m_relay.receive<wire::Attach>(), k_greeting);
        if (signal != 0) {
            connections.send_signal(signal);
        }
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

TEST_F(ConnectionsTest, SendASignalAgainUntilItIsConfirmed)
{
    prepare_guard(m_guard);
    Connections ours = connections();
    hand_over(ours, SIGTERM);
    const wire::Signal first{ours.client(), 1, SIGTERM}, second{ours.client(), 2, SIGINT};
    EXPECT_EQ(m_first.receive<wire::Signal>(), first);
    EXPECT_EQ(requests().back(), "abandon") << "it need not pass the signal on";
    EXPECT_EQ(m_relay.receive<wire::Signal>(), first);
    ours.signal_taken({1});
    ours.send_signal(SIGINT);
    EXPECT_EQ(m_relay.receive<wire::Signal>(), second);
    Supervisor other = Supervisor::by_step();
    prepare_relay(other);
    m_relay.disconnect();
    (void)ours.drop_current();
    m_loop.run_once(2s);
    (void)other.receive<wire::Attach>();
    other.send(wire::Hello{});
    EXPECT_TRUE(ours.on_next());
    EXPECT_EQ(other.receive<wire::Signal>(), second);
    ours.signal_taken({1'000'000});
    ours.send_signal(SIGTERM);
    EXPECT_EQ(other.receive<wire::Signal>(), (wire::Signal{ours.client(), 3, SIGTERM}));
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
    m_services.set.direct = Direct::no;
    prepare_relay(m_relay);
    Connections ours = connections();
    ours.begin(std::nullopt);
    EXPECT_EQ(ours.next()->kind(), Connection::Kind::relay);
}

/// With a supervisor that listens on the network.
class NetworkConnectionsTest : public ConnectionsTest {
protected:
    NetworkConnectionsTest()
        : m_listener(listen_on_network("127.0.0.1", 4).value())
    {
        m_services.set.direct = Direct::network;
        m_services.memory.append(layout::secret(), k_secret);
        m_run.request.network = true;
        listens_at(address_of_listener(m_listener.get()));
    }

    void listens_at(const std::string& address)
    {
        Event started;
        started.kind = Event::Kind::supervisor_started;
        started.address = address;
        m_services.memory.append(layout::journal(m_run.key, LinkNumber{}), to_line(started));
    }
    Supervisor accepted()
    {
        pollfd wait{m_listener.get(), POLLIN, 0};
        EXPECT_EQ(::poll(&wait, 1, 10000), 1);
        return Supervisor::by_socket(
            Descriptor(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    }
    NetworkLogin login(const std::string& secret = k_secret) const
    {
        return {NodeNames(secret), m_run.key, LinkNumber{}, std::string(32, 'b')};
    }
    /// Handles the next connection's events until it has changed.
    void handle_events(Connections& ours, const std::function<bool()>& condition)
    {
        for (int i = 0; i < 1000 && !condition(); ++i) {
            if (ours.next()) {
                pollfd wait{ours.next()->output(), POLLIN, 0};
                (void)::poll(&wait, 1, 10);
                (void)ours.on_next();
            }
        }
        EXPECT_TRUE(condition());
    }
    bool has_relay(Connections& ours)
    {
        return ours.next() && ours.next()->kind() == Connection::Kind::relay;
    }

    static constexpr const char* k_secret = "000102030405060708090a0b0c0d0e0f";
    Descriptor m_listener;
};

TEST_F(NetworkConnectionsTest, GreetASupervisorThatProvesItself)
{
    Connections ours = connections();
    ours.begin(std::nullopt);
    ASSERT_EQ(ours.next()->kind(), Connection::Kind::network);
    Supervisor peer = accepted();
    ours.next()->write_some();
    NetworkLogin login = this->login();
    peer.send(login.prove(peer.receive<wire::Challenge>()).value());
    EXPECT_FALSE(ours.on_next());
    EXPECT_TRUE(login.accepts(peer.receive<wire::Answer>()));
    EXPECT_EQ(peer.receive<wire::Attach>(), k_greeting);
    peer.send(wire::Hello{});
    handle_events(ours, [&] { return ours.current().has_value(); });
    EXPECT_EQ(ours.current()->kind(), Connection::Kind::network);
    EXPECT_EQ(m_loop.next_due(), std::nullopt) << "no patience is left to run out";
    EXPECT_THAT(requests(), ElementsAre()) << "no step";
}

TEST_F(NetworkConnectionsTest, SayNothingToAStranger)
{
    const wire::Frame frames[] = {
        wire::Hello{}, wire::Refused{"go away"},
        wire::Proof{std::string(32, 'b'), "0123456789abcdef"},
        login("100102030405060708090a0b0c0d0e0f").prove({std::string(32, 'c')}).value()};
    for (const wire::Frame& frame : frames) {
        prepare_relay(m_relay);
        Connections ours = connections();
        ours.begin(std::nullopt);
        Supervisor peer = accepted();
        ours.next()->write_some();
        (void)peer.receive<wire::Challenge>();
        peer.send(frame);
        handle_events(ours, [&] { return has_relay(ours); });
        EXPECT_TRUE(peer.is_left()) << "without another frame";
        EXPECT_EQ(ours.refused(), std::nullopt);
        EXPECT_EQ(m_relay.receive<wire::Attach>(), k_greeting);
        m_relay = Supervisor::by_step();
    }
}

TEST_F(NetworkConnectionsTest, UseARelayIfNothingListens)
{
    m_listener.reset();
    prepare_relay(m_relay);
    Connections ours = connections();
    ours.begin(std::nullopt);
    handle_events(ours, [&] { return has_relay(ours); });
    // In this session the network is not tried again.
    ours.give_up();
    m_listener = listen_on_network("127.0.0.1", 4).value();
    listens_at(address_of_listener(m_listener.get()));
    Supervisor relay = Supervisor::by_step();
    prepare_relay(relay);
    ours.begin(std::nullopt);
    EXPECT_TRUE(has_relay(ours));
}

TEST_F(NetworkConnectionsTest, UseARelayIfTheOtherEndIsSilent)
{
    prepare_relay(m_relay);
    Connections ours = connections();
    ours.begin(std::nullopt);
    EXPECT_EQ(until_next_timer(), 3s);
    EXPECT_EQ(ours.next()->kind(), Connection::Kind::network);
    for (int i = 0; i < 100 && !has_relay(ours); ++i) {
        m_loop.run_once(100ms);
    }
    EXPECT_TRUE(has_relay(ours));
    EXPECT_EQ(m_loop.next_due(), std::nullopt);
}

TEST_F(NetworkConnectionsTest, UseARelayWithoutAnAddress)
{
    for (const char* address : {"login1:22", "", "127.0.0.1"}) {
        listens_at(address);
        Supervisor relay = Supervisor::by_step();
        prepare_relay(relay);
        Connections ours = connections();
        ours.begin(std::nullopt);
        EXPECT_TRUE(has_relay(ours)) << address;
    }
}

TEST_F(NetworkConnectionsTest, UseNoNetworkUnlessTheUserAndTheRunWantIt)
{
    for (const bool run_wants : {true, false}) {
        m_run.request.network = run_wants;
        m_services.set.direct = run_wants ? Direct::node : Direct::network;
        Supervisor relay = Supervisor::by_step();
        prepare_relay(relay);
        Connections ours = connections();
        ours.begin(std::nullopt);
        EXPECT_TRUE(has_relay(ours));
    }
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

TEST_F(ConnectionsTest, NeedNotSecureARunThatHasEnded)
{
    m_services.steps.first_step_died = true;
    fakes::RunOnDisk(m_services.memory, m_run)
        .submitted(JobId{7})
        .ended({7, Cause::finished, "", m_services.time.now()});
    Connections ours = connections(1h);
    ours.begin(step(m_first));
    ours.greeted();
    m_first.disconnect();
    prepare_guard(m_guard);
    EXPECT_TRUE(ours.secure());
}

} // namespace
} // namespace gpuq::cli
