// SPDX-License-Identifier: GPL-2.0-or-later
#include "lua/submit_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::lua {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<SubmitScript> script(const std::string& body)
{
    return *load_submit_script("function slurm_job_submit(d, p, uid) " + body +
                               " end function slurm_job_modify(d, r, p, uid) " + body +
                               " end return slurm.SUCCESS");
}

TEST(SubmitScript, ReadsAndChangesAJobAsSlurmWould)
{
    const auto answer =
        script("if d.time_limit == slurm.NO_VAL and d.partition == nil and "
               "d.ntasks_per_node == slurm.NO_VAL16 then d.partition = 'a,b'; d.time_limit = 60; "
               "slurm.log_user('%s at %d', d.user_name, 3) end return slurm.SUCCESS")
            ->submit({{"user_name", "alice"}}, {});
    ASSERT_TRUE(answer) << answer.error().text;
    EXPECT_EQ(answer->status, 0);
    EXPECT_EQ(answer->fields,
              (ScriptFields{{"user_name", "alice"}, {"partition", "a,b"}, {"time_limit", 60U}}));
    EXPECT_THAT(answer->messages, ElementsAre("alice at 3"));
}

TEST(SubmitScript, KeepsUnlimitedApartFromUnset)
{
    const auto answer = script("d.qos = tostring(d.time_limit == slurm.INFINITE); return 0")
                            ->submit({{"time_limit", 0xffffffffU}}, {});
    EXPECT_EQ(answer->fields.at("qos"), ScriptFields::mapped_type("true"));
    EXPECT_EQ(answer->fields.at("time_limit"), ScriptFields::mapped_type(0xffffffffU));
}

TEST(SubmitScript, SeesTheReservationsThatAreOn)
{
    const auto loaded = script("return slurm.reservations.course and 7 or 0");
    EXPECT_EQ(loaded->submit({}, {"course"})->status, 7);
    EXPECT_EQ(loaded->submit({}, {})->status, 0);
}

TEST(SubmitScript, AChangeIsJudgedBesideTheJob)
{
    const auto answer = script("if uid ~= 0 and d.time_limit > r.time_limit then return 2051 end "
                               "return 0")
                            ->modify({{"time_limit", 60U}}, {{"time_limit", 61U}}, 1000);
    EXPECT_EQ(answer->status, 2051);
    EXPECT_EQ(answer->fields, (ScriptFields{{"time_limit", 61U}}));
}

TEST(SubmitScript, WhatSlurmdWouldOnlyLogIsAnError)
{
    EXPECT_THAT(script("error('no')")->submit({}, {}).error().text, HasSubstr("no"));
    EXPECT_THAT(script("return 'fine'")->submit({}, {}).error().text, HasSubstr("a string"));
    EXPECT_THAT(script("d.nope = 1 return 0")->submit({}, {}).error().text, HasSubstr("'nope'"));
    EXPECT_THAT(script("d.user_name = 'root' return 0")->submit({}, {}).error().text,
                HasSubstr("'user_name'"));
    EXPECT_THAT(script("d.qos = nil return 0")->submit({}, {}).error().text,
                HasSubstr("takes no nil"));
    EXPECT_THAT(load_submit_script("function(").error().text, HasSubstr("job_submit.lua:1:"));
    EXPECT_THAT(load_submit_script("return 0").error().text, HasSubstr("slurm_job_submit"));
}

} // namespace
} // namespace gpuq::lua
