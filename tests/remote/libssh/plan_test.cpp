// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string k_plain = "host login\n"
                            "user ada\n"
                            "hostname login1.example.org\n"
                            "port 22\n"
                            "addressfamily any\n"
                            "batchmode no\n"
                            "checkhostip no\n"
                            "compression no\n"
                            "controlmaster false\n"
                            "gssapiauthentication yes\n"
                            "gssapidelegatecredentials no\n"
                            "hashknownhosts yes\n"
                            "hostbasedauthentication no\n"
                            "identitiesonly no\n"
                            "kbdinteractiveauthentication yes\n"
                            "passwordauthentication yes\n"
                            "pubkeyauthentication true\n"
                            "stricthostkeychecking ask\n"
                            "verifyhostkeydns false\n"
                            "numberofpasswordprompts 3\n"
                            "ciphers chacha20-poly1305@openssh.com,aes128-ctr\n"
                            "hostkeyalgorithms ssh-ed25519,rsa-sha2-512\n"
                            "securitykeyprovider internal\n"
                            "identityfile ~/.ssh/id_rsa\n"
                            "identityfile /keys/other\n"
                            "globalknownhostsfile /etc/ssh/ssh_known_hosts\n"
                            "userknownhostsfile /home/ada/.ssh/known_hosts /home/ada/.ssh/more\n"
                            "sendenv LANG\n"
                            "sendenv LC_*\n"
                            "addkeystoagent false\n"
                            "forwardagent no\n"
                            "connecttimeout none\n";

Result<SshPlan> planned(const std::string& text)
{
    return plan_from(text, {"/home/ada", "/run/agent", "login"});
}

/// `line` before the others: the first value applies.
Result<SshPlan> with(const std::string& line)
{
    return planned(line + "\n" + k_plain);
}

TEST(SshPlan, FollowsTheUsersConfiguration)
{
    const auto plan = planned(k_plain);
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->host, "login1.example.org");
    EXPECT_EQ(plan->user, "ada");
    EXPECT_EQ(plan->port, 22);
    EXPECT_THAT(plan->known_as, ElementsAre("login1.example.org"));
    EXPECT_THAT(plan->known_hosts, ElementsAre("/home/ada/.ssh/known_hosts", "/home/ada/.ssh/more",
                                               "/etc/ssh/ssh_known_hosts"));
    EXPECT_THAT(plan->identities, ElementsAre("/home/ada/.ssh/id_rsa", "/keys/other"));
    EXPECT_THAT(plan->methods,
                ElementsAre("gssapi-with-mic", "publickey", "keyboard-interactive", "password"));
    EXPECT_EQ(plan->agent, "/run/agent");
    EXPECT_EQ(plan->ciphers, "chacha20-poly1305@openssh.com,aes128-ctr");
    EXPECT_EQ(plan->connect_timeout, std::chrono::seconds{10});
    EXPECT_FALSE(plan->key_rules.takes_changed);
}

TEST(SshPlan, NamesTheHostAsKnownHostsDoes)
{
    EXPECT_THAT(with("port 2222")->known_as,
                ElementsAre("[login1.example.org]:2222", "login1.example.org"));
    EXPECT_THAT(with("port 2222\nhostkeyalias Cluster")->known_as, ElementsAre("cluster"));
}

TEST(SshPlan, HasTheLeastSizeOfRsaKeys)
{
    EXPECT_EQ(planned(k_plain)->key_rules.least_rsa_bits, 0);
    EXPECT_EQ(with("requiredrsasize 1024")->key_rules.least_rsa_bits, 0);
    EXPECT_EQ(with("requiredrsasize 3072")->key_rules.least_rsa_bits, 3072);
}

TEST(SshPlan, OrdersAndOmitsMethods)
{
    EXPECT_THAT(with("preferredauthentications password,hostbased,publickey")->methods,
                ElementsAre("password", "publickey"));
    EXPECT_THAT(with("gssapiauthentication no\npasswordauthentication no")->methods,
                ElementsAre("publickey", "keyboard-interactive"));
}

