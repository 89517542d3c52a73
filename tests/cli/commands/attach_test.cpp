// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/fake_services.h"
#include "ports/job.h"
#include "runs/run_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using fakes::RunOnDisk;

TEST(Attach, IsRefusedInsideTheRunItself)
{
    FakeServices services;
    RunOnDisk run(services.memory, fakes::some_run(services.time.now() - 10min, "train", 1));
    run.submitted(JobId{7});
    Job job;
    job.id = JobId{7};
    job.comment = job_comment(run.key());
    job.state = JobState::running;
    services.slurm.jobs.push_back(job);
    services.variables["GPUQ_RUN_ID"] = run.key().text();
    const Use result = use(k_attach_verb, services, {"last"}, {});
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, "can't attach to run 7 from inside it: its output would loop; use "
                          "gpuq attach 7 in another terminal");
}

} // namespace
} // namespace gpuq::cli
