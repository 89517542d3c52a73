// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Save : public testing::Test {
protected:
    Save()
        : m_run(m_services.memory, fakes::some_run(m_services.time.now() - 10min, "train", 1))
    {
        m_run.submitted(JobId{7});
    }
    Use save(const std::vector<std::string>& arguments)
    {
        return use(k_save_verb, m_services, arguments);
    }
    bool is_reported()
    {
        return m_services.memory.files.contains(layout::save_file(m_run.key(), LinkNumber{1}));
    }

    FakeServices m_services;
    fakes::RunOnDisk m_run;
};

TEST_F(Save, TellsARunningProgramOnce)
{
    m_run.started(JobId{7}, m_services.time.now() - 5min);
    m_run.beat(JobId{7}, m_services.time.now());
    const Use first = save({"train"});
    EXPECT_EQ(first.status, 0);
    EXPECT_THAT(first.err, HasSubstr("run 7 (train) is asked to save and continue"));
    EXPECT_TRUE(is_reported());
    EXPECT_THAT(save({"7"}).err, HasSubstr("was asked before and has not saved since"));
}

TEST_F(Save, NeedsAProgramThatRuns)
{
    const Use waits = save({"train"});
    EXPECT_EQ(waits.status, 121);
    m_run.ended({0, Cause::finished, "", m_services.time.now()});
    EXPECT_EQ(save({"train"}).status, 121);
    EXPECT_FALSE(is_reported());
    EXPECT_EQ(save({}).status, 2);
    EXPECT_EQ(save({"nobody"}).status, 2);
}

} // namespace
} // namespace gpuq::cli
