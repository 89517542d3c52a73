// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/host/ssh_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

SshHost some_host()
{
    const RunKey key = RunKey::parse("20261120T131158.042Z-0f3a9c1e5b7d2468").value();
    return {key,
            "7 (train)",
            {"7", "last"},
            "ada",
            {"/usr/bin/gpuq", "connect", key.text()},
            "/home/ada/.local/state/gpuq"};
}

TEST(SshConfig, IsAHostThatSshReachesThroughGpuq)
{
    EXPECT_EQ(ssh_config(some_host()).value(),
              R"(# gpuq: run 7 (train); valid while it runs
Host gpuq-7 gpuq-last
    User ada
    ProxyCommand /usr/bin/gpuq connect 20261120T131158.042Z-0f3a9c1e5b7d2468
    HostKeyAlias gpuq-20261120T131158.042Z-0f3a9c1e5b7d2468
    UpdateHostKeys no
    IdentityFile "/home/ada/.local/state/gpuq/runs/20261120T131158.042Z-0f3a9c1e5b7d2468/connect/identity"
    IdentitiesOnly yes
    UserKnownHostsFile "/home/ada/.local/state/gpuq/runs/20261120T131158.042Z-0f3a9c1e5b7d2468/connect/known_hosts"
    StrictHostKeyChecking yes
)");
}

TEST(SshConfig, OfALaptopIsByOnesOwnKey)
{
    SshHost host = some_host();
    host.command.insert(host.command.begin() + 1, {"--host", "ada@login"});
    host.state_dir.clear();
    EXPECT_EQ(ssh_config(host).value(),
              R"(# gpuq: run 7 (train); valid while it runs
Host gpuq-7 gpuq-last
    User ada
    ProxyCommand /usr/bin/gpuq --host ada@login connect 20261120T131158.042Z-0f3a9c1e5b7d2468
    HostKeyAlias gpuq-20261120T131158.042Z-0f3a9c1e5b7d2468
    UpdateHostKeys no
    # Needs a key listed in ~/.ssh/authorized_keys on that host.
    # The host is authenticated already: gpuq connects through the login host.
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
)");
}

TEST(SshConfig, TakesNoLineFromARunsName)
{
    SshHost host = some_host();
    host.title = "7 (x\n    ProxyCommand evil)";
    host.called = {"7", "x\n    ProxyCommand evil", "*", "7", ""};
    const std::string text = ssh_config(host).value();
    EXPECT_THAT(text, HasSubstr("# gpuq: run 7 (x^J    ProxyCommand evil)"));
    EXPECT_THAT(text, HasSubstr("\nHost gpuq-7\n"));
    EXPECT_THAT(text, Not(HasSubstr("\n    ProxyCommand evil")));
}

TEST(SshConfig, QuotesForTheShellAndForSsh)
{
    SshHost host = some_host();
    host.command = {"/opt/100%/gp uq", "connect"};
    host.state_dir = "/scratch/a b%h";
    const std::string text = ssh_config(host).value();
    EXPECT_THAT(text, HasSubstr("ProxyCommand '/opt/100%%/gp uq' connect\n"));
    EXPECT_THAT(text, HasSubstr("IdentityFile \"/scratch/a b%%h/runs/"));
    host.state_dir = "/scratch/a\"b";
    EXPECT_EQ(ssh_config(host).error().kind, Error::Kind::usage);
    host = some_host();
    host.command.push_back("a\nMatch exec id");
    EXPECT_EQ(ssh_config(host).error().kind, Error::Kind::usage);
}

} // namespace
} // namespace gpuq::cli
