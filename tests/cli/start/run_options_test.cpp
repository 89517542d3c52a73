// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

Result<RunOptions> read(const Strings& arguments)
{
    TRY_ASSIGN(const Parsed parsed,
               parse_options(run_option_table(), Order::options_first, arguments));
    return run_options(parsed.options, parsed.operands);
}

std::string reason(Strings arguments)
{
    arguments.push_back("prog");
    const auto result = read(arguments);
    return result ? "accepted" : result.error().text;
}

TEST(RunOptions, LeaveTheProgramsOwnOptionsToIt)
{
    const RunOptions run = *read({"-t", "2h", "train.py", "--epochs", "3", "-g", "9"});
    EXPECT_EQ(run.parameters.program, (Strings{"train.py", "--epochs", "3", "-g", "9"}));
    EXPECT_EQ(run.parameters.walltime, 120min);
    EXPECT_EQ(run.parameters.gpus, std::nullopt);
    EXPECT_EQ(read({"--", "-odd"})->parameters.program, Strings{"-odd"});
    EXPECT_EQ(read({"--detach", "--", "train.py", "--", "-x"})->parameters.program,
              (Strings{"train.py", "--", "-x"}));
}

TEST(RunOptions, AreAllRead)
{
    const RunOptions run = *read({"-t2h",
                                  "-g",
                                  "k80:2",
                                  "-c8",
                                  "--mem=16G",
                                  "-N",
                                  "2",
                                  "-J",
                                  "sweep",
                                  "-A",
                                  "lab",
                                  "-p",
                                  "gpu",
                                  "-q",
                                  "high",
                                  "--after",
                                  "last",
                                  "--detach",
                                  "--max-wait",
                                  "10m",
                                  "--dry-run",
                                  "--env",
                                  "A=1=2",
                                  "--env=B",
                                  "--env",
                                  "C=",
                                  "--module",
                                  "cuda/12",
                                  "--module=gcc",
                                  "--conda",
                                  "/opt/env",
                                  "--container",
                                  "docker://img",
                                  "--slurm=--exclude=n1 -w n2",
                                  "prog"});
    EXPECT_EQ(run.parameters.walltime, 120min);
    EXPECT_EQ(run.parameters.gpus, (GpuRequest{.count = 2, .model = "k80"}));
    EXPECT_EQ(run.parameters.cpus, 8);
    EXPECT_EQ(run.parameters.memory_mib, 16384u);
    EXPECT_EQ(run.parameters.nodes, 2);
    EXPECT_EQ(run.parameters.name, "sweep");
    EXPECT_EQ(run.parameters.account, "lab");
    EXPECT_EQ(run.parameters.queue, "gpu");
    EXPECT_EQ(run.parameters.qos, "high");
    EXPECT_EQ(run.after, "last");
    EXPECT_TRUE(run.detach);
    EXPECT_TRUE(run.dry_run);
    EXPECT_EQ(run.max_wait, 600s);
    const std::vector<std::pair<std::string, std::optional<std::string>>> env = {
        {"A", "1=2"}, {"B", std::nullopt}, {"C", ""}};
    EXPECT_EQ(run.parameters.env, env);
    EXPECT_EQ(run.parameters.modules, (Strings{"cuda/12", "gcc"}));
    EXPECT_EQ(run.parameters.conda, "/opt/env");
    EXPECT_EQ(run.parameters.container, "docker://img");
    EXPECT_EQ(run.parameters.slurm_options, "--exclude=n1 -w n2");
}

TEST(RunOptions, OfRanksAreCountsThatASharedTerminalRefuses)
{
    const RunOptions run = *read({"--tasks-per-node", "4", "--gpus-per-task=2", "prog"});
    EXPECT_EQ(run.parameters.tasks_per_node, 4);
    EXPECT_EQ(run.parameters.gpus_per_task, 2);
    EXPECT_FALSE(read({"--tasks-per-node", "0", "prog"}));
    EXPECT_FALSE(read({"--gpus-per-task", "gpu:1", "prog"}));
    EXPECT_FALSE(read({"--pty", "--tasks-per-node", "2", "prog"}));
    for (const char* slurms : {"-n4", "--ntasks=4", "--ntasks-per-node=2", "--tasks-per-node=2"}) {
        const auto refused = read({"--slurm", slurms, "prog"});
        ASSERT_FALSE(refused) << slurms;
        EXPECT_NE(refused.error().text.find("--tasks-per-node"), std::string::npos) << slurms;
    }
}

TEST(RunOptions, HaveNoDefaults)
{
    const RunOptions run = *read({"prog"});
    EXPECT_EQ(run.parameters.walltime, std::nullopt);
    EXPECT_EQ(run.parameters.name, std::nullopt);
    EXPECT_EQ(run.max_wait, std::nullopt);
    EXPECT_FALSE(run.detach || run.dry_run);
}

