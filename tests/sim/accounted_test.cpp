// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/accounted.h"

#include "core/timestamp.h"
#include "policy/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const Time k_now = *time_from_iso8601("2026-11-20T12:00:00Z");
const std::string k_header = "Submit|JobID|State|Partition|Eligible|Start|ReqTRES|AllocTRES\n";
const std::string k_gpu = "cpu=4,gres/gpu=1";

AccountedWaits waits_in(const std::string& lines)
{
    return parse_waits(k_header + lines, "sacct", k_now).value();
}

TEST(AccountedWaits, CountFromWhenAJobCouldStart)
{
    const auto found =
        waits_in("2026-11-20T10:00:00|1|COMPLETED|short|2026-11-20T10:00:00|2026-11-20T10:05:00|" +
                 k_gpu + "|" + k_gpu + ",gres/gpu:k80=1\n" +
                 // Eligible at 11:00, after a dependency.
                 "2026-11-20T10:00:00|2|RUNNING|short|2026-11-20T11:00:00|2026-11-20T11:00:07|" +
                 k_gpu + "|" + k_gpu + "\n");
    EXPECT_THAT(found.waits, ElementsAre(AccountedWait{"short", "k80", 5min, true},
                                         AccountedWait{"short", "", 7s, true}));
}

TEST(AccountedWaits, OfJobsThatStillWaitAreLowerBounds)
{
    const auto found = waits_in(
        "2026-11-20T10:00:00|1|PENDING|short,long|2026-11-20T11:00:00|Unknown|" + k_gpu + "|\n" +
        // The first is held; the second is not eligible before 13:00.
        "2026-11-20T10:00:00|2|PENDING|short|Unknown|Unknown|" + k_gpu + "|\n" +
        "2026-11-20T10:00:00|3|PENDING|short|2026-11-20T13:00:00|Unknown|" + k_gpu + "|\n");
    EXPECT_THAT(found.waits, ElementsAre(AccountedWait{"short", "", 1h, false}));
}

TEST(AccountedWaits, LeaveOutWhatNeverStartedAndWhatHasNoGpu)
{
    const auto found = waits_in(
        "2026-11-20T10:00:00|1|CANCELLED by 1000|short|2026-11-20T10:00:00|2026-11-20T11:00:00|" +
        k_gpu + "|\n" + "2026-11-20T10:00:00|2|CANCELLED|short|2026-11-20T10:00:00|None|" + k_gpu +
        "|\n" + "2026-11-20T10:00:00|3|COMPLETED|short|2026-11-20T10:00:00|2026-11-20T10:05:00|" +
        "cpu=4|cpu=4\n");
    EXPECT_THAT(found.waits, IsEmpty());
    EXPECT_EQ(found.withdrawn, 2U);
    const auto refused =
        waits_in("2026-11-20T10:00:00|1|FAILED|short|2026-11-20T10:00:00|2026-11-20T10:00:00|" +
                 k_gpu + "|\n");
    EXPECT_EQ(refused, AccountedWaits{});
}

TEST(AccountedWaits, CountTheUsersOfAQueueAndOnlyLateSubmissions)
{
    const std::string header =
        "Submit|JobID|State|Partition|Eligible|Start|ReqTRES|AllocTRES|User\n";
    const auto job = [](const std::string& hour, const std::string& user) {
        const std::string at = "2026-11-20T" + hour + ":00:00|";
        return at + "1|COMPLETED|short|" + at + at + k_gpu + "|" + k_gpu + "|" + user + "\n";
    };
    const auto found = parse_waits(header + job("09", "ada") + job("10", "bob") + job("11", "bob"),
                                   "sacct", k_now, k_now - 2h)
                           .value();
    EXPECT_EQ(waits_by_partition(found.waits)[0].users, 1U);
    EXPECT_EQ(waits_by_partition(found.waits)[0].all.jobs, 2U);
    EXPECT_EQ(waits_by_partition(found.waits)[0].queue, "short");
}

TEST(AccountedWaits, NameTheLineThatIsNone)
{
    EXPECT_EQ(parse_waits("Submit|JobID\n", "sacct", k_now).error().text,
              "sacct:1: the header has no Eligible");
    EXPECT_EQ(parse_waits(k_header + "a|b\n", "sacct", k_now).error().text,
              "sacct:2: 2 fields; the header has 8");
    EXPECT_FALSE(parse_waits(k_header + "soon|1|PENDING|s|x|y|" + k_gpu + "|\n", "sacct", k_now));
    EXPECT_THAT(parse_waits("", "sacct", k_now)->waits, IsEmpty());
}

policy::Rules rules()
{
    return policy::Rules(policy::read_policy("version: 1\n"
                                             "pools:\n"
                                             "  all: {nodes: n1, gpus: 'k80:4'}\n"
                                             "queues:\n"
                                             "  short: {time: 2h, pools: all,\n"
                                             "    wait: {p50: 5m, p95: 30m, max: 2h}}\n"
                                             "  long: {time: 48h, pools: all}\n",
                                             "p")
                             ->policy);
}

std::vector<AccountedWait> jobs(int count, Seconds wait, const std::string& model = "k80")
{
    return std::vector<AccountedWait>(static_cast<std::size_t>(count),
                                      {"short", model, wait, true});
}

TEST(WaitsByQueue, HoldTheTargetsOfThePolicy)
{
    const policy::Rules policy = rules();
    auto waits = jobs(19, 1min);
    waits.push_back({"short", "p100", 90min, true});
    waits.push_back({"nobody's", "k80", 48h, true});
    const auto queues = waits_by_queue(policy, waits);
    ASSERT_THAT(queues, SizeIs(2));
    EXPECT_EQ(queues[0].all, (WaitFigures{20, 0, 1min, 1min, 90min}));
    EXPECT_THAT(queues[0].models,
                ElementsAre(std::pair(std::string("k80"), WaitFigures{19, 0, 1min, {}, 1min}),
                            std::pair(std::string("p100"), WaitFigures{1, 0, {}, {}, 90min})));
    EXPECT_THAT(queues[0].targets,
                ElementsAre(KeptTarget{50, 5min, 1min, 6}, KeptTarget{95, 30min, 1min, 6},
                            KeptTarget{100, 2h, 90min, 6}));
    EXPECT_EQ(queues[0].targets[2].met(), true);
    EXPECT_EQ(queues[1], (QueueWaits{"long", {}, {}, {}}));
}

TEST(WaitsByQueue, KnowNothingOfTooFewJobs)
{
    const policy::Rules policy = rules();
    const auto none = waits_by_queue(policy, {});
    for (const KeptTarget& target : none[0].targets) {
        EXPECT_EQ(target.met(), std::nullopt);
    }
    const auto few = waits_by_queue(policy, jobs(19, 3h));
    EXPECT_EQ(few[0].targets[0].met(), false);
    EXPECT_EQ(few[0].targets[1].met(), std::nullopt);
    EXPECT_EQ(few[0].targets[2].met(), false);
}

TEST(WaitsByQueue, LetThoseWhoWaitBreakATarget)
{
    const policy::Rules policy = rules();
    auto waits = jobs(1, 1min);
    waits.push_back({"short", "", 3h, false});
    const auto queues = waits_by_queue(policy, waits);
    EXPECT_EQ(queues[0].all, (WaitFigures{2, 1, 1min, {}, 3h}));
    EXPECT_EQ(queues[0].targets[2].met(), false);
}

} // namespace
} // namespace gpuq::sim
