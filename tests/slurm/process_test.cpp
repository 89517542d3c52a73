// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/process.h"

#include "ports/step_process.h"
#include "slurm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace gpuq::slurm {
namespace {

using namespace std::chrono_literals;

/// A sleeping child with a sleeping child of its own; both end with the test.
class Family {
public:
    Family()
    {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        parent = ::fork();
        if (parent == 0) {
            const int child_pid = ::fork();
            if (child_pid != 0) {
                (void)!::write(ends[1], &child_pid, sizeof child_pid);
            }
            ::pause();
            ::_exit(0);
        }
        EXPECT_EQ(::read(ends[0], &child, sizeof child), ssize_t{sizeof child});
        ::close(ends[0]);
        ::close(ends[1]);
    }
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;
    ~Family()
    {
        ::kill(child, SIGKILL);
        ::kill(parent, SIGKILL);
        ::waitpid(parent, nullptr, 0);
    }

    std::uint64_t born() const { return facts_of(parent)->born; }

    int parent = 0;
    int child = 0;
};

bool is_dead(int pid)
{
    const auto facts = facts_of(pid);
    return !facts || facts->state == 'Z';
}

TEST(Process, KnowsItsRelatives)
{
    const Family family;
    EXPECT_EQ(facts_of(family.parent)->parent, ::getpid());
    EXPECT_THAT(children_of(family.parent), ::testing::ElementsAre(family.child));
    EXPECT_EQ(facts_of(0x7fffffff), std::nullopt);
}

TEST(Process, AnotherOneWithTheSameNumberIsNotHeld)
{
    const Family family;
    EXPECT_TRUE(HeldProcess(family.parent, family.born()));
    EXPECT_FALSE(HeldProcess(family.parent, family.born() + 1));
    EXPECT_FALSE(HeldProcess(0x7fffffff, 0));
    EXPECT_FALSE(HeldProcess(-1, 0));
}

TEST(Process, AnOrphanedStepLosesSrunAndItsWatcher)
{
    const Family family;
    StepProcess process;
    process.pid = family.parent;
    process.born = family.born() + 1;
    orphan_step_of(process);
    EXPECT_FALSE(is_dead(family.parent)) << "a stranger was hit";
    process.born = family.born();
    orphan_step_of(process);
    while (!is_dead(family.parent) || !is_dead(family.child)) {
        ::usleep(1000); // limited by the test's timeout
    }
}

} // namespace
} // namespace gpuq::slurm
