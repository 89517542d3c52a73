// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "core/layout.h"
#include "runs/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class RunElsewhere : public testing::Test {
protected:
    RunElsewhere()
    {
        services.slurm.queues = {{.name = "gpu", .max_time = 48h, .is_default = true}};
        std::string name = testing::TempDir() + "gpuq-run-XXXXXX";
        directory = ::mkdtemp(name.data());
    }
    ~RunElsewhere() override
    {
        std::filesystem::current_path(before);
        std::filesystem::remove_all(directory);
    }

    std::filesystem::path before = std::filesystem::current_path(), directory;
    FakeServices services;
};

TEST_F(RunElsewhere, HasItsDirectoryAndFindsItsFilesThere)
{
    std::filesystem::create_directory(directory / "proj");
    std::ofstream(directory / "proj/train.py") << "pass\n";
    std::filesystem::current_path(directory);
    const Use done = use(k_run_verb, services, {"--detach", "-D", "proj", "python3", "train.py"});
    ASSERT_EQ(done.status, 0) << done.err;
    const auto run = read_run(services.memory, all_runs(services.memory)->front());
    EXPECT_EQ(run->request.work_dir, (directory / "proj").string());
}

TEST_F(RunElsewhere, NeedsADirectory)
{
    const Use refused = use(k_run_verb, services, {"--detach", "-D", directory / "no", "true"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("-D: " + (directory / "no").string() + ": not found"));
    EXPECT_TRUE(services.slurm.requests.empty());
}

/// A run that is queued with this reason.
struct Queued {
    explicit Queued(const std::string& reason, const std::string& queue = "gpu")
    {
        services.slurm.queues = {{.name = queue, .max_time = 48h, .is_default = true}};
        services.slurm.no_gpu_free = true;
        services.slurm.reason_when_queued = reason;
        done = use(k_run_verb, services, {"--detach", "/bin/true"});
    }

    FakeServices services;
    Use done;
};

TEST(QueuedRun, StaysIfItMayStart)
{
    for (const char* reason :
         {"Resources", "PartitionDown", "ReqNodeNotAvail", "", "SomethingNew"}) {
        Queued run(reason);
        EXPECT_EQ(run.done.status, 0) << reason;
        EXPECT_EQ(run.services.slurm.jobs.back().state, JobState::pending) << reason;
    }
}

TEST(QueuedRun, StaysInSeveralQueuesSinceTheReasonIsThatOfOne)
{
    Queued run("PartitionNodeLimit", "day,night");
    EXPECT_EQ(run.done.status, 0) << run.done.err;
    EXPECT_EQ(run.services.slurm.jobs.back().partition, "day,night");
    EXPECT_EQ(run.services.slurm.jobs.back().state, JobState::pending);
}

TEST(QueuedRun, IsWithdrawnIfItWouldNeverStart)
{
    for (const char* reason : {"PartitionConfig", "PartitionNodeLimit", "AccountNotAllowed"}) {
        Queued run(reason);
        EXPECT_EQ(run.done.status, 121);
        EXPECT_THAT(run.done.err,
                    AllOf(HasSubstr("Slurm would never start it in queue gpu"), HasSubstr(reason)));
        const Job& job = run.services.slurm.jobs.back();
        EXPECT_EQ(job.state, JobState::cancelled);
        EXPECT_THAT(*all_runs(run.services.memory), IsEmpty());
        EXPECT_FALSE(run.services.memory.size(layout::job_index("lab", job.id)));
    }
}

} // namespace
} // namespace gpuq::cli
