// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/script.h"

#include "ports/job.h"
#include "runs/stand_ins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

Request simple()
{
    Request request;
    request.program = {"python3", "train.py", "--lr", "1e-3"};
    request.work_dir = "/home/ann";
    return request;
}

JobSpec small()
{
    JobSpec spec;
    spec.name = "train.py";
    spec.partition = "gpu";
    spec.walltime = 36h;
    spec.gpus_per_node = 1;
    return spec;
}

TEST(SbatchScript, IsWhatAPersonWouldHaveWritten)
{
    EXPECT_EQ(sbatch_script(simple(), small()), R"(#!/bin/bash
#SBATCH --job-name=train.py
#SBATCH --partition=gpu
#SBATCH --time=1-12:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --output=slurm-%j.out
#SBATCH --error=slurm-%j.err
#SBATCH --no-requeue

cd -- /home/ann || exit 125
export PYTHONUNBUFFERED="${PYTHONUNBUFFERED-1}"

export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export PET_MASTER_ADDR="$MASTER_ADDR"
export PET_MASTER_PORT="$MASTER_PORT"
export PET_NNODES=1
exec -- python3 train.py --lr 1e-3 </dev/null
)");
}

TEST(SbatchScript, AsksForEverythingThatTheRunAsksFor)
{
    JobSpec spec = small();
    spec.name = "my sweep #1";
    spec.nodes = 2;
    spec.gpus_per_node = 2;
    spec.gpu_model = "k80";
    spec.cpus_per_node = 8;
    spec.memory_mib_per_node = 16384;
    spec.account = "lab";
    spec.qos = "high";
    spec.after_ok = JobId{41};
    Request request = simple();
    request.slurm_options = R"(--exclude=n1 --comment='a "b\')";
    const std::string script = sbatch_script(request, spec);
    for (const char* line : {"\"--job-name=my sweep #1\"", "--nodes=2", "--gres=gpu:k80:2",
                             "--cpus-per-task=8", "--mem=16384M", "--account=lab", "--qos=high",
                             "--dependency=afterok:41", "--exclude=n1 \"--comment=a \\\"b\\\\\""}) {
        EXPECT_THAT(script, HasSubstr(std::string("\n#SBATCH ") + line + "\n"));
    }
    EXPECT_THAT(script, HasSubstr("\nexec -- srun --nodes=2 --ntasks-per-node=1 "
                                  "--kill-on-bad-exit=1 --cpus-per-task=8 -- bash -c "));
    EXPECT_THAT(script, HasSubstr(" rank python3 train.py"));
}

TEST(SbatchScript, AsksForNoGpuWhenThereIsToBeNone)
{
    JobSpec spec = small();
    spec.gpus_per_node = 0;
    EXPECT_THAT(sbatch_script(simple(), spec), testing::Not(HasSubstr("gres")));
}

TEST(SbatchScript, DoesWhatTheRunDoes)
{
    const StandIns site;
    const Strings hostile = {"a b",   "",
                             "$HOME", "`id`",
                             "'\"",   "line\nbreak\n",
                             "*",     "\xff\x01",
                             "-n",    "#SBATCH --time=9",
                             "!x",    "\\"};
    Request request;
    request.program = {"show"};
    request.program.insert(request.program.end(), hostile.begin(), hostile.end());
    request.work_dir = site.directory() + "/odd 'dir'\n$x";
    std::filesystem::create_directory(request.work_dir);
    request.setup.env = {{"MASTER_ADDR", "n1"}, {"V", "two\nlines 'of' \"$V\" `id`"}};
    request.setup.modules = {"gcc;x", "cuda"};
    request.setup.conda = "my env";
    request.setup.container = "my image";
    JobSpec spec = small();
    spec.nodes = 2; // makes the script use srun
    site.file("job.sh", sbatch_script(request, spec));

    EXPECT_EQ(site.run({"bash", "-n", site.directory() + "/job.sh"}).status, 0);
    const auto outcome = site.run({"bash", site.directory() + "/job.sh"});
    EXPECT_EQ(outcome.error, "");
    Strings expected = hostile;
    expected.insert(expected.end(), {"V=two\nlines 'of' \"$V\" `id`", "MODULE=[gcc;x][cuda]",
                                     "CONDA=[gcc;x][cuda](my env)", request.work_dir});
    EXPECT_EQ(outcome.output, expected);
    EXPECT_THAT(site.read("told"), HasSubstr("srun --nodes=2 --ntasks-per-node=1 "
                                             "--kill-on-bad-exit=1 -- bash -c "));
    EXPECT_THAT(site.read("told"), HasSubstr(" rank apptainer exec --nv my image show a b"));
}

