// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/program_words.h"

#include "core/split_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

/// The command line with a bar between the program and its arguments.
std::string divided(const std::string& line)
{
    const std::vector<std::string> command = *split_arguments(line);
    const auto size = size_of_program(command);
    std::string text;
    for (std::size_t i = 0; i < command.size(); ++i) {
        text += (i == 0 ? "" : " ") + command[i] + (size == i + 1 ? " |" : "");
    }
    return size ? text : "?";
}

TEST(ProgramWords, OfAPlainProgramAreOne)
{
    EXPECT_EQ(divided("./train --lr 1 other.py"), "./train | --lr 1 other.py");
    EXPECT_EQ(divided("/opt/app/train.py 3"), "/opt/app/train.py | 3");
    EXPECT_EQ(divided("train"), "train |");
    EXPECT_EQ(divided("pythonic train.py"), "pythonic | train.py");
}

TEST(ProgramWords, OfAnInterpreterEndWithItsScript)
{
    EXPECT_EQ(divided("python3 train.py --lr 1"), "python3 train.py | --lr 1");
    EXPECT_EQ(divided("/opt/x/bin/python3.12 -u -W ignore -Xdev train --config a.py"),
              "/opt/x/bin/python3.12 -u -W ignore -Xdev train | --config a.py");
    EXPECT_EQ(divided("python3 -m pkg.train --lr 1"), "python3 -m pkg.train | --lr 1");
    EXPECT_EQ(divided("python -um pkg.train --lr 1"), "python -um pkg.train | --lr 1");
    EXPECT_EQ(divided("python3 -mpkg.train --lr 1"), "python3 -mpkg.train | --lr 1");
    EXPECT_EQ(divided("python3 -c 'import a' 1"), "python3 -c import a | 1");
    EXPECT_EQ(divided("python3 - 1"), "python3 - | 1");
    EXPECT_EQ(divided("python3 -- -odd.py 1"), "python3 -- -odd.py | 1");
    EXPECT_EQ(divided("python3 --check-hash-based-pycs always a 1"),
              "python3 --check-hash-based-pycs always a | 1");
    EXPECT_EQ(divided("bash -euo pipefail run --lr 1"), "bash -euo pipefail run | --lr 1");
    EXPECT_EQ(divided("bash -lc 'echo $1' name 1"), "bash -lc echo $1 | name 1");
    EXPECT_EQ(divided("sh +x -c true 1"), "sh +x -c true | 1");
    EXPECT_EQ(divided("perl -Ilib -MList::Util a 1"), "perl -Ilib -MList::Util a | 1");
    EXPECT_EQ(divided("perl -lane print 1"), "perl -lane print | 1");
    EXPECT_EQ(divided("julia --threads 4 --project=. fit 1"),
              "julia --threads 4 --project=. fit | 1");
    EXPECT_EQ(divided("node --require x main 1"), "node --require x main | 1");
}

TEST(ProgramWords, OfAnInterpreterWithoutAScriptAreAll)
{
    for (const char* line : {"python3", "python3 -i", "python3 -m", "python3 -W", "bash -l"}) {
        EXPECT_EQ(divided(line), std::string(line) + " |");
    }
}

TEST(ProgramWords, OfALauncherEndWithTheScriptItStarts)
{
    EXPECT_EQ(divided("torchrun --nproc-per-node 4 train.py --lr 1"),
              "torchrun --nproc-per-node 4 train.py | --lr 1");
    EXPECT_EQ(divided("torchrun --nproc-per-node 4 -m pkg.train 1"),
              "torchrun --nproc-per-node 4 -m pkg.train | 1");
    EXPECT_EQ(divided("accelerate launch --config_file c.yaml train.py 1"),
              "accelerate launch --config_file c.yaml train.py | 1");
    EXPECT_EQ(divided("python3 -m torch.distributed.run --nnodes 2 train.py 1"),
              "python3 -m torch.distributed.run --nnodes 2 train.py | 1");
    EXPECT_EQ(divided("env -i A=/x.py LR=1 python3 -u train 1"),
              "env -i A=/x.py LR=1 python3 -u train | 1");
    EXPECT_EQ(divided("numactl -m 0 torchrun -m pkg.train 1"),
              "numactl -m 0 torchrun -m pkg.train | 1");
    EXPECT_EQ(divided("nsys profile -o report bash run 1"), "nsys profile -o report bash run | 1");
    EXPECT_EQ(divided("uv run train.py 1"), "uv run train.py | 1");
}

TEST(ProgramWords, OfALauncherAreUnknownWithoutAScript)
{
    for (const char* line :
         {"env A=1 ./train --lr 1", "mpirun -np 4 ./a.out x", "torchrun train"}) {
        EXPECT_EQ(divided(line), "?");
    }
}

} // namespace
} // namespace gpuq