TEST(RunOptions, RecordAPatternOfProgressInTheEnvironment)
{
    const std::string pattern = "it (?P<step>[0-9]+)";
    const std::vector<std::pair<std::string, std::optional<std::string>>> env = {
        {"GPUQ_PROGRESS", pattern}};
    EXPECT_EQ(read({"--progress", pattern, "prog"})->parameters.env, env);
}

TEST(RunOptions, LeaveToGpuqWhatItHasToKnow)
{
    for (const auto& [text, ours] : std::vector<std::pair<std::string, std::string>>{
             {"--time=5", "-t"},
             {"-t5", "-t"},
             {"-t 5", "-t"},
             {"--exclude=n1 --partition=gpu", "-p"},
             {"-pgpu", "-p"},
             {"--gres=gpu:2", "-g"},
             {"-G 2", "-g"},
             {"--gpus-per-node=2", "-g"},
             {"--mem=4G", "--mem"},
             {"--tim=5", "-t"},
             {"--part gpu", "-p"},
             {"-Ht5", "-t"},
             {"--gre=gpu:2", "-g"},
             {"--gres gpu:2", "-g"},
             {"--gres=gres:shard:1", "-g"},
             {"--gres=tmpfs:1,mps:50", "-g"},
             {"--gres=none", "-g"},
             {"--tres-per-node=gres/gpu:2", "-g"},
             {"--ntasks-per-gpu=2", "--tasks-per-node"},
             {"--tres-per-task=gres/gpu:1", "--gpus-per-task"},
             {"--container=x", "--container"},
             {"-dsingleton", "--after"},
             {"--depend=singleton", "--after"},
             {"--signal=B:USR1@60", "--notice"}}) {
        EXPECT_THAT(reason({"--slurm", text}),
                    HasSubstr("is not possible in a run: use gpuq's own option " + ours))
            << text;
    }
    for (const std::string text : {"--gres=tmpfs:10G", "--mem-bind=local", "--time-min=5"}) {
        EXPECT_TRUE(read({"--slurm", text, "prog"})) << text;
    }
    EXPECT_THAT(reason({"--env", "GPUQ_RUN_ID=evil"}), HasSubstr("GPUQ_RUN_ID is set by gpuq"));
    EXPECT_TRUE(read({"--env", "GPUQ_PROGRESS=x", "prog"}));
}

TEST(RunOptions, RefuseValuesThatAreNone)
{
    EXPECT_THAT(reason({"--progress", "step ("}),
                HasSubstr("--progress: 'step (' is not a valid RE2 regular expression: missing )"));
    EXPECT_THAT(reason({"--progress", "step [0-9]+"}),
                HasSubstr("--progress: 'step [0-9]+' has no named group: write (?P<step>[0-9]+)"));
    EXPECT_THAT(reason({"-t", "2:30"}), HasSubstr("-t: '2:30' is not a time: it may be"));
    EXPECT_THAT(reason({"-t", "1e9"}), HasSubstr("-t: '1e9' is not a time"));
    EXPECT_THAT(reason({"-t", "-1"}), HasSubstr("-t: '-1' is not a time: it is negative"));
    EXPECT_THAT(reason({"-g", "-1"}), HasSubstr("-g: invalid GPU request '-1'"));
    EXPECT_THAT(reason({"--mem", "lots"}), HasSubstr("--mem: 'lots' is not an amount"));
    EXPECT_EQ(reason({"-c", "0"}), "-c: '0' is not a number from 1 to 65535");
    EXPECT_EQ(reason({"-N", "two"}), "-N: 'two' is not a number from 1 to 100000");
    EXPECT_EQ(reason({"-p", ""}), "-p: '' is not a name");
    EXPECT_EQ(reason({"-A", "--qos"}), "-A: '--qos' is not a name");
    EXPECT_EQ(reason({"--env", "=x"}), "--env: '=x' is not NAME=VALUE or NAME");
    EXPECT_EQ(reason({"--env", "1A=x"}), "--env: '1A=x' is not NAME=VALUE or NAME");
    EXPECT_EQ(reason({"--env", "A-B=x"}), "--env: 'A-B=x' is not NAME=VALUE or NAME");
    EXPECT_EQ(reason({"--module", "-h"}), "--module: '-h' is not a name");
    EXPECT_EQ(reason({"--conda", ""}), "--conda: '' is not a name");
    EXPECT_EQ(reason({"--container", "--rm"}), "--container: '--rm' is not an image");
    EXPECT_EQ(reason({"--slurm", "'"}), "--slurm: a ' is never closed in: '");
    EXPECT_THAT(reason({"--max-wait", "2:30"}), HasSubstr("--max-wait: '2:30' is not a time"));
}

