// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/dry_run.h"

#include "cli/fake_services.h"
#include "cli/json_page.h"
#include "cli/start/verbs.h"
#include "core/layout.h"
#include "core/timestamp.h"
#include "runs/insight/overview_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

const Time k_now{1'795'000'000s}; // 11:06:40 UTC

class StartText : public testing::Test {
protected:
    StartText()
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
        overview.cluster = "lab";
        overview.at = overview.whole_at = k_now - 10s;
        overview.pools = {pool("k80", 2, {}), pool("a100", 0, k_now + 40min)};
        overview.pools[1].forecast = StartForecast{k_now + 5min, k_now + 20min, ""};
        spec.partition = "gpu,long";
        spec.gpus_per_node = 1;
    }

    static PoolUse pool(const char* model, int free, std::optional<Time> next)
    {
        PoolUse use;
        use.pool.model = model;
        use.pool.queues = {"gpu"};
        use.pool.total = 4;
        use.pool.free = use.pool.most_on_one_node = free;
        use.next = next;
        return use;
    }

    std::string text() const
    {
        const auto start = expected_start(spec, overview, k_now);
        return start ? start_text(*start, spec, k_now) : "";
    }

    Overview overview;
    JobSpec spec;
};

TEST_F(StartText, OfFreeGpus)
{
    EXPECT_EQ(text(), "starts at once: 2 k80 were free 10 s ago");
    overview.waiting = WaitingLine{3, 7};
    EXPECT_EQ(text(), "2 k80 were free 10 s ago, but 3 jobs wait as well");
}

TEST_F(StartText, OfGpusWithoutAModel)
{
    overview.pools.resize(1);
    overview.pools[0].pool.model = "";
    EXPECT_EQ(text(), "starts at once: 2 GPUs were free 10 s ago");
    overview.pools[0].pool.free = overview.pools[0].pool.most_on_one_node = 1;
    EXPECT_EQ(text(), "starts at once: 1 GPU was free 10 s ago");
    spec.gpus_per_node = 2;
    EXPECT_EQ(text(), "waits: a node had at most 1 of 2 GPUs free 10 s ago");
}

TEST_F(StartText, OfAFullPoolHasTheForecast)
{
    spec.gpu_model = "a100";
    EXPECT_EQ(
        text(),
        "waits: no a100 was free 10 s ago; starts with a probability of 50 % by 11:11, 90 % by "
        "11:26; the next one is free by 11:46 at the latest");
    spec.gpus_per_node = 2;
    EXPECT_EQ(
        text(),
        "waits: no a100 was free 10 s ago; one of them: 50 % by 11:11, 90 % by 11:26; the next "
        "one is free by 11:46 at the latest");
    overview.whole_at = k_now - 1h;
    EXPECT_EQ(text(), "waits: no a100 was free 10 s ago");
}

TEST_F(StartText, OfMoreGpusThanOneNodeHas)
{
    spec.gpus_per_node = 3;
    EXPECT_EQ(text(), "waits: a node had at most 2 of 3 k80 free 10 s ago");
    overview.pools[0].nodes = {{"n0", 2, 0}, {"n1", 3, 1}};
    EXPECT_EQ(text(), "waits: a node had at most 2 of 3 k80 free 10 s ago");
    spec.gpus_per_node = 4;
    EXPECT_EQ(text(), "cannot start: the nodes of the queue have at most 3 GPUs each");
}

TEST_F(StartText, IsEmptyIfItIsNotKnown)
{
    EXPECT_NE(text(), "");
    overview.at = k_now - 5min;
    EXPECT_EQ(text(), "");
    overview.at = k_now;
    spec.partition = "other";
    EXPECT_EQ(text(), "");
    spec.partition = "gpu";
    spec.gpus_per_node = 0;
    EXPECT_EQ(text(), "");
    spec.gpus_per_node = 1;
    overview.pools[0].pool.free.reset();
    EXPECT_EQ(text(), "");
}

TEST_F(StartText, IsPrintedByADryRun)
{
    FakeServices services;
    services.slurm.queues = {{.name = "gpu", .max_time = 48h, .is_default = true}};
    overview.at = services.time.now();
    (void)services.memory.write(layout::overview("lab"), to_json(overview));
    const Use done = use(k_run_verb, services, {"--dry-run", "/bin/true"});
    EXPECT_THAT(done.err, testing::HasSubstr("gpuq: starts at once: 2 k80 were free 0 s ago\n"));
}

TEST_F(StartText, IsInTheDocumentWithItsBasis)
{
    FakeServices services;
    services.slurm.queues = {{.name = "gpu", .max_time = 48h, .is_default = true}};
    const Time now = services.time.now();
    overview.at = now - 10s;
    overview.whole_at = now - 60s;
    overview.pools = {pool("a100", 0, now + 40min)};
    overview.pools[0].forecast = StartForecast{now + 5min, now + 20min, ""};
    overview.waiting = WaitingLine{3, 7};
    overview.run_times.tables[0][3].ended = 12;
    (void)services.memory.write(layout::overview("lab"), to_json(overview));
    const std::string document =
        use(k_run_verb, services, {"--dry-run", "/bin/true"}, {.json = true}).out;
    EXPECT_EQ(members_in(document), documented_in("gpuq run \\-\\-dry\\-run"));
    const auto time = to_iso8601;
    for (const std::string& member :
         {std::string(R"("answer": "waits")"), std::string(R"("model": "a100")"),
          std::string(R"("waiting_jobs": 3)"), std::string(R"("jobs_observed": 12)"),
          R"("asked_at": ")" + time(now - 10s), R"("jobs_asked_at": ")" + time(now - 60s),
          R"("start_p50": ")" + time(now + 5min), R"("start_p90": ")" + time(now + 20min),
          R"("next_free_at": ")" + time(now + 40min)}) {
        EXPECT_THAT(document, testing::HasSubstr(member));
    }
}

TEST_F(StartText, IsNullInTheDocumentIfItIsNotKnown)
{
    FakeServices services;
    services.slurm.queues = {{.name = "gpu", .max_time = 48h, .is_default = true}};
    EXPECT_THAT(use(k_run_verb, services, {"--dry-run", "/bin/true"}, {.json = true}).out,
                testing::HasSubstr(R"("start": null)"));
}

} // namespace
} // namespace gpuq::cli
