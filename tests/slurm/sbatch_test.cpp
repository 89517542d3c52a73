// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sbatch.h"

#include "ports/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuq::slurm {
namespace {

using testing::HasSubstr;
using testing::Not;

Finished exited(const std::string& printed, int status)
{
    return {.status = status, .out = printed};
}

Finished killed()
{
    return {.status = 128 + SIGKILL, .signal = SIGKILL};
}

TEST(SbatchAnswer, IsAJobIdAmongOtherWords)
{
    EXPECT_EQ(job_in_answer(exited("42\n", 0))->value, 42U);
    EXPECT_EQ(job_in_answer(exited("sbatch: a word of job_submit.lua\n42;lab\n", 0))->value, 42U);
}

TEST(SbatchAnswer, IsARefusalInItsWords)
{
    for (const int status : {1, 255}) { // 255: of an option that it does not know
        const auto refused = job_in_answer(exited(
            "sbatch: error: Batch job submission failed: Invalid qos specification\n", status));
        EXPECT_EQ(refused.error().kind, Error::Kind::denied);
        EXPECT_THAT(refused.error().text, HasSubstr("Invalid qos specification"));
    }
}

TEST(SbatchAnswer, IsThePolicysOwnWordsAlone)
{
    const auto refused = job_in_answer(
        exited("sbatch: error: gpuq: no queue takes this job\nsbatch: error: gpuq: too long\n"
               "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy\n",
               1));
    EXPECT_EQ(refused.error().text,
              "sbatch did not take the job: no queue takes this job; too long");
}

TEST(SbatchAnswer, IsUnknownWhenItWasLost)
{
    for (const Finished& sbatch :
         {exited("sbatch: error: Batch job submission failed: Unable to contact slurm controller "
                 "(connect failure)\n",
                 1),
          exited("sbatch: error: Batch job submission failed: Socket timed out on send/recv\n", 1),
          exited("", 0), killed()}) {
        EXPECT_EQ(job_in_answer(sbatch).error().kind, Error::Kind::unreachable) << sbatch.out;
    }
}

/// Puts a directory in front of PATH with an sbatch that records its arguments, script and
/// environment.
class FakeSbatch {
public:
    FakeSbatch()
        : m_path(std::getenv("PATH"))
    {
        std::string pattern = testing::TempDir() + "gpuq-sbatch-XXXXXX";
        m_directory = mkdtemp(pattern.data());
        std::ofstream(m_directory + "/sbatch") << "#!/bin/sh\ncd " << m_directory << R"(
printf '%s\n' "$@" >words
cat >script
env >env
echo 7
)";
        std::filesystem::permissions(m_directory + "/sbatch", std::filesystem::perms::owner_all);
        setenv("PATH", (m_directory + ":" + m_path).c_str(), 1);
    }
    ~FakeSbatch()
    {
        setenv("PATH", m_path.c_str(), 1);
        std::filesystem::remove_all(m_directory);
    }
    FakeSbatch(const FakeSbatch&) = delete;
    FakeSbatch& operator=(const FakeSbatch&) = delete;

    std::string recorded(const std::string& file) const
    {
        std::ifstream stream(m_directory + "/" + file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

private:
    std::string m_directory;
    std::string m_path;
};

TEST(SubmitBySbatch, GivesItTheScriptAndWhatIsOurs)
{
    const FakeSbatch fake;
    JobSpec spec;
    spec.comment = "gpuq:KEY";
    spec.work_dir = "/tmp/a b";
    spec.output = "/state/100%/slurm.log";
    const std::string script = "#!/bin/bash\n#SBATCH --exclude=n1\nexec true\n";
    const auto job = submit_by_sbatch(
        spec, script, {"PATH=/usr/bin:/bin", "SBATCH_PARTITION=x", "SLURM_JOB_ID=1", "MINE=1"});
    ASSERT_TRUE(job) << job.error().text;
    EXPECT_EQ(job->value, 7U);
    EXPECT_EQ(fake.recorded("script"), script);
    EXPECT_EQ(fake.recorded("words"), "--parsable\n--no-requeue\n--kill-on-invalid-dep=yes\n"
                                      "--open-mode=append\n--propagate=NONE\n--comment=gpuq:KEY\n"
                                      "--chdir=/tmp/a b\n--output=/state/100%%/slurm.log\n");
    EXPECT_THAT(fake.recorded("env"), HasSubstr("MINE=1\n"));
    EXPECT_THAT(fake.recorded("env"), Not(HasSubstr("SBATCH_PARTITION")));
    EXPECT_THAT(fake.recorded("env"), Not(HasSubstr("SLURM_JOB_ID")));
}

} // namespace
} // namespace gpuq::slurm
