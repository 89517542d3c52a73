// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/memory_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

MemoryCounts of_job(std::uint64_t count)
{
    return {std::map<std::string, std::uint64_t>{{"/job_1", count}}, count};
}

TEST(MemoryReports, ReturnsEachKillOnce)
{
    MemoryReports reports(of_job(3));
    EXPECT_THAT(reports.update("n1", of_job(3), {}), IsEmpty());
    EXPECT_THAT(reports.update("n1", of_job(5), {}),
                ElementsAre(FieldsAre("n1", MemoryKills{2, 0})));
    EXPECT_THAT(reports.update("n1", of_job(5), {}), IsEmpty());
    EXPECT_EQ(reports.all(), (MemoryKills{2, 0}));
    EXPECT_TRUE(reports.is_exact());
}

TEST(MemoryReports, CountANodeOnceThatTheRankNotesNameToo)
{
    MemoryReports reports(of_job(0));
    RankNotes notes;
    notes.memory = {{"n1", {1, 0}}, {"n2", {2, 1}}};
    EXPECT_THAT(
        reports.update("n1", of_job(1), notes),
        ElementsAre(FieldsAre("n1", MemoryKills{1, 0}), FieldsAre("n2", MemoryKills{2, 1})));
    notes.memory["n1"] = {2, 0};
    EXPECT_THAT(reports.update("n1", of_job(2), notes),
                ElementsAre(FieldsAre("n1", MemoryKills{1, 0})));
    EXPECT_EQ(reports.all(), (MemoryKills{4, 1}));
}

TEST(MemoryReports, AreDueAtOnceAndThenPeriodically)
{
    MemoryReports reports(of_job(0));
    const MemoryReports::Steady start{1h};
    EXPECT_TRUE(reports.is_due(start, 5s));
    EXPECT_FALSE(reports.is_due(start + 4s, 5s));
    EXPECT_EQ(reports.next_check(), start + 5s);
    EXPECT_TRUE(reports.is_due(start + 5s, 5s));
}

} // namespace
} // namespace gpuq::supervisor