TEST(SbatchScript, SourcesFilesAndActivatesAVirtualEnvironment)
{
    const StandIns site;
    std::filesystem::create_directories(site.directory() + "/v'1/bin");
    site.file("v'1/bin/python", "");
    std::filesystem::permissions(site.directory() + "/v'1/bin/python",
                                 std::filesystem::perms::owner_all);
    site.file("env $x.sh", "echo noise; export MODULE=sourced\n");
    Request request;
    request.program = {"bash", "-c", "show \"$VIRTUAL_ENV\" \"${PATH%%:*}\""};
    request.work_dir = site.directory();
    request.setup.sources = {site.directory() + "/env $x.sh"};
    request.setup.modules = {"cuda"};
    request.setup.venv = site.directory() + "/v'1";
    site.file("job.sh", sbatch_script(request, small()));
    const auto outcome = site.run({"bash", site.directory() + "/job.sh"});
    EXPECT_EQ(outcome.error, "noise\n");
    EXPECT_EQ(outcome.output, (Strings{site.directory() + "/v'1", site.directory() + "/v'1/bin",
                                       "V=", "MODULE=sourced[cuda]", "CONDA=", site.directory()}));
    request.setup.venv = site.directory() + "/nosuch";
    site.file("job.sh", sbatch_script(request, small()));
    EXPECT_EQ(site.run({"bash", site.directory() + "/job.sh"}).status, 125);
}

TEST(SbatchScript, LeavesWhenItsEnvironmentCanNotBeHad)
{
    const StandIns site;
    Request request;
    request.program = {"show"};
    request.work_dir = site.directory();
    request.setup.modules = {"missing"};
    site.file("job.sh", sbatch_script(request, small()));
    EXPECT_EQ(site.run({"bash", site.directory() + "/job.sh"}).status, 125);

    request.setup.modules.clear();
    request.work_dir = site.directory() + "/gone";
    site.file("job.sh", sbatch_script(request, small()));
    const auto outcome = site.run({"bash", site.directory() + "/job.sh"});
    EXPECT_EQ(outcome.status, 125);
    EXPECT_EQ(outcome.output, Strings{});
}

const RunKey k_run = *RunKey::parse("20261120T131158.042Z-0f3a9c1e5b7d2468");

TEST(BatchScript, ExecutesTheSupervisor)
{
    EXPECT_EQ(batch_script({"/usr/libexec/gpuq/gpuq-supervisor", "/home/ann/.local/state/gpuq",
                            k_run, LinkNumber{1}},
                           simple(), small()),
              "#!/bin/bash\nexec -- /usr/libexec/gpuq/gpuq-supervisor run "
              "/home/ann/.local/state/gpuq 20261120T131158.042Z-0f3a9c1e5b7d2468 1\n");
}

TEST(BatchScript, HasThePersonsOptionsAfterOursForSbatch)
{
    Request request = simple();
    request.slurm_options = "--exclude=n1 -L 'a b'";
    JobSpec spec = small();
    spec.by_sbatch = true;
    EXPECT_EQ(batch_script({"/s", "/d", k_run, LinkNumber{1}}, request, spec),
              "#!/bin/bash\n"
              "#SBATCH --job-name=train.py\n"
              "#SBATCH --partition=gpu\n"
              "#SBATCH --time=1-12:00:00\n"
              "#SBATCH --nodes=1\n"
              "#SBATCH --ntasks-per-node=1\n"
              "#SBATCH --gres=gpu:1\n"
              "#SBATCH --exclude=n1 -L \"a b\"\n"
              "exec -- /s run /d 20261120T131158.042Z-0f3a9c1e5b7d2468 1\n");
}

TEST(BatchScript, KeepsTheGpusBesideOtherResources)
{
    Request request = simple();
    JobSpec spec = small();
    spec.by_sbatch = true;
    for (const char* options :
         {"--gres=tmpfs:1 --exclusive --gres=tmpfs:10G", "--exclusive --gres tmpfs:10G"}) {
        request.slurm_options = options;
        EXPECT_THAT(batch_script({"/s", "/d", k_run, LinkNumber{1}}, request, spec),
                    HasSubstr("tmpfs:10G\n#SBATCH --gres=gpu:1,tmpfs:10G\nexec"))
            << options;
    }
    request.slurm_options = "--gres=tmpfs:10G --exclusive";
    EXPECT_THAT(sbatch_script(request, spec), HasSubstr("#SBATCH --gres=gpu:1,tmpfs:10G\n"));
    spec.gpus_per_node = 0;
    EXPECT_THAT(batch_script({"/s", "/d", k_run, LinkNumber{1}}, request, spec),
                HasSubstr("--exclusive\nexec"))
        << "sbatch has it from the user's option";
}

TEST(BatchScript, QuotesOddFolders)
{
    const StandIns site;
    site.file("job.sh", batch_script({site.directory() + "/bin/show", "/scratch/it's\n$me", k_run,
                                      LinkNumber{2}},
                                     simple(), small()));
    const Strings output = site.run({"bash", site.directory() + "/job.sh"}).output;
    EXPECT_EQ(Strings(output.begin(), output.begin() + 4),
              (Strings{"run", "/scratch/it's\n$me", k_run.text(), "2"}));
}

} // namespace
} // namespace gpuq
