// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/helper.h"

#include "ports/job.h"
#include "supervisor/stage.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

std::string answer_of(std::optional<Helper> helper)
{
    if (!helper) {
        return "no helper";
    }
    pollfd answer{helper->answer(), POLLIN, 0};
    ::poll(&answer, 1, 10'000);
    return helper->finish();
}

TEST(Helper, OutlivesWhatSlurmSendsToAllProcessesOfAJob)
{
    for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU}) {
        EXPECT_EQ(answer_of(Helper::fork([number] {
                      ::raise(number);
                      return std::string("done");
                  })),
                  "done")
            << number;
    }
}

TEST(Helper, GivesItsCommandsSignalsAsTheyAre)
{
    EXPECT_EQ(answer_of(Helper::fork([] {
                  const int status = std::system("kill -TERM $$");
                  return std::string(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? "ended"
                                                                                        : "not");
              })),
              "ended");
}

TEST(Helper, IsAnExecutedProgramWithItsInputs)
{
    Stage stage = Stage::shell("true");
    stage.slurm("state", std::to_string(static_cast<int>(JobState::running)));
    stage.slurm("walltime", "90");
    stage.slurm("grace", "60");
    const auto news = decoded<JobNews>(answer_of(Helper::execute(
        stage.options, {HelperWork::Kind::query_job, encoded(std::string("gpu"))})));
    ASSERT_TRUE(news);
    EXPECT_EQ(news->state, JobState::running);
    EXPECT_EQ(news->walltime, 90min);
    EXPECT_EQ(news->may_get_grace, true);
    EXPECT_TRUE(complete_once(completion_by_exec(stage.options, 7), 20s));
    EXPECT_TRUE(stage.slurm_calls().ends_with("complete 42 7\n")) << stage.slurm_calls();
}

TEST(HelperRequest, KeepsTheInput)
{
    const HelperWork work{HelperWork::Kind::note, encoded(90ms, JobEnd::over)};
    for (const auto& job : {std::optional(JobId{42}), std::optional<JobId>()}) {
        const auto request = decoded<HelperRequest>(encoded(HelperRequest{work, job}));
        ASSERT_TRUE(request);
        EXPECT_EQ(request->work.kind, work.kind);
        EXPECT_EQ(request->work.input, work.input);
        EXPECT_EQ(request->job, job);
    }
    EXPECT_FALSE(decoded<HelperRequest>(""));
    EXPECT_FALSE(decoded<HelperRequest>(
        encoded(HelperRequest{{static_cast<HelperWork::Kind>(99), ""}, JobId{42}})));
}

TEST(Helper, WithoutItsInputGivesNoAnswer)
{
    Stage stage = Stage::shell("true");
    for (const auto kind : {HelperWork::Kind::query_job, HelperWork::Kind::complete,
                            HelperWork::Kind::notice, HelperWork::Kind::conclude}) {
        EXPECT_EQ(answer_of(Helper::execute(stage.options, {kind, "\1"})), "");
    }
    EXPECT_EQ(stage.slurm_calls(), "");
}

TEST(JobNews, IsNoneFromATruncatedAnswer)
{
    const JobNews news{JobState::running, Time{5s}, 90min, true, false};
    const std::string answer = encoded(news);
    EXPECT_EQ(decoded<JobNews>(answer), news);
    for (std::size_t size = 0; size < answer.size(); ++size) {
        EXPECT_FALSE(decoded<JobNews>(answer.substr(0, size))) << size;
    }
    EXPECT_FALSE(decoded<JobNews>('\x7f' + answer.substr(1))) << "no state";
}

} // namespace
} // namespace gpuq::supervisor