TEST(SshPlan, ChoosesTheAgent)
{
    EXPECT_EQ(with("identityagent none")->agent, "");
    EXPECT_EQ(with("identityagent ~/agent")->agent, "/home/ada/agent");
    EXPECT_EQ(with("identityagent SSH_AUTH_SOCK")->agent, "/run/agent");
    EXPECT_FALSE(with("identityagent $OTHER"));
}

TEST(SshPlan, ExpandsAProxyCommand)
{
    EXPECT_EQ(with("proxycommand nc -X 5 %h %p # %r %n 100%%")->proxy_command,
              "nc -X 5 login1.example.org 22 # ada login 100%");
    EXPECT_EQ(with("proxycommand none")->proxy_command, "");
    EXPECT_FALSE(with("proxycommand nc %C"));
    EXPECT_FALSE(with("proxycommand nc %"));
    EXPECT_FALSE(with("hostname $(id)\nproxycommand nc %h %p"));
    EXPECT_FALSE(with("user -oX\nproxycommand nc %r"));
}

TEST(SshPlan, LeavesToOpensshWhatOnlyThatCanDo)
{
    for (const std::string line : {"controlmaster auto",
                                   "pkcs11provider /usr/lib/p.so",
                                   "knownhostscommand /usr/bin/keys",
                                   "revokedhostkeys /etc/ssh/revoked",
                                   "verifyhostkeydns yes",
                                   "checkhostip yes",
                                   "gssapikeyexchange yes",
                                   "gssapitrustdns yes",
                                   "hostbasedauthentication yes",
                                   "forwardagent yes",
                                   "addkeystoagent confirm",
                                   "bindaddress 10.0.0.1",
                                   "bindinterface eth1",
                                   "setenv A=B",
                                   "sendenv MY_TOKEN",
                                   "securitykeyprovider /usr/lib/sk.so",
                                   "proxyusefdpass yes",
                                   "identityfile %d/key",
                                   "identityfile ~bob/key",
                                   "userknownhostsfile ${HOME}/known",
                                   "certificatefile /certs/%u",
                                   "nohostauthenticationforlocalhost yes"}) {
        const auto plan = with(line);
        ASSERT_FALSE(plan) << line;
        EXPECT_EQ(plan.error().kind, Error::Kind::missing);
        EXPECT_NE(plan.error().text, "");
    }
    EXPECT_THAT(with("forwardagent yes").error().text, HasSubstr("ForwardAgent"));
}

TEST(SshPlan, ReadsJumpHosts)
{
    EXPECT_EQ(with("proxyjump bastion")->proxy_jump, "bastion");
    EXPECT_EQ(with("proxyjump none")->proxy_jump, "");
    EXPECT_EQ(*hops_in("bastion"), (std::vector<Hop>{{"", "bastion", ""}}));
    EXPECT_EQ(*hops_in("ada@a.example:2222,b,bob@[fe80::1]:22,[::1]"),
              (std::vector<Hop>{{"ada", "a.example", "2222"},
                                {"", "b", ""},
                                {"bob", "fe80::1", "22"},
                                {"", "::1", ""}}));
    for (const std::string text : {"", ",", "a,", "ssh://ada@a:22", "a:b", "@a", "ada@", "-oX=y",
                                   "a b", "$(id)", "-l@a", "a;b"}) {
        EXPECT_FALSE(hops_in(text)) << text;
    }
}

TEST(SshPlan, NeedsADestination)
{
    for (const std::string text : {"", "hostname x\n", "hostname x\nuser y\nport 0\n",
                                   "hostname x\nuser y\nport 70000\n", "\n\n \n", "port\n"}) {
        EXPECT_FALSE(planned(text)) << text;
    }
    EXPECT_TRUE(planned("hostname x\nuser y\nport 1\n"));
}

} // namespace
} // namespace gpuq::remote
