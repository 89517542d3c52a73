// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/helper.h"

#include "ports/job.h"
#include "supervisor/chain/chain_work.h"
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
    const auto news = job_news_in(
        answer_of(Helper::execute(stage.options, {HelperWork::Kind::query_job, {"gpu"}})));
    ASSERT_TRUE(news);
    EXPECT_EQ(news->state, JobState::running);
    EXPECT_EQ(news->walltime, 90min);
    EXPECT_EQ(news->may_get_grace, true);
    EXPECT_TRUE(complete_once(completion_by_exec(stage.options, 7), 20s));
    EXPECT_TRUE(stage.slurm_calls().ends_with("complete 42 7\n")) << stage.slurm_calls();
}

TEST(HelperRequest, KeepsTheInputs)
{
    const HelperWork work{HelperWork::Kind::note, {"", std::string("a\0b\n", 4), "3:x"}};
    const auto request = helper_request_in(packed(work, JobId{42}));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->work.kind, work.kind);
    EXPECT_EQ(request->work.inputs, work.inputs);
    EXPECT_EQ(request->job, JobId{42});
    EXPECT_EQ(helper_request_in(packed(work, std::nullopt))->job, std::nullopt);
    EXPECT_FALSE(helper_request_in(""));
    EXPECT_FALSE(helper_request_in("2:990:"));
}

TEST(HelperRequest, KeepsThePastOfALink)
{
    LinkPast past;
    past.link = LinkNumber{3};
    EXPECT_EQ(past_in(packed(past)), past);
    past.started_at = Time{1'795'180'318s};
    past.noticed_at = Time{std::chrono::microseconds(1'795'180'400'000'001)};
    past.ending = Ending{1, Cause::finished, "why", Time{5s}};
    past.host = "n1";
    past.checkpoint = "/a b/\n";
    EXPECT_EQ(past_in(packed(past)), past);
    past.saved_after_notice = true;
    EXPECT_EQ(past_in(packed(past)), past);
    past.preempted = true;
    EXPECT_EQ(past_in(packed(past)), past);
    past.resumed = true;
    EXPECT_EQ(past_in(packed(past)), past);
    EXPECT_FALSE(past_in("1:3"));
}

} // namespace
} // namespace gpuq::supervisor
