// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/login_means.h"

#include "io/descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace gpuq::remote {
namespace {

class LoginMeansTest : public testing::Test {
protected:
    LoginMeansTest()
    {
        std::string name = "/tmp/gpuq-means-XXXXXX";
        directory = ::mkdtemp(name.data());
        set("HOME", "/home/ada");
        set("SSH_AUTH_SOCK", "/run/agent");
        set("KRB5CCNAME", "FILE:/tmp/tickets");
    }
    ~LoginMeansTest() override
    {
        std::filesystem::remove_all(directory);
        for (const auto& [name, value] : m_before) {
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
        }
    }
    void set(const std::string& name, const char* value)
    {
        const char* const before = std::getenv(name.c_str());
        m_before.try_emplace(name,
                             before == nullptr ? std::nullopt : std::optional<std::string>(before));
        ::setenv(name.c_str(), value, 1);
    }
    std::string directory;

private:
    std::map<std::string, std::optional<std::string>> m_before;
};

TEST_F(LoginMeansTest, AreWhatSshIsConfiguredToUse)
{
    const LoginMeans means =
        login_means_from("user ada\nidentityfile ~/.ssh/id_ed25519\nidentityfile /k\n"
                         "certificatefile ~/cert\ncontrolpath /run/master\n");
    EXPECT_EQ(means, (LoginMeans{{"/tmp/tickets", "/home/ada/.ssh/id_ed25519",
                                  "/home/ada/.ssh/id_ed25519-cert.pub", "/k", "/k-cert.pub",
                                  "/home/ada/cert", "/run/master"},
                                 "/run/agent"}));
    EXPECT_EQ(login_means_from("identityagent ~/agent\n").agent, "/home/ada/agent");
    EXPECT_EQ(login_means_from("identityagent SSH_AUTH_SOCK\ncontrolpath none\n"),
              (LoginMeans{{"/tmp/tickets"}, "/run/agent"}));
    EXPECT_EQ(login_means_from("identityagent none\n").agent, "");
    set("KRB5CCNAME", "KCM:");
    EXPECT_EQ(login_means_from("").files, std::vector<std::string>{""});
}

TEST_F(LoginMeansTest, MayLetInWhenTheyComeOrChange)
{
    const std::string path = directory + "/master";
    const LoginMeans means{{path, "/nonexistent"}, ""};
    const LoginState none = state_of(means);
    EXPECT_FALSE(may_let_in(none, state_of(means)));
    std::ofstream(path) << "x";
    const LoginState there = state_of(means);
    EXPECT_TRUE(may_let_in(none, there));
    EXPECT_FALSE(may_let_in(there, state_of(means)));
    std::ofstream(path) << "longer";
    EXPECT_TRUE(may_let_in(there, state_of(means)));
    std::filesystem::remove(path);
    EXPECT_FALSE(may_let_in(there, state_of(means))) << "what is gone lets nobody in";
}

TEST_F(LoginMeansTest, OfAnAgentAreItsKeys)
{
    const std::string path = directory + "/agent";
    EXPECT_EQ(state_of({{}, path}), LoginState{0});
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), path.size());
    const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    const std::vector<std::string> answers = {std::string("\0\0\0\5\14\0\0\0\0", 9),
                                              std::string("\0\0\0\6\14\0\0\0\1A", 10),
                                              std::string("\0\0\0\6\14\0\0\0\1A", 10),
                                              std::string("\0\0\0\6\14\0\0\0\1B", 10),
                                              std::string("\0\0", 2),
                                              std::string("\xff\xff\xff\xff", 4)};
    std::thread agent([&] {
        for (const std::string& answer : answers) {
            const Descriptor client(::accept(listener.get(), nullptr, nullptr));
            std::array<char, 16> request{};
            EXPECT_EQ(::read(client.get(), request.data(), request.size()), 5);
            EXPECT_EQ(request[4], 11);
            (void)::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        }
    });
    std::vector<LoginState> states;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        states.push_back(state_of({{}, path}));
    }
    agent.join();
    EXPECT_EQ(states[0], LoginState{0}) << "no key";
    EXPECT_TRUE(may_let_in(states[0], states[1]));
    EXPECT_EQ(states[1], states[2]);
    EXPECT_TRUE(may_let_in(states[2], states[3]));
    EXPECT_EQ(states[4], LoginState{0});
    EXPECT_EQ(states[5], LoginState{0});
}

} // namespace
} // namespace gpuq::remote
