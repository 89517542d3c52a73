// SPDX-License-Identifier: GPL-2.0-or-later
#include "io/network_socket.h"
#include "runs/records/network_login.h"
#include "supervisor/stage.h"

namespace gpuq::supervisor {
namespace {

const std::string k_nonce(32, 'a');

/// A run whose program waits for the file `go`, with clients over the network.
class Network : public testing::Test {
protected:
    Network()
        : m_stage(Stage::shell("echo begun; while ! [ -e go ]; do sleep 0.02; done; exit 3"))
    {
        m_stage.run.request.network = true;
        m_stage.options.launch_address = "127.0.0.1";
    }

    void begin()
    {
        m_first.emplace(m_stage.begin());
        const Event started = m_stage.awaited(Event::Kind::supervisor_started);
        ASSERT_TRUE(started.address);
        m_address = *started.address;
        EXPECT_TRUE(m_address.starts_with("127.0.0.1:")) << m_address;
    }

    Descriptor connect() const
    {
        auto socket = begin_to_connect(m_address);
        EXPECT_TRUE(socket);
        pollfd wait{socket->get(), POLLOUT, 0};
        EXPECT_EQ(::poll(&wait, 1, 10000), 1);
        return *std::move(socket);
    }
    static void send(const Descriptor& socket, const wire::Frame& frame)
    {
        EXPECT_TRUE(write_all(socket.get(), wire::encode(frame)));
    }
    /// The next frame, or nothing at the end of the connection.
    static std::optional<wire::Frame> receive(const Descriptor& socket)
    {
        wire::Decoder decoder;
        while (true) {
            auto frame = decoder.next();
            if (!frame || *frame) {
                return frame ? *std::move(frame) : std::nullopt;
            }
            char bytes[4096];
            pollfd wait{socket.get(), POLLIN, 0};
            const ssize_t count =
                ::poll(&wait, 1, 15000) == 1 ? ::read(socket.get(), bytes, sizeof bytes) : -1;
            if (count <= 0) {
                return std::nullopt;
            }
            decoder.feed({bytes, static_cast<std::size_t>(count)});
        }
    }
    NetworkLogin login() const
    {
        return {m_stage.options.names, m_stage.run.key, m_stage.options.link, k_nonce};
    }
    Client logged_in() const
    {
        Descriptor socket = connect();
        const NetworkLogin login = this->login();
        send(socket, login.challenge());
        const auto frame = receive(socket);
        const auto* proof = frame ? std::get_if<wire::Proof>(&*frame) : nullptr;
        EXPECT_NE(proof, nullptr);
        const auto answer = proof ? login.answer(*proof) : std::nullopt;
        EXPECT_TRUE(answer);
        send(socket, answer.value_or(wire::Answer{}));
        return Client(std::move(socket));
    }
    void end()
    {
        put(m_stage.root() / "go", "");
        EXPECT_TRUE(m_first->reads_to_the_end());
        EXPECT_EQ(m_first->ended->ending.status, 3);
        EXPECT_EQ(m_stage.wait(), 3);
    }

    Stage m_stage;
    std::string m_address;
    std::optional<Client> m_first;
};

TEST_F(Network, CarriesAClientThatProvesItself)
{
    begin();
    Client client = logged_in();
    client.send(wire::Attach{wire::k_version, wire::Role::viewer, 0, 0});
    EXPECT_TRUE(client.reads_until([&] { return client.out == "begun\n"; }));
    put(m_stage.root() / "go", "");
    EXPECT_TRUE(client.reads_to_the_end());
    EXPECT_EQ(client.ended->ending.status, 3);
    end();
}

TEST_F(Network, ShowsAStrangerNothing)
{
    begin();
    const NetworkLogin login = this->login();
    std::vector<std::vector<wire::Frame>> attempts = {
        {wire::Attach{wire::k_version, wire::Role::owner, 0, 0}},
        {wire::Stop{"a stranger"}},
        {wire::Report{"a stranger was here"}},
        {wire::Answer{""}},
        {login.challenge(), wire::Attach{wire::k_version, wire::Role::owner, 0, 0}},
        {login.challenge(), login.challenge()},
        {login.challenge(), wire::Answer{"0123456789abcdef"}, wire::Stop{"a stranger"}},
        {wire::Challenge{"x"}},
        {wire::Challenge{std::string(1000000, 'a')}},
    };
    for (const auto& frames : attempts) {
        const Descriptor socket = connect();
        std::string bytes;
        for (const wire::Frame& frame : frames) {
            bytes += wire::encode(frame);
        }
        (void)write_all(socket.get(), bytes);
        auto frame = receive(socket);
        if (frame && std::holds_alternative<wire::Proof>(*frame)) {
            frame = receive(socket);
        }
        EXPECT_FALSE(frame) << "attempt " << &frames - attempts.data();
    }
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4 << 20, '\xff'), std::string("x")}) {
        const Descriptor socket = connect();
        (void)write_all(socket.get(), bytes);
        (void)::shutdown(socket.get(), SHUT_WR); // it may be closed already
        EXPECT_FALSE(receive(socket));
    }
    // A long frame is not collected: its beginning ends the connection.
    const Descriptor socket = connect();
    const auto begin = std::chrono::steady_clock::now();
    (void)write_all(socket.get(), std::string("\x0b\xff\xff\0\0", 5) + std::string(300, 'a'));
    EXPECT_FALSE(receive(socket));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_FALSE(m_stage.event(Event::Kind::stop_asked));
    EXPECT_FALSE(m_stage.event(Event::Kind::other_user));
    end();
}

TEST_F(Network, ServesClientsAmongManyThatSayNothing)
{
    begin();
    std::vector<Descriptor> silent;
    for (int i = 0; i < 300; ++i) {
        silent.push_back(connect());
    }
    for (int i = 0; i < 3; ++i) {
        Client client = logged_in();
        client.send(wire::Attach{wire::k_version, wire::Role::viewer, 0, 0});
        EXPECT_TRUE(client.reads_until([&] { return client.out == "begun\n"; }));
        silent.push_back(connect());
    }
    Client local = m_stage.attach();
    EXPECT_TRUE(local.reads_until([&] { return local.out == "begun\n"; }));
    end();
}

TEST_F(Network, IsNotListenedToUnlessTheUserWantsThat)
{
    m_stage.run.request.network = false;
    m_first.emplace(m_stage.begin());
    EXPECT_FALSE(m_stage.awaited(Event::Kind::supervisor_started).address);
    end();
}

TEST_F(Network, IsNotListenedToWithoutASecret)
{
    m_stage.options.names = NodeNames();
    m_first.emplace(m_stage.begin());
    EXPECT_FALSE(m_stage.awaited(Event::Kind::supervisor_started).address);
    end();
}

} // namespace
} // namespace gpuq::supervisor