TEST(RunOptions, RefuseNamesThatCouldNotBeFoundAgain)
{
    EXPECT_EQ(reason({"-J", "42"}), "-J: '42' would be taken for a job id; add a letter");
    EXPECT_EQ(reason({"-J", ""}), "-J: a name can't be empty");
    EXPECT_THAT(reason({"-J", "a\nb"}), HasSubstr("control characters"));
    EXPECT_THAT(reason({"-J", "a\033[2J"}), HasSubstr("control characters"));
    EXPECT_THAT(reason({"-J", std::string("a\0b", 3)}), HasSubstr("control characters"));
    EXPECT_EQ(reason({"-J", std::string(201, 'x')}), "-J: it is longer than 200 bytes");
    EXPECT_EQ(reason({"-J", "last"}), "-J: 'last' means the newest run; choose another name");
    EXPECT_EQ(reason({"-J", "cal/1"}), "-J: 'cal/1' would be taken for a try of a sweep");
    EXPECT_EQ(reason({"-J", "cal/lr1"}), "accepted");
    EXPECT_EQ(reason({"-J", std::string(200, 'x')}), "accepted");
    EXPECT_EQ(reason({"-J", "最終 42"}), "accepted");
}

TEST(RunOptions, RefuseWhatIsReserved)
{
    EXPECT_THAT(reason({"--array", "1-3"}), HasSubstr("is not in this version"));
}

TEST(RunOptions, RefuseOptionsOfSbatchThatTakeTheRunAway)
{
    for (const char* text : {"--array=1-3", "-a1-3", "--wrap=x", "--wra x", "--comment=x", "-o x",
                             "--output x", "--exclude=n1 --wait", "-W", "--test-only", "-D /"}) {
        EXPECT_THAT(reason({"--slurm", text}), HasSubstr("is not possible in a run: ")) << text;
    }
    for (const char* text : {"--clusters=foo", "--clus=foo", "--clusters foo", "-M foo", "-Mfoo",
                             "-HMfoo", "--cluster-constraint=x"}) {
        EXPECT_THAT(reason({"--slurm", text}),
                    HasSubstr("is not possible in a run: a run uses the cluster of gpuq"))
            << text;
    }
    for (const char* text :
         {"-HW", "-sQW", "--requeue", "--req", "--export=NONE", "--export-file=x", "--get-user-env",
          "--propagate=NONE", "--kill-on-invalid-dep=no", "--open-mode=truncate", "--uid=0",
          "--wait", "-vV", "-h"}) {
        EXPECT_THAT(reason({"--slurm", text}), HasSubstr("is not possible in a run: ")) << text;
    }
    for (const char* text : {"--exclude=n1 : --exclude=n2", "--exclude=n1 --"}) {
        EXPECT_THAT(reason({"--slurm", text}), HasSubstr("is not an option of sbatch for one job"))
            << text;
    }
    EXPECT_EQ(reason({"--slurm", "n1 n2"}), "--slurm: 'n1 n2' contains no options of sbatch");
    EXPECT_THAT(reason({"--slurm", "''"}), HasSubstr("contains no options of sbatch"));
    EXPECT_THAT(reason({"--slurm", "--exclude=a\nb"}), HasSubstr("are not allowed"));
    for (const char* text :
         {"--exclude=n1", "-w n1 -x 'n2,n3'", "--constraint=\"a&b\"", "--licenses=x", "--exclusive",
          "--reservation r", "--nice=-1", "-xMars", "-LWt", "-Hk", "--wait-all-nodes=1",
          "--no-requeue", "--gres-flags=enforce-binding", "--mem-per-cpu=1G", "--begin=now+60"}) {
        EXPECT_EQ(reason({"--slurm", text}), "accepted") << text;
    }
}

TEST(RunOptions, SourceFilesAndAVirtualEnvironment)
{
    const auto run = read({"--source", "a.sh", "--source=../b c.sh", "--venv", ".venv//", "prog"});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->parameters.sources, (Strings{"a.sh", "../b c.sh"}));
    EXPECT_EQ(run->parameters.venv, ".venv");
    EXPECT_EQ(reason({"--source", ""}), "--source: the name of a file is missing");
    EXPECT_EQ(reason({"--venv", ""}), "--venv: the name of a file is missing");
    EXPECT_EQ(reason({"--venv", "a:b"}), "--venv: 'a:b' has a colon in it");
    EXPECT_EQ(reason({"--venv", "v", "--conda", "c"}),
              "--venv: --conda is given as well: choose one of them");
}

