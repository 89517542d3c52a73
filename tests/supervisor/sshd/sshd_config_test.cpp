// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/sshd/sshd_config.h"

#include "supervisor/sshd/ssh_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpuq::supervisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SshdConfig, LetsInOneUserByTheKeysOfTheRun)
{
    const std::string text = sshd_config({"/state/runs/K/connect", "ada", false, {}}).value();
    EXPECT_THAT(text, HasSubstr("HostKey \"/state/runs/K/connect/host_key\"\n"));
    EXPECT_THAT(text, HasSubstr("AuthorizedKeysFile \"/state/runs/K/connect/authorized_keys\"\n"));
    EXPECT_THAT(text, HasSubstr("AuthenticationMethods publickey\n"));
    EXPECT_THAT(text, HasSubstr("AllowUsers \"ada\"\n"));
    EXPECT_THAT(text, HasSubstr("UsePAM no\n"));
    EXPECT_THAT(text, HasSubstr("Subsystem sftp internal-sftp\n"));
    EXPECT_THAT(text, Not(HasSubstr("SetEnv")));
}

TEST(SshdConfig, AddsTheUsersOwnKeysWhenTheyAreSafe)
{
    EXPECT_THAT(sshd_config({"/c", "ada", true, {}}).value(),
                HasSubstr("AuthorizedKeysFile \"/c/authorized_keys\" %h/.ssh/authorized_keys\n"));
}

TEST(SshdConfig, SetsVariablesInOneLineAndLeavesOutWhatCanNotBeQuoted)
{
    const std::string text = sshd_config({"/c",
                                          "ada",
                                          false,
                                          {"A=1", "B=a 'b' #c", "C=x\nHostKey /evil", "D=\"",
                                           "E=back\\slash", "F=\\", "G=\\\\", "H=\\'", "I=ü"}})
                                 .value();
    EXPECT_THAT(text, HasSubstr("\nSetEnv \"A=1\" \"B=a 'b' #c\" \"E=back\\slash\" \"I=ü\"\n"));
    EXPECT_THAT(text, Not(HasSubstr("evil")));
}

TEST(SshdConfig, RefusesAFolderThatItCanNotName)
{
    for (const char* directory : {"/a\"b", "/a\nb", "/a%hb"}) {
        EXPECT_EQ(sshd_config({directory, "ada", false, {}}).error().kind, Error::Kind::usage);
    }
}

/// sshd itself must read the configuration without an error.
TEST(SshdConfig, IsWhatSshdReads)
{
    const auto sshd = find_sshd(nullptr, std::getenv("PATH"));
    if (!sshd || std::system("command -v ssh-keygen >/dev/null") != 0) {
        GTEST_SKIP() << "no OpenSSH here";
    }
    std::string directory = testing::TempDir() + "gpuq-sshd-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    ASSERT_EQ(std::system(("ssh-keygen -q -t ed25519 -N '' -f " + directory + "/host_key").c_str()),
              0);
    std::ofstream(directory + "/config")
        << sshd_config({directory, "ada", true, {"SLURM_JOB_ID=7", "A=a b"}}).value();
    const std::string command =
        *sshd + " -T -f " + directory + "/config >" + directory + "/out 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(directory + "/out");
    const std::string out{std::istreambuf_iterator<char>(file), {}};
    // Keywords in capitals and small letters: OpenSSH 10.6 prints `SetEnv`, 9.2 `setenv`.
    EXPECT_THAT(out, HasSubstr("nv SLURM_JOB_ID=7\n"));
    EXPECT_THAT(out, HasSubstr("nv A=a b\n"));
    EXPECT_THAT(out, HasSubstr("ile " + directory + "/authorized_keys "));
    EXPECT_THAT(out, Not(HasSubstr("nsupported")));
    EXPECT_THAT(out, Not(HasSubstr("eprecated")));
    std::filesystem::remove_all(directory);
}

TEST(SessionEnvironment, IsTheJobsAndWhatTheUserHasChosen)
{
    EXPECT_THAT(session_environment({"HOME=/home/ada", "SLURM_JOB_ID=7", "CUDA_VISIBLE_DEVICES=0",
                                     "PATH=/bin", "FOO=1", "FOOT=2", "GPUQ_RUN_ID=K", "TMPDIRS=x",
                                     "TMPDIR=/tmp/7", "LD_PRELOAD=x", "KRB5CCNAME=FILE:/a",
                                     "BEARER_TOKEN_FILE=/b", "BEARER_TOKEN=x"},
                                    {{"FOO", "1"}}),
                ElementsAre("SLURM_JOB_ID=7", "CUDA_VISIBLE_DEVICES=0", "FOO=1", "GPUQ_RUN_ID=K",
                            "TMPDIR=/tmp/7", "KRB5CCNAME=FILE:/a", "BEARER_TOKEN_FILE=/b"));
}

} // namespace
} // namespace gpuq::supervisor
