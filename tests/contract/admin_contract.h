// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

namespace gpuq {

/// Makes the Admin under test, which must have an account `default` and one node.
struct AdminMaker {
    std::string name;
    std::function<std::shared_ptr<Admin>()> make;
};

/// The behaviour that govern relies on, checked against the fake and a real Slurm.
class AdminContract : public ::testing::TestWithParam<AdminMaker> {
protected:
    using Kind = SlurmObject::Kind;
    std::shared_ptr<Admin> m_admin = GetParam().make();
    const std::string m_qos = "gpuq_contract";

    void TearDown() override
    {
        EXPECT_TRUE(m_admin->remove(Kind::reservation, "contract"));
        EXPECT_TRUE(m_admin->remove(Kind::qos, m_qos));
    }

    std::optional<SlurmObject> actual(Kind kind, const std::string& name)
    {
        const auto state = m_admin->state();
        EXPECT_TRUE(state) << (state ? "" : state.error().text);
        const auto found =
            std::find_if(state->objects.begin(), state->objects.end(), [&](const auto& object) {
                return object.kind == kind && object.name == name;
            });
        return found == state->objects.end() ? std::nullopt : std::optional(*found);
    }

    /// Sets the object and checks that it reads back unchanged.
    void expect_set(const SlurmObject& object)
    {
        const auto done = m_admin->set(object);
        ASSERT_TRUE(done) << done.error().text;
        const auto now = actual(object.kind, object.name);
        ASSERT_TRUE(now);
        EXPECT_EQ(now->fields, object.fields);
    }
};

TEST_P(AdminContract, AQosIsExactlyAsItWasSet)
{
    EXPECT_FALSE(actual(Kind::qos, m_qos));
    expect_set({Kind::qos,
                m_qos,
                {{"Flags", "DenyOnLimit"},
                 {"GrpJobs", "9"},
                 {"GrpSubmit", "10"},
                 {"GrpTRES", "gres/gpu=8"},
                 {"GrpTRESRunMins", "gres/gpu=600"},
                 {"MaxJobsPA", "6"},
                 {"MaxJobsPU", "3"},
                 {"MaxSubmitPA", "7"},
                 {"MaxSubmitPU", "4"},
                 {"MaxTRES", "gres/gpu=2,node=1"},
                 {"MaxTRESPA", "gres/gpu=5"},
                 {"MaxTRESPU", "gres/gpu=2"},
                 {"MaxTRESRunMinsPA", "gres/gpu=90"},
                 {"MaxTRESRunMinsPU", "gres/gpu=60"}},
                0});
    expect_set({Kind::qos, m_qos, {{"MaxTRES", "gres/gpu=3"}, {"MaxSubmitPU", "5"}}, 0});
    expect_set({Kind::qos, m_qos, {}, 0});
    ASSERT_TRUE(m_admin->remove(Kind::qos, m_qos));
    EXPECT_FALSE(actual(Kind::qos, m_qos));
    EXPECT_TRUE(m_admin->remove(Kind::qos, m_qos)) << "one that is not there is no error";
}

TEST_P(AdminContract, WhoHasAQosIsExactlyWhoWasGivenIt)
{
    ASSERT_TRUE(m_admin->set({Kind::qos, m_qos, {}, 0}));
    expect_set({Kind::access, m_qos, {{"accounts", "default"}, {"users", ""}}, 0});
    ASSERT_TRUE(m_admin->set({Kind::access, m_qos, {{"accounts", ""}, {"users", ""}}, 0}));
    const auto nobody = actual(Kind::access, m_qos);
    EXPECT_TRUE(!nobody || nobody->fields.at("accounts").empty());
    // Granting access to the root account removes all exclusions (`without`).
    ASSERT_TRUE(m_admin->set({Kind::access, m_qos, {{"accounts", "root"}, {"users", ""}}, 0}));
    const auto all = actual(Kind::access, m_qos);
    ASSERT_TRUE(all);
    EXPECT_THAT(all->fields.at("accounts"), testing::HasSubstr("root"));
    EXPECT_FALSE(all->fields.contains("without"));
}

TEST_P(AdminContract, SharesOfAnAccount)
{
    expect_set({Kind::share, "default", {{"fairshare", "7"}}, 0});
    expect_set({Kind::share, "default", {{"fairshare", "1"}}, 0});
}

TEST_P(AdminContract, AReservationIsAsItWasSet)
{
    const auto state = m_admin->state();
    ASSERT_TRUE(state);
    SlurmObject course{Kind::reservation,
                       "contract",
                       {{"Nodes", state->nodes.front()},
                        {"StartTime", "2037-11-03T13:00:00"},
                        {"Duration", "240"},
                        {"Flags", "WEEKLY"},
                        {"Users", ""},
                        {"Accounts", "default"}},
                       0};
    expect_set(course);
    course.fields["Flags"] = "";
    course.fields["Duration"] = "60";
    expect_set(course);
    ASSERT_TRUE(m_admin->remove(Kind::reservation, "contract"));
    EXPECT_FALSE(actual(Kind::reservation, "contract"));
}

TEST_P(AdminContract, AFileIsWhatWasWritten)
{
    EXPECT_EQ(m_admin->read("contract").value(), std::nullopt);
    ASSERT_TRUE(m_admin->write("contract", "one\n"));
    ASSERT_TRUE(m_admin->write("contract", "two\n"));
    EXPECT_EQ(m_admin->read("contract").value(), "two\n");
    EXPECT_EQ(m_admin->rights("contract").value().value().mode, 0644U);
    ASSERT_TRUE(m_admin->erase("contract"));
    EXPECT_TRUE(m_admin->erase("contract"));
    EXPECT_EQ(m_admin->read("contract").value(), std::nullopt);
    EXPECT_EQ(m_admin->rights("contract").value(), std::nullopt);
}

TEST_P(AdminContract, OneHoldsItAtATime)
{
    auto first = m_admin->hold();
    ASSERT_TRUE(first);
    const auto second = m_admin->hold();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, Error::Kind::busy);
    first->reset();
    EXPECT_TRUE(m_admin->hold());
}

TEST_P(AdminContract, TheControllerAnswers)
{
    EXPECT_TRUE(m_admin->ping());
    EXPECT_TRUE(m_admin->jobs());
    EXPECT_TRUE(m_admin->loaded_script());
}

} // namespace gpuq