TEST(RunOptions, LeaveStandardInputAlone)
{
    EXPECT_TRUE(read({"-n", "prog"})->no_stdin);
    EXPECT_TRUE(read({"--no-stdin", "prog"})->no_stdin);
    EXPECT_FALSE(read({"prog", "-n"})->no_stdin);
    EXPECT_THAT(reason({"-n", "--pty"}), HasSubstr("--no-stdin: "));
}

TEST(RunOptions, WantAProgram)
{
    for (const Strings& arguments : {Strings{}, Strings{"-t", "2h"}, Strings{""}, Strings{"--"}}) {
        EXPECT_THAT(read(arguments).error().text, HasSubstr("missing program:"));
    }
}

TEST(RunOptions, ATerminalIsOfOneNode)
{
    EXPECT_TRUE(read({"--pty", "top"})->pty);
    EXPECT_EQ(reason({"--pty", "-N", "2"}),
              "--pty: there is one terminal, and -N starts the program on several nodes");
}

TEST(RunOptions, OfAShellAreTheSameButForTheTerminalAndChains)
{
    EXPECT_EQ(shell_option_table().size() + 19, run_option_table().size());
    for (const Option& option : shell_option_table()) {
        EXPECT_NE(option.name, "pty");
        EXPECT_NE(option.name, "checkpoint");
    }
}

TEST(RunOptions, HaveOneSnapshotPolicy)
{
    EXPECT_EQ(read({"train.py"})->snapshot, std::nullopt);
    EXPECT_EQ(read({"--snapshot", "train.py"})->snapshot, SnapshotPolicy::always);
    EXPECT_EQ(read({"--no-snapshot", "train.py"})->snapshot, SnapshotPolicy::never);
    EXPECT_THAT(reason({"--snapshot", "--no-snapshot", "train.py"}), HasSubstr("choose one"));
}

TEST(RunOptions, OfAChain)
{
    const auto parameters =
        read({"--link", "20s", "--checkpoint", "out/*.pt", "--resume-args", "--resume '{}'",
              "--valid", "check {}", "--notice", "USR2", "--max-links", "3", "--gpu-hours", "1.5",
              "--until", "2026-12-24", "train.py"});
    ASSERT_TRUE(parameters);
    EXPECT_EQ(parameters->parameters.chain.link, std::chrono::seconds(20));
    EXPECT_EQ(parameters->parameters.chain.checkpoint, "out/*.pt");
    EXPECT_EQ(parameters->parameters.chain.resume_args, (Strings{"--resume", "{}"}));
    EXPECT_EQ(parameters->parameters.chain.valid, (Strings{"check", "{}"}));
    EXPECT_EQ(parameters->parameters.chain.notice, Notice::usr2);
    EXPECT_EQ(parameters->parameters.chain.max_links, 3);
    EXPECT_EQ(parameters->parameters.chain.gpu_time, std::chrono::minutes(90));
    EXPECT_TRUE(parameters->parameters.chain.until);
    EXPECT_TRUE(parameters->parameters.chain.are_given());
}

TEST(RunOptions, AllowNoMoreGpuTimeThanGiven)
{
    const auto minutes = [](const std::string& hours) {
        const auto options = read({"--gpu-hours", hours, "x"});
        EXPECT_TRUE(options);
        return options ? options->parameters.chain.gpu_time->count() : 0;
    };
    EXPECT_EQ(minutes("0.0333"), 1);
    EXPECT_EQ(minutes("0.0334"), 2);
    EXPECT_EQ(minutes("2.3"), 138);
    EXPECT_EQ(minutes("0.55"), 33);
}

TEST(RunOptions, RefuseWhatMakesNoChain)
{
    EXPECT_THAT(reason({"--link", "5s"}), HasSubstr("less than 10 s"));
    EXPECT_THAT(reason({"--checkpoint", ""}), HasSubstr("pattern"));
    EXPECT_THAT(reason({"--notice", "KILL"}), HasSubstr("is not auto"));
    EXPECT_THAT(reason({"--max-links", "0"}), HasSubstr("--max-links"));
    for (const char* hours : {"0", "-1", "nan", "inf", "1h", ""}) {
        EXPECT_THAT(reason({"--gpu-hours", hours}), HasSubstr("not a number of hours")) << hours;
    }
    EXPECT_THAT(reason({"--gpu-hours", "0.016"}), HasSubstr("'0.016' is less than a minute"));
    for (const char* date : {"6h", "2026-13-01", "2027-02-31", "2026-12-24x", ""}) {
        EXPECT_THAT(reason({"--until", date}), HasSubstr("is not a date")) << date;
    }
}

} // namespace
} // namespace gpuq::cli
