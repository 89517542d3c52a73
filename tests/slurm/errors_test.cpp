// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include <unistd.h>

namespace gpuq::slurm {
namespace {

using ErrorKind = Error::Kind;
using testing::HasSubstr;

TEST(SlurmErrors, WhatCanNotBeNowMayBeQueued)
{
    for (const int code : {2013, 2016, 2050, 2078, 2101, 2125}) {
        EXPECT_EQ(kind_of(code, Question::start), ErrorKind::busy) << code;
        EXPECT_EQ(kind_of(code, Question::submit), ErrorKind::denied) << code;
    }
}

TEST(SlurmErrors, WhatCanNeverBeIsDenied)
{
    for (const int code : {-1, 2000, 2002, 2014, 2045, 2051, 2066, 2072}) {
        EXPECT_EQ(kind_of(code, Question::start), ErrorKind::denied) << code;
        EXPECT_EQ(kind_of(code, Question::submit), ErrorKind::denied) << code;
    }
}

TEST(SlurmErrors, WithoutAnAnswerTheOutcomeIsUnknown)
{
    for (const int code : {0, 110, 1000, 1007, 1800, 1802, 1804, 2027, 5004, 6000, 7000}) {
        EXPECT_EQ(kind_of(code, Question::start), ErrorKind::unreachable) << code;
    }
    EXPECT_TRUE(never_sent(1800));
    EXPECT_FALSE(never_sent(1802));
}

TEST(SlurmErrors, AnUnknownJobIsMissingAndAnEndedOneHasEnded)
{
    EXPECT_EQ(kind_of(2017, Question::other), ErrorKind::missing);
    EXPECT_TRUE(means_ended(2017));
    EXPECT_TRUE(means_ended(2021));
    EXPECT_FALSE(means_ended(2002));
}

TEST(SlurmErrors, OfAControllerOfAnotherReleaseNameBoth)
{
    // 22.05's client and 24.11's controller.
    const std::string message =
        "auth_g_unpack: authentication plugin unknown(1007) not found; slurm_unpack_received_msg: "
        "[[localhost]:17817] Invalid Protocol Version 10752 from uid=4294967295: Incompatible "
        "versions of client and server code; slurm_unpack_received_msg: [[localhost]:17817] "
        "Incompatible versions of client and server code";
    EXPECT_EQ(error_of(-1, Question::other, "can't ask", message).text,
              "can't ask: slurmctld 24.11 and gpuq's libslurm " + library_version() +
                  " are incompatible releases; build gpuq with the cluster's "
                  "own Slurm");
    for (const char* unknown : {"Invalid Protocol Version 99999999999",
                                "Invalid Protocol Version 0", "Invalid Protocol Version x", ""}) {
        const auto text = protocol_mismatch(1005, unknown);
        ASSERT_TRUE(text) << unknown;
        EXPECT_THAT(*text, HasSubstr("slurmctld and gpuq's libslurm " + library_version()));
    }
    // 24.11's client and 22.05's controller.
    EXPECT_THAT(*protocol_mismatch(5005, ""), HasSubstr("older than gpuq's libslurm"));
    EXPECT_FALSE(protocol_mismatch(1800, "Unable to contact slurm controller"));
}

TEST(SlurmErrors, OfMungeNameTheSocket)
{
    const std::string message =
        "If munged is up, restart with --num-threads=10; Munge encode failed: Failed to connect to "
        "\"/run/munge/munge.socket.2\": Connection refused; slurm_send_node_msg: auth_g_create: "
        "REQUEST_PARTITION_INFO has authentication error";
    EXPECT_EQ(
        error_of(1800, Question::other, "can't ask", message).text,
        "can't ask: munged of this machine, which authenticates requests to Slurm, does not "
        "respond; an operator must restart it (Failed to connect to \"/run/munge/munge.socket.2\": "
        "Connection refused)");
    EXPECT_FALSE(munge_failure("Unable to contact slurm controller"));
}

TEST(SlurmErrors, TheTextIsSlurmsOwn)
{
    EXPECT_EQ(error_of(2014, Question::start, "refused", "").text,
              "refused: Requested node configuration is not available");
    EXPECT_EQ(error_of(2014, Question::start, "refused", "ask Alice").text,
              "refused: ask Alice (Requested node configuration is not available)");
    EXPECT_EQ(error_of(-1, Question::start, "refused", "ask Alice").text, "refused: ask Alice");
    EXPECT_EQ(error_of(2050, Question::start, "refused", "gpuq: no queue; gpuq: too long").text,
              "refused: no queue; too long");
    EXPECT_THAT(error_of(2050, Question::start, "refused", "").text, HasSubstr("gpuq ls"));
}

TEST(SlurmWords, LoseTheirPrefixesAndLineEnds)
{
    EXPECT_EQ(tidy("gpuq: error: no such thing\n"), "no such thing");
    EXPECT_EQ(tidy("error: one\nerror: two\r\n\n"), "one; two");
    EXPECT_EQ(tidy("fatal: a reason:\nthat error: of yours"), "a reason: that error: of yours");
    EXPECT_EQ(tidy(""), "");
}

TEST(SlurmWords, KeepTheTerminalClean)
{
    std::FILE* const before = stderr;
    {
        const MessageCapture message("a test");
        std::fputs("gpuq: error: first\n", stderr);
        std::fputs("second\n", stderr);
        EXPECT_EQ(message.text(), "first; second");
    }
    EXPECT_EQ(stderr, before);
    EXPECT_EQ(MessageCapture("another").text(), ""); // a new object starts empty
}

} // namespace
} // namespace gpuq::slurm
