// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/use_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

UseRecord job(std::uint32_t id, const std::string& note, std::chrono::seconds elapsed = 100s)
{
    UseRecord record;
    record.use = {JobId{id}, "ada", "physics", "short", elapsed, 1, {}};
    record.whole = true;
    record.comment = "gpuq:KEY " + note;
    return record;
}

UseRecord with_memory(UseRecord record, std::uint64_t had, std::optional<std::uint64_t> used)
{
    record.memory_mib = had;
    record.most_memory_mib = used;
    return record;
}

TEST(UseAdvice, NamesIdleGpusOfTheJobsThatLeftThem)
{
    const auto advice =
        advice_on({job(1, "busy=10 idle=70 unknown=20"), job(2, "busy=10 idle=90 unknown=0"),
                   job(3, "busy=90 idle=10 unknown=0")});
    ASSERT_THAT(advice, SizeIs(1));
    EXPECT_EQ(advice[0].code, UseAdvice::Code::idle_gpus);
    EXPECT_EQ(advice[0].jobs, 2);
    EXPECT_THAT(advice[0].text,
                HasSubstr("the GPUs of 2 jobs were idle for 88 % of the measured time"));
}

TEST(UseAdvice, SaysNothingOfWhatNobodyHasMeasured)
{
    // Cases: unknown use, short run, too little measured, well used.
    EXPECT_THAT(advice_on({job(1, ""), job(2, "busy=0 idle=50 unknown=0", 50s),
                           job(3, "busy=0 idle=20 unknown=80"), job(4, "busy=51 idle=49 unknown=0"),
                           with_memory(job(5, ""), 16384, {}), with_memory(job(6, ""), 16384, 0)}),
                IsEmpty());
    EXPECT_THAT(advice_on({}), IsEmpty());
}

TEST(UseAdvice, NamesMemoryThatWasNotUsed)
{
    const auto advice =
        advice_on({with_memory(job(1, ""), 16384, 900), with_memory(job(2, ""), 16384, 16000),
                   with_memory(job(3, ""), 2048, 1)});
    ASSERT_THAT(advice, SizeIs(1));
    EXPECT_EQ(advice[0].code, UseAdvice::Code::unused_memory);
    EXPECT_EQ(advice[0].jobs, 1);
    EXPECT_THAT(advice[0].text, HasSubstr("1 job used 6 % of the memory that it had"));
}

} // namespace
} // namespace gpuq
