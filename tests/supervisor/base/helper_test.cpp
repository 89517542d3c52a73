// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/helper.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

std::string answer_to(const std::function<std::string()>& question)
{
    auto helper = Helper::start(question);
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
        EXPECT_EQ(answer_to([number] {
                      ::raise(number);
                      return std::string("done");
                  }),
                  "done")
            << number;
    }
}

TEST(Helper, GivesItsCommandsSignalsAsTheyAre)
{
    EXPECT_EQ(answer_to([] {
                  const int status = std::system("kill -TERM $$");
                  return std::string(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? "ended"
                                                                                        : "not");
              }),
              "ended");
}

} // namespace
} // namespace gpuq::supervisor
