// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/known_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <unistd.h>
#include <utility>

namespace gpuq::remote {
namespace {

using testing::StartsWith;

const std::string k_one =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID4bdZtPz/eQ12E8VQKbpzxo0/+Y8oj3bmSWmBHuy8ij";
const std::string k_other =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE2YRafKncz6rAMcZfxuBj10Wfkf36Xf7NXozHbNLRsw";
const std::string k_ecdsa =
    "ecdsa-sha2-nistp256 "
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEJs9FCGAQKv0bCHEX"
    "yTFC2yRvTS57+25QFQCZ5vrGB9nja9r99BoOdUhiawPkboSWEVs1V/76XEDiW/pspl5Xk=";

/// Tests of libssh's own reading; skipped on a machine without it.
class KnownHosts : public testing::Test {
protected:
    void SetUp() override
    {
        const auto loaded = libssh();
        if (!loaded) {
            GTEST_SKIP() << loaded.error().text;
        }
        ssh = *loaded;
        std::string name = "/tmp/gpuq-known-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
        plan.known_as = {"login"};
        plan.host_keys = "ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256";
    }
    void TearDown() override
    {
        for (const std::string& file : plan.known_hosts) {
            ::unlink(file.c_str());
        }
        ::rmdir(directory.c_str());
    }
    void add_file(const std::string& text)
    {
        plan.known_hosts.push_back(directory + "/" + std::to_string(plan.known_hosts.size()));
        std::ofstream(plan.known_hosts.back()) << text;
    }
    /// The result for a host that shows this key.
    HostKeyCheck check(const std::string& key) const
    {
        ssh_knownhosts_entry* entry = nullptr;
        EXPECT_EQ(ssh->known_hosts_parse_line("x", ("x " + key).c_str(), &entry), SSH_OK);
        const SshKey shown(std::exchange(entry->publickey, nullptr));
        ssh->knownhosts_entry_free(entry);
        return check_host_key(*ssh, known_host(*ssh, plan), shown);
    }

    const Libssh* ssh = nullptr;
    SshPlan plan;
    std::string directory;
};

TEST_F(KnownHosts, HaveTheKeyInAnyFile)
{
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::unknown);
    add_file("other " + k_one + "\n");
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::unknown);
    add_file("# a comment\n\nnonsense\nlogin " + k_other + "\nlogin\t" + k_one + " a comment\n");
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::known);
    EXPECT_EQ(check(k_ecdsa).is, HostKeyCheck::Is::unknown) << "a key of another type";
}

TEST_F(KnownHosts, LocateAChangedKey)
{
    add_file("a " + k_one + "\n");
    add_file("\nlogin " + k_other + "\n");
    const HostKeyCheck result = check(k_one);
    EXPECT_EQ(result.is, HostKeyCheck::Is::changed);
    EXPECT_EQ(result.where, plan.known_hosts[1] + ":2");
}

TEST_F(KnownHosts, AreSearchedForTheBestName)
{
    plan.known_as = {"[login]:2222", "login"};
    add_file("login " + k_one + "\n");
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::known);
    EXPECT_EQ(check(k_other).is, HostKeyCheck::Is::unknown) << "of another server on that host";
    add_file("[login]:2222 " + k_other + "\n");
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::changed);
}

TEST_F(KnownHosts, HaveHashedNames)
{
    plan.known_as = {"cluster"}; // HostKeyAlias
    add_file("|1|MDEyMzQ1Njc4OWFiY2RlZmdoaWo=|ooiGno8hRKtK6fjcIcxWrAIcs3w= " + k_one + "\n");
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::known);
    EXPECT_EQ(check(k_other).is, HostKeyCheck::Is::changed);
    plan.known_as = {"login"};
    EXPECT_EQ(check(k_one).is, HostKeyCheck::Is::unknown);
}

TEST_F(KnownHosts, ReportForTheHostWhatLibsshCannotEvaluate)
{
    add_file("@cert-authority *.example.org " + k_one + "\n");
    EXPECT_FALSE(known_host(*ssh, plan).is_special);
    add_file("a,!a " + k_other + "\n");
    EXPECT_FALSE(known_host(*ssh, plan).is_special);
    add_file("*,!login " + k_other + "\n");
    EXPECT_TRUE(known_host(*ssh, plan).is_special);
    plan.known_hosts.pop_back();
    EXPECT_FALSE(known_host(*ssh, plan).is_special);
    add_file("@revoked login " + k_other + "\n");
    EXPECT_TRUE(known_host(*ssh, plan).is_special);
}

TEST_F(KnownHosts, DecideWhichKeyTheHostShallShow)
{
    add_file("login " + k_ecdsa + "\n");
    EXPECT_THAT(preferred_host_keys(*ssh, plan, known_host(*ssh, plan)),
                StartsWith("ecdsa-sha2-nistp256,ssh-ed25519,rsa"));
}

} // namespace
} // namespace gpuq::remote
