// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/added_worker.h"

#include "core/layout.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_cluster.h"
#include "fakes/fake_credentials.h"
#include "fakes/memory_store.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/idle.h"
#include "runs/records/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// The node of a worker that adds another one.
struct AddingWorker {
    fakes::MemoryStore store;
    fakes::FakeCluster cluster;
    fakes::FakeClock clock;
    fakes::FakeSecretFiles files;
    fakes::FakeLoginTickets tickets;
    Run run{RunKey::make(clock.now(), {1}), "lab", "ada", "login", "1", clock.now(), {}, {"A=1"}};
    AddedWorker added{run.key, RunKey::make(clock.now(), {2}), 5};

    AddingWorker()
    {
        Request& request = run.request;
        request.program = {"/opt/gpuq-supervisor", "work", "/state", "SWEEP"};
        request.name = "my-w2-w3";
        request.work_dir = "/data";
        request.walltime = std::chrono::minutes(60);
        request.queue = "gpu";
        request.gpus.count = 2;
        request.gpus.model = "k80";
        request.after = JobId{7};
        request.sweep = SweepWorker{RunKey::make(clock.now(), {3}), 3};
        EXPECT_TRUE(store.write(layout::run_json(run.key), to_json(run)));
        EXPECT_TRUE(store.write(layout::walltime_json(run.key), "{}"));
    }

    Result<JobId> submit()
    {
        Patience patience;
        patience.notice = [](const std::string&) {};
        patience.pause = [this](std::chrono::milliseconds time) {
            clock.advance(time);
            return true;
        };
        return submit_worker(store, cluster, clock, files, tickets, added, patience);
    }
};

TEST(AddedWorker, IsQueuedLikeTheOtherOneByOneRequest)
{
    AddingWorker worker;
    ASSERT_TRUE(worker.store.write(idle_rules_json(worker.run.key), "rules"));
    ASSERT_TRUE(worker.submit());
    EXPECT_THAT(worker.cluster.requests, ElementsAre("submit"));
    const JobSpec& spec = worker.cluster.specs.front();
    EXPECT_EQ(spec.name, "my-w2-w5");
    EXPECT_EQ(spec.partition, "gpu");
    EXPECT_EQ(spec.gpus_per_node, 2);
    EXPECT_EQ(spec.gpu_model, "k80");
    EXPECT_EQ(spec.comment, "gpuq:" + worker.added.key.text() + ":sweep");
    EXPECT_FALSE(spec.after_ok);
    EXPECT_THAT(worker.cluster.scripts.front(),
                AllOf(HasSubstr("/opt/gpuq-supervisor"), HasSubstr(worker.added.key.text())));
    const auto run = read_run(worker.store, worker.added.key);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->request.sweep->number, 5);
    EXPECT_EQ(run->environment, worker.run.environment);
    EXPECT_EQ(*worker.store.read(idle_rules_json(worker.added.key)), "rules");
    EXPECT_TRUE(worker.store.size(layout::job_json(worker.added.key, LinkNumber{1})));
}

TEST(AddedWorker, LeavesNoTraceIfSlurmRefusesIt)
{
    AddingWorker worker;
    worker.cluster.refusal = "Access/permission denied";
    const auto files = worker.store.files;
    const auto submitted = worker.submit();
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error(), fail(Error::Kind::denied, "Access/permission denied"));
    EXPECT_EQ(worker.store.files, files);
    EXPECT_THAT(worker.cluster.requests, ElementsAre("submit"));
}

TEST(AddedWorker, GetsTheTicketsThatTheOtherOneHasNow)
{
    AddingWorker worker;
    const std::string& like = worker.run.key.text();
    const CredentialPlan plan{"ada@LAB", "/keep/" + like, WhenShort::run, "", "", true};
    ASSERT_TRUE(worker.store.write(credential_plan_json(worker.run.key), to_json(plan)));
    worker.tickets.answer = std::string("cache");
    worker.tickets.bearer = std::string("token");
    ASSERT_TRUE(worker.submit());
    const std::string directory = "/keep/" + worker.added.key.text();
    EXPECT_THAT(
        worker.files.directories[directory],
        UnorderedElementsAre(testing::Pair(k_delivered, "cache"), testing::Pair(k_token, "token")));
    const auto own =
        credential_plan_from_json(*worker.store.read(credential_plan_json(worker.added.key)));
    ASSERT_TRUE(own);
    EXPECT_EQ(own->directory, directory);
    EXPECT_EQ(own->principal, plan.principal);
}

TEST(AddedWorker, IsNotLikeARunWithoutASweep)
{
    AddingWorker worker;
    worker.run.request.sweep.reset();
    ASSERT_TRUE(worker.store.write(layout::run_json(worker.run.key), to_json(worker.run)));
    EXPECT_EQ(worker.submit().error().kind, Error::Kind::usage);
    EXPECT_TRUE(worker.cluster.requests.empty());
}

} // namespace
} // namespace gpuq
