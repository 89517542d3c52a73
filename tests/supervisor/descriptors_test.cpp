// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stage.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace gpuq::supervisor {
namespace {

class Descriptors : public testing::Test {
protected:
    Descriptors()
    {
        stage.run.request.input = Input::terminal;
        client.emplace(stage.begin());
        EXPECT_TRUE(client->reads_until([this] { return client->out == "ready\n"; }));
    }
    /// Typed text is echoed and written to the log.
    void expect_all_is_well()
    {
        const std::string line = "line " + std::to_string(m_typed) + "\n";
        client->send(wire::Stdin{m_typed, line});
        m_typed += line.size();
        EXPECT_TRUE(client->reads_until([&] { return client->out.ends_with(line); }));
        EXPECT_TRUE(
            eventually([&] { return contents(stage.link_file("out.log")) == client->out; }));
    }

    Stage stage = Stage::shell("echo ready; exec cat");
    std::optional<Client> client;

private:
    std::uint64_t m_typed = 0;
};

TEST_F(Descriptors, WhenNoneIsLeftWhoComesIsToldWhy)
{
    {
        const NoneLeft none(stage.supervisor());
        for (int i = 0; i < 3; ++i) {
            Client late(stage.connect());
            ASSERT_TRUE(late.reads_until([&] { return late.closed; }));
            EXPECT_EQ(late.refused, "its supervisor on n1 has no file descriptor left (ulimit -n)");
            expect_all_is_well();
        }
    }
    Client later = stage.attach();
    EXPECT_TRUE(later.reads_until([&] { return later.out == client->out; }));
}

TEST_F(Descriptors, FewerThanAreOpenDisturbNobody)
{
    Client late = [this] {
        const NoneLeft none(stage.supervisor());
        none.allow(3);
        expect_all_is_well();
        Client comes = stage.attach();
        expect_all_is_well();
        return comes;
    }();
    EXPECT_TRUE(late.reads_until([&] { return late.out == client->out; }));
}

TEST_F(Descriptors, BeyondTheMostClientsWhoComesIsToldWhy)
{
    std::vector<Client> others;
    while (others.size() < 250) {
        others.push_back(stage.attach());
        Client& other = others.back();
        ASSERT_TRUE(other.reads_until([&] { return other.hello || other.closed; }));
        if (other.refused) {
            break;
        }
    }
    EXPECT_EQ(others.back().refused, "200 clients are already connected");
    expect_all_is_well();
    others.clear();
    EXPECT_TRUE(eventually([&] {
        Client later = stage.attach();
        return later.reads_until([&] { return later.hello || later.closed; }) && later.hello;
    }));
}

} // namespace
} // namespace gpuq::supervisor
