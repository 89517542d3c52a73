// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/network_login.h"

#include <gtest/gtest.h>

namespace gpuq {
namespace {

const RunKey k_key = RunKey::parse("20261120T131158.042Z-0f3a9c1e5b7d2468").value();
const std::string k_secret = "000102030405060708090a0b0c0d0e0f";
const std::string k_nonce(32, '1');
const std::string k_other_nonce(32, '2');

NetworkLogin login(const std::string& nonce, const std::string& secret = k_secret, int link = 1)
{
    return {NodeNames(secret), k_key, LinkNumber{link}, nonce};
}

TEST(NetworkLogin, SucceedsIfBothReadTheSecret)
{
    NetworkLogin client = login(k_nonce), supervisor = login(k_other_nonce);
    const auto proof = supervisor.prove(client.challenge());
    ASSERT_TRUE(proof);
    const auto answer = client.answer(*proof);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(supervisor.accepts(*answer));
    EXPECT_EQ(proof->tag.size(), 16U);
    EXPECT_NE(proof->tag, answer->tag);
}

TEST(NetworkLogin, FailsWithAnotherSecretOrLinkOrWithout)
{
    for (const NetworkLogin& other : {login(k_other_nonce, "100102030405060708090a0b0c0d0e0f"),
                                      login(k_other_nonce, k_secret, 2)}) {
        NetworkLogin peer = other, client = login(k_nonce), supervisor = login(k_nonce);
        const auto wrong = peer.prove(client.challenge());
        EXPECT_FALSE(client.answer(wrong.value()));
        // The other way round: a client that proves the wrong thing.
        const auto proof = supervisor.prove(other.challenge());
        EXPECT_FALSE(other.answer(proof.value()));
        EXPECT_FALSE(supervisor.accepts({wrong->tag}));
    }
    NetworkLogin none = login(k_other_nonce, "");
    EXPECT_FALSE(none.prove({k_nonce}));
    EXPECT_FALSE(none.answer({k_nonce, ""})) << "an empty tag proves nothing";
    EXPECT_FALSE(none.accepts({""}));
}

TEST(NetworkLogin, AcceptsNoReflection)
{
    NetworkLogin client = login(k_nonce), supervisor = login(k_other_nonce),
                 reflected = login(k_nonce);
    // The supervisor's own tag, sent back as the client's, and the client's own nonce.
    const auto proof = supervisor.prove(client.challenge());
    EXPECT_FALSE(supervisor.accepts({proof->tag}));
    EXPECT_FALSE(client.answer({k_nonce, client.answer(*proof)->tag}));
}

TEST(NetworkLogin, AcceptsNoReplay)
{
    NetworkLogin client = login(k_nonce), supervisor = login(k_other_nonce), later = login(k_nonce);
    const auto answer = client.answer(supervisor.prove(client.challenge()).value());
    NetworkLogin next = login(std::string(32, '3'));
    ASSERT_TRUE(next.prove(client.challenge()));
    EXPECT_FALSE(next.accepts(*answer));
    EXPECT_FALSE(login(k_other_nonce).accepts(*answer)) << "no challenge yet";
}

TEST(NetworkLogin, RefusesMalformedNonces)
{
    for (const std::string& nonce :
         {std::string(), std::string(31, '1'), std::string(33, '1'), std::string(32, 'g'),
          std::string(32, 'A'), k_nonce + " " + k_other_nonce, std::string(1 << 20, '1')}) {
        EXPECT_FALSE(login(k_other_nonce).prove({nonce})) << nonce.substr(0, 70);
        EXPECT_FALSE(login(k_nonce).answer({nonce, "0123456789abcdef"}));
        EXPECT_FALSE(login(nonce).prove({k_nonce})) << "the kernel had no random bytes";
    }
    NetworkLogin supervisor = login(k_other_nonce);
    EXPECT_TRUE(supervisor.prove({k_nonce}));
    EXPECT_FALSE(supervisor.prove({k_nonce})) << "one challenge only";
}

TEST(RandomNonce, IsAnotherEachTime)
{
    EXPECT_EQ(random_nonce().size(), 32U);
    EXPECT_NE(random_nonce(), random_nonce());
}

} // namespace
} // namespace gpuq
