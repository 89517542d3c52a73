// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/grants.h"

#include "ports/accounting.h"

#include <gtest/gtest.h>

namespace gpuq::slurm {
namespace {

using namespace std::chrono_literals;

/// root > lab (600 min) > project; ada in project (60 min) and, without any limit, in free.
std::vector<Association> a_site()
{
    return {{"root", "", "", {}, 0},        {"lab", "", "root", 600, 90},
            {"project", "", "lab", {}, 80}, {"project", "ada", "", 60, 70},
            {"project", "ada", "", {}, 0}, // in one partition
            {"project", "bob", "", {}, 10}, {"free", "", "root", {}, 0},
            {"free", "ada", "", {}, 0}};
}

TEST(Grants, AreThoseOfTheUserTheAccountAndAllAboveIt)
{
    const std::vector<AccountGrants> expected = {
        {"free", true, {}},
        {"project", true, {{"ada in project", 60min, 70s}, {"lab", 600min, 90s}}}};
    EXPECT_EQ(grants_of("ada", a_site()), expected);
    EXPECT_EQ(grants_of("eve", a_site()), std::vector<AccountGrants>{});
}

TEST(Grants, WhatIsNotShownIsNotTakenForNoLimit)
{
    const std::vector<Association> shown = {{"project", "ada", "", {}, {}}};
    EXPECT_EQ(grants_of("ada", shown), (std::vector<AccountGrants>{{"project", false, {}}}));
}

TEST(Grants, ATreeThatRunsInACircleEnds)
{
    const std::vector<Association> broken = {
        {"a", "ada", "", {}, {}}, {"a", "", "b", {}, {}}, {"b", "", "a", {}, {}}};
    EXPECT_EQ(grants_of("ada", broken).size(), 1U);
}

} // namespace
} // namespace gpuq::slurm
