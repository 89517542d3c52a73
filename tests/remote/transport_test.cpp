// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace gpuq::remote {
namespace {

using testing::HasSubstr;

TEST(SshTransport, JudgesTheAttemptThatWasMade)
{
    constexpr std::string_view k_denied = "ada@login1: Permission denied (publickey,password).\n";
    SshCommand command;
    command.ssh = {"/bin/sh", "-c", "exit 255", "ssh"};
    command.host = "login1";
    command.interactive = true;
    SshTransport transport(command);
    for (const auto& [attempt, what, output] :
         {std::tuple(Attempt::first, Verdict::What::stop, "see whether ssh login1 works"),
          std::tuple(Attempt::again, Verdict::What::needs_user,
                     "wants a password, a second factor or a key's passphrase again")}) {
        ASSERT_TRUE(transport.connect(attempt, false, ""));
        const Verdict verdict = transport.classify({transport.end(5000), k_denied, {}});
        EXPECT_EQ(verdict.what, what);
        EXPECT_THAT(verdict.error.text, HasSubstr(output));
    }
}

} // namespace
} // namespace gpuq::remote
