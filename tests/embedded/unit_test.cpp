// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

using testing::HasSubstr;

TEST(Unit, RunsTheSameCommandsInsideADelegatedCgroup)
{
    const std::string text = unit_text("/usr/bin/gpuq", "/var/lib/gpuq/cluster");
    EXPECT_THAT(text,
                HasSubstr("\nExecStart=/usr/bin/gpuq cluster up --dir /var/lib/gpuq/cluster\n"));
    EXPECT_THAT(text,
                HasSubstr("\nExecStop=/usr/bin/gpuq cluster down --dir /var/lib/gpuq/cluster\n"));
    EXPECT_THAT(text, HasSubstr("\nDelegate=yes\n"));
    EXPECT_THAT(text, HasSubstr("\nEnvironment=GPUQ_CLUSTER_UNIT=1\n"));
    EXPECT_THAT(text, HasSubstr("\nWantedBy=multi-user.target\n"));
}

TEST(Unit, GivesNewPeopleAnAccountOnlyWhileTheClusterIsUp)
{
    EXPECT_THAT(users_path_text(), HasSubstr("\nPathChanged=/etc/passwd\n"));
    const std::string text = users_service_text("/usr/bin/gpuq", "/var/lib/gpuq/cluster");
    EXPECT_THAT(text, HasSubstr("\nRequisite=gpuq-cluster.service\n"));
    EXPECT_THAT(text,
                HasSubstr("\nExecStart=/usr/bin/gpuq cluster up --dir /var/lib/gpuq/cluster\n"));
}

} // namespace
} // namespace gpuq::embedded
