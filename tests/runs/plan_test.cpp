// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/plan.h"

#include "ports/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using File = SiteContext::File;
using Strings = std::vector<std::string>;

const std::vector<Partition> k_lab = {
    {.name = "gpu", .max_time = 48h, .default_time = 4h},
    {.name = "calibration", .max_time = 2h, .default_time = 1h, .is_default = true},
};

SiteContext here(const std::map<std::string, File>& files = {})
{
    SiteContext site_context;
    site_context.work_dir = "/home/ann";
    site_context.file = [files](const std::string& path) {
        const auto found = files.find(path);
        return found == files.end() ? File::missing : found->second;
    };
    site_context.variable = [](const std::string& name) {
        return name == "HOME" ? std::optional<std::string>("/home/ann") : std::nullopt;
    };
    site_context.container_command = {"apptainer", "exec", "--nv", "{image}"};
    return site_context;
}

RunParameters asking(const Strings& program = {"hostname"})
{
    RunParameters parameters;
    parameters.program = program;
    return parameters;
}

RunParameters asking_for(std::optional<std::chrono::minutes> walltime,
                         std::optional<std::string> queue = {})
{
    RunParameters parameters = asking();
    parameters.walltime = walltime;
    parameters.queue = std::move(queue);
    return parameters;
}

std::string queue_for(const RunParameters& parameters,
                      const std::vector<Partition>& partitions = k_lab)
{
    const auto made = plan(parameters, partitions, here());
    return made ? made->request.queue : "refused: " + made.error().text;
}

TEST(Plan, FillsInEveryDefault)
{
    const Plan made = *plan(asking({"hostname", "-f"}), k_lab, here());
    Request request;
    request.program = {"hostname", "-f"};
    request.name = "hostname";
    request.work_dir = "/home/ann";
    request.walltime = 1h;
    request.queue = "calibration";
    EXPECT_EQ(made.request, request);
    EXPECT_EQ(made.summary, "1 GPU for 1 h in queue calibration (default: 1 GPU, 1 h)");
    EXPECT_EQ(made.spec.gpus_per_node, 1);
    EXPECT_EQ(made.spec.partition, "calibration");
    EXPECT_EQ(made.spec.comment, "");
    EXPECT_FALSE(made.spec.by_sbatch);
}

TEST(Plan, RefusesMoreNodesThanTheQueueHasAndNamesOneThatHasThem)
{
    std::vector<Partition> lab = k_lab;
    lab[0].most_nodes = 4;
    lab[1].most_nodes = 1;
    RunParameters parameters = asking_for(1h);
    parameters.nodes = 4;
    EXPECT_EQ(queue_for(parameters, lab),
              "refused: -N 4: a job in queue calibration can have 1 node; "
              "gpu has them: -p gpu");
    parameters.queue = "gpu";
    EXPECT_EQ(queue_for(parameters, lab), "gpu");
    parameters.nodes = 5;
    EXPECT_EQ(queue_for(parameters, lab),
              "refused: -N 5: a job in queue gpu can have 4 nodes; no queue has more than 4");
}

TEST(Plan, OfAPoliciesQueuesTheFirstThatTakesTheRunIsAskedFor)
{
    std::vector<Partition> lab = k_lab;
    lab.push_back({.name = "owners", .max_time = 12h, .default_time = 1h});
    for (Partition& queue : lab) {
        queue.ruled = true;
        queue.most_nodes = 1;
    }
    EXPECT_EQ(queue_for(asking_for(1h), lab), "calibration,owners,gpu");
    EXPECT_EQ(queue_for(asking_for(3h), lab), "owners,gpu");
    EXPECT_EQ(queue_for(asking_for({}), lab), "calibration,owners,gpu");
    EXPECT_EQ(queue_for(asking_for(1h, "owners"), lab), "owners");
    RunParameters wide = asking_for(1h);
    wide.nodes = 2; // node limits of a queue are left to the policy
    EXPECT_EQ(queue_for(wide, lab), "calibration,owners,gpu");
    EXPECT_THAT(plan(asking_for(3h), lab, here())->summary,
                HasSubstr("in the first available of owners,gpu"));
    lab.back().up = false;
    EXPECT_EQ(queue_for(asking_for(3h), lab), "gpu");
}

TEST(Plan, LeavesTheNumberOfNodesToSlurmWhereItIsNotKnown)
{
    RunParameters parameters = asking_for(1h);
    parameters.nodes = 400;
    EXPECT_EQ(queue_for(parameters), "calibration");
}

TEST(Plan, PassesOnEverythingAskedFor)
{
    RunParameters parameters = asking();
    parameters.walltime = 90min;
    parameters.gpus = GpuRequest{.count = 2, .model = "k80"};
    parameters.cpus = 8;
    parameters.memory_mib = 16384;
    parameters.nodes = 2;
    parameters.name = "sweep";
    parameters.account = "lab";
    parameters.qos = "high";
    parameters.after = JobId{7};
    parameters.input = Input::pipe;
    parameters.env = {{"SEED", "1"}, {"HOME", std::nullopt}};
    parameters.modules = {"cuda/12"};
    parameters.conda = "torch";
    parameters.container = "pytorch.sif";
    parameters.slurm_options = "--exclude=n1";
    const Plan made = *plan(parameters, k_lab, here());
    EXPECT_EQ(made.spec.walltime, 90min);
    EXPECT_EQ(made.spec.gpu_model, "k80");
    EXPECT_EQ(made.spec.gpus_per_node, 2);
    EXPECT_EQ(made.spec.cpus_per_node, 8);
    EXPECT_EQ(made.spec.memory_mib_per_node, 16384u);
    EXPECT_EQ(made.spec.nodes, 2);
    EXPECT_EQ(made.spec.name, "sweep");
    EXPECT_EQ(made.spec.account, "lab");
    EXPECT_EQ(made.spec.qos, "high");
    EXPECT_EQ(made.spec.after_ok, JobId{7});
    EXPECT_EQ(made.spec.work_dir, "/home/ann");
    EXPECT_EQ(made.request.input, Input::pipe);
    EXPECT_EQ(made.request.setup.env, (std::vector<std::pair<std::string, std::string>>{
                                          {"SEED", "1"}, {"HOME", "/home/ann"}}));
    EXPECT_EQ(made.request.setup.modules, Strings{"cuda/12"});
    EXPECT_EQ(made.request.setup.conda, "torch");
    EXPECT_EQ(made.request.setup.container, "pytorch.sif");
    EXPECT_EQ(made.request.setup.container_command, here().container_command);
    EXPECT_EQ(made.request.slurm_options, "--exclude=n1");
    EXPECT_TRUE(made.spec.by_sbatch);
    EXPECT_EQ(made.summary, "2 k80 GPUs on each of 2 nodes for 1 h 30 min in queue calibration");
}

TEST(Plan, FindsGpusAndTasksOfANodeOutOfEachOther)
{
    RunParameters parameters = asking();
    parameters.tasks_per_node = 4;
    EXPECT_EQ(plan(parameters, k_lab, here())->request.gpus.count, 1) << "which all of them see";
    parameters.gpus_per_task = 1;
    EXPECT_EQ(plan(parameters, k_lab, here())->request.gpus.count, 4);
    EXPECT_EQ(plan(parameters, k_lab, here())->spec.tasks_per_node, 4);
    parameters.gpus = GpuRequest{.count = 3};
    EXPECT_THAT(plan(parameters, k_lab, here()).error().text,
                HasSubstr("4 tasks with 1 each need 4 GPUs on each node, -g asks for 3"));
    parameters.tasks_per_node.reset();
    EXPECT_EQ(plan(parameters, k_lab, here())->request.tasks_per_node, 3);
}

TEST(Plan, SharesTheCoresOfANodeEvenlyAmongItsTasks)
{
    RunParameters parameters = asking();
    parameters.cpus = 10;
    parameters.tasks_per_node = 4;
    EXPECT_THAT(plan(parameters, k_lab, here()).error().text, HasSubstr("10 cores"));
    parameters.cpus = 8;
    EXPECT_EQ(plan(parameters, k_lab, here())->spec.cpus_per_node, 8);
}

TEST(Plan, ChoosesTheSmallestQueueThatHoldsTheTime)
{
    EXPECT_EQ(queue_for(asking_for(2h)), "calibration");
    EXPECT_EQ(queue_for(asking_for(2h + 1min)), "gpu");
    EXPECT_EQ(queue_for(asking_for(48h)), "gpu");
    EXPECT_EQ(queue_for(asking_for(30min, "gpu")), "gpu");
}

TEST(Plan, PrefersTheDefaultQueueAmongEqualsAndAnyLimitToNone)
{
    const std::vector<Partition> queues = {{.name = "endless"},
                                           {.name = "a", .max_time = 2h},
                                           {.name = "b", .max_time = 2h, .is_default = true}};
    EXPECT_EQ(queue_for(asking_for(1h), queues), "b");
    EXPECT_EQ(queue_for(asking_for(3h), queues), "endless");
}

TEST(Plan, AvoidsQueuesThatAreDown)
{
    const std::vector<Partition> queues = {
        {.name = "small", .max_time = 2h, .is_default = true, .up = false},
        {.name = "large", .max_time = 48h}};
    EXPECT_EQ(queue_for(asking_for(1h), queues), "large");
    EXPECT_EQ(queue_for(asking_for({}), queues), "large");
    EXPECT_EQ(queue_for(asking_for(1h, "small"), queues), "small"); // it will wait, as requested
    EXPECT_EQ(queue_for(asking_for(1h), {queues[0]}), "small");     // nothing else takes it
    std::vector<Partition> refusing = {queues[0]};
    refusing[0].accepts = false;
    EXPECT_EQ(queue_for(asking_for(1h), refusing),
              "refused: no queue of this cluster is up; try again later");
    EXPECT_EQ(queue_for(asking_for({}), {}),
              "refused: no queue of this cluster is up; try again later");
}

TEST(Plan, WaitsForAQueueThatIsClosedForNow)
{
    std::vector<Partition> queues = {
        {.name = "day", .max_time = 2h, .is_default = true},
        {.name = "night", .max_time = 12h, .up = false},
        {.name = "retired", .max_time = 24h, .up = false, .accepts = false}};
    EXPECT_EQ(queue_for(asking_for(1h), queues), "day");
    EXPECT_EQ(plan(asking_for(10h), queues, here())->summary,
              "1 GPU for 10 h in queue night (default: 1 GPU); it waits until the queue is up");
    EXPECT_THAT(queue_for(asking_for(20h), queues), HasSubstr("the longest is night with 12 h"));
    queues[1].ruled = true;
    queues.push_back({.name = "weekend", .max_time = 48h, .up = false, .ruled = true});
    EXPECT_EQ(queue_for(asking_for(10h), queues), "night,weekend");
}

TEST(Plan, NamesTheQueueThatTakesALongerTime)
{
    const auto refused = plan(asking_for(3h, "calibration"), k_lab, here());
    EXPECT_EQ(refused.error(), fail(Error::Kind::denied, "queue calibration takes at most 2 h; gpu "
                                                         "takes 3 h: -p gpu"));
}

TEST(Plan, NamesTheLongestQueueBeyondAll)
{
    for (const auto& parameters : {asking_for(49h), asking_for(49h, "calibration")}) {
        const auto refused = plan(parameters, k_lab, here());
        EXPECT_EQ(refused.error().kind, Error::Kind::denied);
        EXPECT_THAT(refused.error().text,
                    AllOf(StartsWith("no queue takes 2 days 1 h: the longest is gpu with 2 days"),
                          HasSubstr("man gpuq-chain")));
    }
}

TEST(Plan, NamesTheQueuesWhenThereIsNoneOfThatName)
{
    EXPECT_EQ(plan(asking_for({}, "gpus"), k_lab, here()).error(),
              fail(Error::Kind::missing,
                   "no queue 'gpus' (did you mean 'gpu'?); there are: gpu, calibration"));
}

TEST(Plan, TakesTheQueuesTime)
{
    EXPECT_EQ(plan(asking_for({}, "gpu"), k_lab, here())->request.walltime, 4h);
    const std::vector<Partition> no_default = {{.name = "short", .max_time = 2h}};
    EXPECT_EQ(plan(asking(), no_default, here())->request.walltime, 2h);
    const std::vector<Partition> endless = {{.name = "endless"}};
    EXPECT_EQ(
        plan(asking(), endless, here()).error(),
        fail(Error::Kind::usage, "queue endless has no default time; give a time limit: -t 2h"));
}

TEST(Plan, ChoosesAQueueThatTakesTheAccount)
{
    const std::vector<Partition> site = {
        {.name = "physics", .max_time = 1h, .default_time = 1h, .accounts = {"lab_a", "physics"}},
        {.name = "guests", .max_time = 2h, .default_time = 1h, .denied_accounts = {"lab_b"}},
        {.name = "all", .max_time = 4h, .default_time = 1h},
    };
    RunParameters parameters = asking_for(30min);
    EXPECT_EQ(queue_for(parameters, site), "guests") << "the default account is not known";
    parameters.account = "Physics";
    EXPECT_EQ(queue_for(parameters, site), "physics");
    parameters.account = "lab_b";
    EXPECT_EQ(queue_for(parameters, site), "all");
    EXPECT_EQ(queue_for(parameters, {site[0]}), "physics") << "Slurm's refusal has its reason";
    parameters.account.reset();
    EXPECT_EQ(queue_for(parameters, {site[0]}), "physics");
}

TEST(Plan, PrefersADefaultQueueWithAccountsToOneForAll)
{
    const std::vector<Partition> site = {
        {.name = "debug", .max_time = 30min, .default_time = 30min},
        {.name = "gpu",
         .max_time = 24h,
         .default_time = 1h,
         .is_default = true,
         .accounts = {"lab_a", "lab_b"}},
        {.name = "scavenger", .max_time = 48h, .default_time = 1h},
    };
    EXPECT_EQ(queue_for(asking(), site), "gpu");
    EXPECT_EQ(queue_for(asking_for(2h), site), "gpu");
    EXPECT_EQ(queue_for(asking_for(10min), site), "debug");
    RunParameters parameters = asking_for(2h);
    parameters.account = "lab_c";
    EXPECT_EQ(queue_for(parameters, site), "scavenger");
}

TEST(Plan, ChoosesAQueueThatCanTakeTheRun)
{
    std::vector<Partition> site = {
        {.name = "cpu", .max_time = 96h, .default_time = 1h, .is_default = true, .has_gpus = false},
        {.name = "gpu", .max_time = 48h, .default_time = 1h, .has_gpus = true},
        {.name = "exam", .max_time = 1h, .has_gpus = true, .restricted = true},
        {.name = "wide", .max_time = 2h, .has_gpus = true, .least_nodes = 2},
    };
    EXPECT_EQ(queue_for(asking(), site), "gpu");
    EXPECT_EQ(queue_for(asking_for(30min), site), "gpu");
    RunParameters parameters = asking_for(30min);
    parameters.nodes = 2;
    EXPECT_EQ(queue_for(parameters, site), "wide");
    parameters = asking();
    parameters.gpus = *parse_gpu_request("0");
    EXPECT_EQ(queue_for(parameters, site), "cpu");
    EXPECT_EQ(queue_for(asking_for(1h, "cpu"), site),
              "refused: queue cpu has no GPUs: -p gpu; -g 0 asks for none");
    EXPECT_EQ(queue_for(asking_for(1h, "exam"), site), "exam") << "its user names it";
    site[0].has_gpus.reset(); // Slurm does not count them
    EXPECT_EQ(queue_for(asking(), site), "cpu");
    site[1].up = false;
    site[0].has_gpus = false;
    EXPECT_EQ(queue_for(asking(), site), "gpu") << "it waits until the queue is up";
}

TEST(Plan, ChoosesNoQueueThatTakesNoJobsFromThisHost)
{
    std::vector<Partition> site = k_lab;
    site[1].submit_hosts = "admin,login[01-04]";
    SiteContext there = here();
    const auto queue_at = [&](const std::string& host, const RunParameters& parameters) {
        there.host = host;
        return plan(parameters, site, there)->request.queue;
    };
    EXPECT_EQ(queue_at("ws7", asking()), "gpu");
    EXPECT_EQ(queue_at("ws7", asking_for(30min)), "gpu");
    EXPECT_EQ(queue_at("ws7", asking_for(30min, "calibration")), "calibration") << "Slurm decides";
    EXPECT_EQ(queue_at("login03", asking()), "calibration");
    EXPECT_EQ(queue_at("", asking()), "calibration") << "unknown";
    site[0].submit_hosts = "admin";
    EXPECT_EQ(queue_at("ws7", asking()), "calibration") << "no other: Slurm decides";
    for (const char* hosts : {"ALL", "rack[1-2]node[1-4]"}) {
        site[1].submit_hosts = hosts;
        EXPECT_EQ(queue_at("ws7", asking()), "calibration") << hosts;
    }
    for (Partition& queue : site) {
        queue.ruled = true;
    }
    site[0].submit_hosts = "admin";
    EXPECT_EQ(queue_at("ws7", asking_for(30min)), "calibration");
    site[0].submit_hosts = "";
    EXPECT_EQ(queue_at("ws7", asking_for(30min)), "calibration,gpu");
}

Strings program_of(const Strings& typed, const std::map<std::string, File>& files)
{
    return plan(asking(typed), k_lab, here(files))->request.program;
}

TEST(Plan, RunsTheFileInTheWorkingDirectoryFirst)
{
    EXPECT_EQ(program_of({"train.py", "-x"}, {{"/home/ann/train.py", File::plain}}),
              (Strings{"python3", "train.py", "-x"}));
    EXPECT_EQ(program_of({"train.py"}, {{"/home/ann/train.py", File::executable}}),
              Strings{"./train.py"});
    EXPECT_EQ(program_of({"train.py"}, {}), Strings{"train.py"}); // from PATH on the node
    EXPECT_EQ(program_of({"notes"}, {{"/home/ann/notes", File::plain}}), Strings{"notes"});
    EXPECT_EQ(program_of({"src"}, {{"/home/ann/src", File::other}}), Strings{"src"});
    EXPECT_EQ(program_of({"sub/train.py"}, {{"/home/ann/sub/train.py", File::plain}}),
              (Strings{"python3", "sub/train.py"}));
    EXPECT_EQ(program_of({"/opt/train.py"}, {{"/opt/train.py", File::plain}}),
              (Strings{"python3", "/opt/train.py"}));
    EXPECT_EQ(program_of({"/opt/tool"}, {{"/opt/tool", File::executable}}), Strings{"/opt/tool"});
    EXPECT_EQ(program_of({"-x.py"}, {{"/home/ann/-x.py", File::plain}}),
              (Strings{"python3", "./-x.py"}));
}

TEST(Plan, StartsAnExecutableScriptWithoutAnInterpreterByPython)
{
    const auto program_with = [](const std::string& text) {
        SiteContext site = here({{"/home/ann/train.py", File::executable}});
        site.text = [&](const std::string&) { return text; };
        return plan(asking({"train.py"}), k_lab, site)->request.program;
    };
    EXPECT_EQ(program_with("import torch\n"), (Strings{"python3", "train.py"}));
    EXPECT_EQ(program_with("#!/usr/bin/env python3\n"), Strings{"./train.py"});
    EXPECT_EQ(program_with(""), Strings{"./train.py"}) << "a binary, or not readable";
}

std::string name_of(const std::string& program)
{
    return plan(asking({program}), k_lab, here({{"/home/ann/train.py", File::plain}}))
        ->request.name;
}

TEST(Plan, NamesTheRunAfterItsProgram)
{
    EXPECT_EQ(name_of("train.py"), "train.py");
    EXPECT_EQ(name_of("/usr/bin/python3"), "python3");
    EXPECT_EQ(name_of("dir/"), "dir");
    EXPECT_EQ(name_of("a\nb\033"), "a_b_");
    EXPECT_EQ(name_of("42"), "run-42");     // digits alone would be a job ID
    EXPECT_EQ(name_of("last"), "run-last"); // `last` means the newest run of any name
    EXPECT_EQ(name_of("/"), "run-");
    EXPECT_EQ(name_of(std::string(300, 'x')), std::string(200, 'x'));
    EXPECT_EQ(name_of(std::string(199, 'x') + "é"), std::string(199, 'x'));
}

TEST(Plan, WantsVariablesThatAreSet)
{
    RunParameters parameters = asking();
    parameters.env = {{"NOPE", std::nullopt}};
    EXPECT_EQ(plan(parameters, k_lab, here()).error(),
              fail(Error::Kind::usage, "--env NOPE: NOPE is not set here; write --env NOPE=VALUE"));
}

TEST(Plan, TurnsAMemoryIntoAModel)
{
    RunParameters parameters = asking();
    parameters.gpus = GpuRequest{.count = 1, .min_memory_mib = 16 * 1024};
    EXPECT_TRUE(needs_nodes(parameters));
    EXPECT_FALSE(needs_nodes(asking()));
    SiteContext site_context = here();
    site_context.nodes = {
        {.name = "n1", .gpus = {{"k80", 4, 0}, {"a100", 4, 0}}, .partitions = {"calibration"}}};
    const Plan made = *plan(parameters, k_lab, site_context);
    EXPECT_EQ(made.spec.gpu_model, "a100");
    EXPECT_EQ(made.request.gpus, *parameters.gpus); // recorded as requested
    EXPECT_EQ(plan(parameters, k_lab, here()).error().kind, Error::Kind::denied);
}

/// A node of the default queue with two GPUs of four shards each.
SiteContext with_shards()
{
    SiteContext site_context = here();
    site_context.nodes = {{.name = "n1",
                           .gpus = {{"k80", 2, 0}, {"a100_1g.5gb", 7, 0}},
                           .partitions = {"calibration"},
                           .shares = {{GpuShare::Kind::shard, "k80", 4, 8, 0, 0}}}};
    return site_context;
}

TEST(PlanOfAShare, GetsItsFractionOfTheCoresAndMemoryOfAGpu)
{
    RunParameters parameters = asking();
    parameters.gpus = *parse_gpu_request("shard:2");
    EXPECT_TRUE(needs_nodes(parameters));
    std::vector<Partition> lab = k_lab;
    lab[1].cpus_per_gpu = 6;
    lab[1].memory_mib_per_gpu = 1000;
    const Plan made = *plan(parameters, lab, with_shards());
    const GpuShare share{GpuShare::Kind::shard, 2, 4, 3, 500};
    EXPECT_EQ(made.request.gpus.share, share);
    EXPECT_EQ(made.spec.share, share);
    EXPECT_EQ(made.spec.cpus_per_node, 3);
    EXPECT_EQ(made.spec.memory_mib_per_node, 500U);
    EXPECT_EQ(made.request.cpus, std::nullopt); // another request would get other cores
    EXPECT_EQ(made.summary, "2 of 4 shards of a GPU for 1 h in queue calibration (default: 1 h)");

    parameters.gpus = *parse_gpu_request("shard:1");
    EXPECT_EQ(plan(parameters, lab, with_shards())->spec.cpus_per_node, 1);
    parameters.cpus = 5;
    EXPECT_EQ(plan(parameters, lab, with_shards())->spec.cpus_per_node, 5);
    EXPECT_EQ(plan(parameters, k_lab, with_shards())->spec.memory_mib_per_node, std::nullopt);
}

TEST(PlanOfAShare, IsRefusedWhereAGpuHasNoSuchShare)
{
    const auto refusal = [](std::string_view gpus, const RunParameters& others = asking()) {
        RunParameters parameters = others;
        parameters.gpus = *parse_gpu_request(gpus);
        const auto made = plan(parameters, k_lab, with_shards());
        return made ? "accepted" : made.error().text;
    };
    EXPECT_EQ(refusal("shard:4"), "accepted");
    EXPECT_EQ(refusal("shard:5"), "-g shard:5: a GPU in queue calibration has 4 shards; ask for a "
                                  "whole GPU: -g 1");
    EXPECT_EQ(refusal("mps:50"), "-g mps:50: no GPU in queue calibration has shares of this kind "
                                 "(mps); ask for a whole GPU: -g 1");
    EXPECT_EQ(refusal("shard:1", asking_for(1h, "gpu")),
              "-g shard:1: no GPU in queue gpu has shares of this kind (shard); ask for a whole "
              "GPU: -g 1");
    RunParameters two = asking();
    two.nodes = 2;
    EXPECT_EQ(refusal("shard:1", two), "-g shard:1: a share is of one GPU on one node; omit -N");
    two.nodes = 1;
    two.gpus_per_task = 1;
    EXPECT_EQ(refusal("shard:1", two),
              "-g shard:1: a share is of one GPU on one node; omit --gpus-per-task");
}

TEST(PlanOfAMigDevice, HasSlurmsNameOfIt)
{
    RunParameters parameters = asking();
    parameters.gpus = *parse_gpu_request("mig:1g.5gb:2");
    const Plan made = *plan(parameters, k_lab, with_shards());
    EXPECT_EQ(made.spec.gpu_model, "a100_1g.5gb");
    EXPECT_EQ(made.spec.gpus_per_node, 2);
    EXPECT_EQ(to_text(made.request.gpus), "mig:1g.5gb:2"); // recorded as requested
    parameters.gpus = *parse_gpu_request("mig:g.5gb");     // no profile, but the end of one
    EXPECT_EQ(plan(parameters, k_lab, with_shards()).error().text,
              "-g mig:g.5gb:1: a node of queue calibration has 7 a100_1g.5gb, 2 k80");
    parameters.gpus = *parse_gpu_request("mig:1g.5gb:8");
    EXPECT_FALSE(plan(parameters, k_lab, with_shards()));
}

/// With train.py of this content in the working directory.
SiteContext with_script(const std::string& script)
{
    SiteContext site_context = here({{"/home/ann/train.py", File::plain}});
    site_context.text = [script](const std::string& path) {
        return path == "/home/ann/train.py" ? script : "";
    };
    return site_context;
}

RunParameters days(int count)
{
    RunParameters parameters = asking({"train.py"});
    parameters.walltime = count * 24h;
    return parameters;
}

TEST(PlanOfAChain, TakesTheLongestQueueForWhatIsLonger)
{
    RunParameters parameters = days(7);
    parameters.chain.checkpoint = "out/*.pt";
    const Plan made = *plan(parameters, k_lab, here());
    EXPECT_EQ(made.request.queue, "gpu");
    EXPECT_EQ(made.request.walltime, 7 * 24h);
    ASSERT_TRUE(made.request.chain);
    EXPECT_EQ(made.request.chain->link, 48h);
    EXPECT_EQ(made.request.chain->checkpoint, "out/*.pt");
    EXPECT_FALSE(made.request.chain->aware);
    EXPECT_EQ(made.spec.walltime, 48h);
    EXPECT_EQ(made.summary, "1 GPU for 7 days in queue gpu, in 4 links of 2 days (default: 1 GPU)");
}

TEST(PlanOfAChain, StaysInTheQueueThatWasNamed)
{
    RunParameters parameters = days(1);
    parameters.chain.checkpoint = "out/*.pt";
    parameters.queue = "calibration";
    EXPECT_EQ(plan(parameters, k_lab, here())->request.chain->link, 2h);
}

TEST(PlanOfAChain, SeesInTheScriptThatItKnowsGpuq)
{
    for (const char* text : {"import gpuq\n", "from gpuq import epochs\n"}) {
        const Plan made = *plan(days(7), k_lab, with_script(text));
        EXPECT_TRUE(made.request.chain->aware) << text;
        EXPECT_EQ(made.request.chain->checkpoint, "") << text;
    }
    EXPECT_FALSE(
        plan(days(7), k_lab, with_script("os.environ['GPUQ_RESUME_FROM']"))->request.chain->aware);
}

TEST(PlanOfAChain, IsRefusedToWhatIsNotKnownToSave)
{
    EXPECT_THAT(plan(days(7), k_lab, with_script("train()")).error().text,
                AllOf(StartsWith("no queue takes 7 days"), HasSubstr("--checkpoint")));
    RunParameters budget = days(1);
    budget.chain.max_links = 3;
    EXPECT_EQ(plan(budget, k_lab, with_script("train()")).error().kind, Error::Kind::usage);
    RunParameters reckless = days(7);
    reckless.chain.from_scratch = true;
    EXPECT_TRUE(plan(reckless, k_lab, with_script("train()"))->request.chain);
}

TEST(PlanOfAChain, HasNoMoreTimeThanItsDateAndItsHoursLeave)
{
    SiteContext site = here();
    site.now = Time{} + 24h;
    RunParameters parameters = asking_for(1h);
    parameters.chain.checkpoint = "out/*";
    parameters.chain.until = site.now + 20min;
    EXPECT_EQ(plan(parameters, k_lab, site)->spec.walltime, 20min);
    parameters.chain.until = site.now - 1min;
    EXPECT_EQ(plan(parameters, k_lab, site).error(),
              fail(Error::Kind::usage, "it would not start: its end date is reached (--until)"));
    parameters.chain.until.reset();
    parameters.chain.gpu_time = 30min;
    EXPECT_EQ(plan(parameters, k_lab, site)->spec.walltime, 30min);
    parameters.chain.gpu_time = 1min;
    parameters.gpus = *parse_gpu_request("16");
    EXPECT_THAT(plan(parameters, k_lab, site).error().text, HasSubstr("--gpu-hours"));
}

TEST(PlanOfAChain, IsMadeWithinTheLimitOnlyWhenAskedFor)
{
    RunParameters parameters = asking_for(1h);
    EXPECT_FALSE(plan(parameters, k_lab, here())->request.chain);
    parameters.chain.checkpoint = "out/*";
    const Plan made = *plan(parameters, k_lab, here());
    EXPECT_EQ(made.request.queue, "calibration");
    EXPECT_EQ(made.request.chain->link, 1h);
    EXPECT_THAT(made.summary, HasSubstr("continuing after a failed node"));
}

TEST(PlanOfAChain, RoundsAShortLinkUpForSlurm)
{
    RunParameters parameters = asking_for(1h);
    parameters.chain.checkpoint = "out/*";
    parameters.chain.link = 20s;
    const Plan made = *plan(parameters, k_lab, here());
    EXPECT_EQ(made.request.chain->link, 20s);
    EXPECT_EQ(made.spec.walltime, 1min);
    parameters.chain.link = 49h;
    parameters.queue = "gpu";
    parameters.walltime = 72h;
    EXPECT_EQ(plan(parameters, k_lab, here()).error().kind, Error::Kind::denied);
}

TEST(PlanOfAChain, HasNeitherTerminalNorPipe)
{
    RunParameters parameters = days(7);
    parameters.chain.checkpoint = "out/*";
    parameters.input = Input::pipe;
    EXPECT_THAT(plan(parameters, k_lab, here()).error().text, HasSubstr("</dev/null"));
    parameters.input = Input::terminal;
    EXPECT_TRUE(plan(parameters, k_lab, here()));
    parameters.pty = Pty{};
    EXPECT_THAT(plan(parameters, k_lab, here()).error().text, HasSubstr("--pty"));
}

/// k_lab under a policy that allows only queue `gpu` to chain runs.
std::vector<Partition> ruled_lab()
{
    std::vector<Partition> lab = k_lab;
    for (Partition& queue : lab) {
        queue.ruled = true;
    }
    return lab;
}

SiteContext under_policy(const std::string& script)
{
    SiteContext site_context = with_script(script);
    site_context.chains = {{"calibration", {}},
                           {"gpu", {.allowed = true, .link = 24h, .links = 10, .gpu_time = 500h}}};
    return site_context;
}

TEST(PlanUnderAPolicy, GoesOnOnlyWhereAQueueAllowsIt)
{
    const SiteContext site = under_policy("import gpuq");
    const Plan made = *plan(days(7), ruled_lab(), site);
    EXPECT_EQ(made.request.queue, "gpu");
    EXPECT_EQ(made.request.chain->link, 24h) << "the policy's";
    EXPECT_EQ(made.request.chain->max_links, 10);
    EXPECT_EQ(made.request.chain->gpu_time, 500h);
    RunParameters named = days(7);
    named.queue = "calibration";
    EXPECT_THAT(plan(named, ruled_lab(), site).error().text,
                HasSubstr("in gpu a run can continue beyond that: -p gpu"));
    SiteContext strict = site;
    strict.chains["gpu"] = {};
    EXPECT_THAT(plan(days(7), ruled_lab(), strict).error().text,
                HasSubstr("no queue lets runs continue beyond its limit"));
}

TEST(PlanUnderAPolicy, AQueueThatIsClosedToAPersonIsNotChosenForThem)
{
    std::vector<Partition> lab = ruled_lab();
    Partition night = lab.back();
    night.name = "night";
    night.max_time = 72h;
    night.is_default = false;
    lab.push_back(night);
    RunParameters parameters = asking({"train.py"});
    parameters.walltime = 50h;
    SiteContext site = under_policy("import gpuq");
    site.chains["night"] = {};
    EXPECT_EQ(plan(parameters, lab, site)->request.queue, "night");
    site.entry = {{"night", SiteContext::Entry::closed}};
    EXPECT_EQ(plan(parameters, lab, site)->request.queue, "gpu");
    EXPECT_TRUE(plan(parameters, lab, site)->request.chain) << "in links, where it may";
    site.entry = {{"night", SiteContext::Entry::unknown}};
    EXPECT_EQ(plan(parameters, lab, site)->request.queue, "gpu,night") << "Slurm has the last word";
    site.chains["gpu"] = {};
    EXPECT_EQ(plan(parameters, lab, site)->request.queue, "night") << "nothing else holds it";
    parameters.queue = "calibration";
    site.entry = {{"night", SiteContext::Entry::closed}};
    EXPECT_THAT(plan(parameters, lab, site).error().text, Not(HasSubstr("night")));
    parameters.queue = "night";
    EXPECT_EQ(plan(parameters, lab, site)->request.queue, "night") << "it was named";
}

TEST(PlanUnderAPolicy, HoldsAChainToItsLimits)
{
    const SiteContext site = under_policy("import gpuq");
    RunParameters parameters = days(7);
    parameters.chain.max_links = 5;
    EXPECT_EQ(plan(parameters, ruled_lab(), site)->request.chain->max_links, 5);
    parameters.chain.max_links = 11;
    EXPECT_EQ(plan(parameters, ruled_lab(), site).error().text,
              "--max-links: at most 10 in queue gpu (its policy)");
    parameters.chain.max_links.reset();
    parameters.chain.gpu_time = 501h;
    EXPECT_EQ(plan(parameters, ruled_lab(), site).error().text,
              "--gpu-hours: at most 500 in queue gpu (its policy)");
    parameters.chain.gpu_time.reset();
    parameters.chain.link = 30h;
    EXPECT_EQ(plan(parameters, ruled_lab(), site).error().text,
              "--link: at most 1 day in queue gpu (its policy)");
}

TEST(PlanUnderAPolicy, SaysWhatALinkWithoutATicketDoes)
{
    SiteContext site = under_policy("import gpuq");
    RunParameters parameters = days(7);
    EXPECT_EQ(plan(parameters, ruled_lab(), site)->when_short, WhenShort::hold);
    parameters.chain.when_short = WhenShort::run;
    EXPECT_EQ(plan(parameters, ruled_lab(), site)->when_short, WhenShort::run);
    site.chains["gpu"].when_short = WhenShort::fail;
    EXPECT_THAT(plan(parameters, ruled_lab(), site).error().text,
                HasSubstr("--credentials: hold or fail in queue gpu (its policy)"));
    parameters.chain.when_short.reset();
    EXPECT_EQ(plan(parameters, ruled_lab(), site)->when_short, WhenShort::fail);
    parameters.chain.when_short = WhenShort::hold;
    EXPECT_EQ(plan(parameters, ruled_lab(), site)->when_short, WhenShort::hold);
    site.chains["gpu"].when_short = WhenShort::run;
    parameters.chain.when_short.reset();
    EXPECT_EQ(plan(parameters, ruled_lab(), site)->when_short, WhenShort::run);
    EXPECT_EQ(plan(parameters, ruled_lab(), under_policy("import gpuq"))->when_short,
              WhenShort::hold);
}

TEST(PlanUnderAPolicy, OfARunThatIsNoChainNothingIsAskedForItsTicket)
{
    SiteContext site = under_policy("import gpuq");
    site.chains["gpu"].when_short = WhenShort::hold;
    RunParameters parameters = asking({"train.py"});
    parameters.walltime = 1h;
    parameters.chain.when_short = WhenShort::run;
    EXPECT_TRUE(plan(parameters, ruled_lab(), site));
}

TEST(PlanUnderAPolicy, ARunWithoutATimeBeginsShortAndGoesOnUntilItIsDone)
{
    const Plan made = *plan(asking({"train.py"}), ruled_lab(), under_policy("import gpuq"));
    EXPECT_EQ(made.request.queue, "calibration,gpu");
    ASSERT_TRUE(made.request.chain);
    EXPECT_EQ(made.request.chain->first, 1h) << "calibration's default";
    EXPECT_EQ(made.request.chain->link, 24h);
    EXPECT_EQ(made.request.walltime, 1h + 9 * 24h);
    EXPECT_EQ(made.spec.walltime, 1h);
    EXPECT_EQ(made.summary, "1 GPU for 1 h in the first available of calibration,gpu, then "
                            "until it is done in links of 1 day (default: 1 GPU, 1 h)");
}

TEST(PlanUnderAPolicy, ARunWithoutATimeEndsWithItsFirstLinkWhereItCannotGoOn)
{
    const auto has_chain = [](const RunParameters& parameters, const SiteContext& site) {
        const auto made = plan(parameters, ruled_lab(), site);
        return made && made->request.chain.has_value();
    };
    const RunParameters parameters = asking({"train.py"});
    EXPECT_TRUE(has_chain(parameters, under_policy("import gpuq")));
    EXPECT_FALSE(has_chain(parameters, under_policy("train()"))) << "it saves nothing";
    EXPECT_FALSE(has_chain(parameters, with_script("import gpuq"))) << "no policy is known";
    RunParameters piped = parameters;
    piped.input = Input::pipe;
    EXPECT_FALSE(has_chain(piped, under_policy("import gpuq")));
    RunParameters screen = parameters;
    screen.pty = Pty{};
    EXPECT_FALSE(has_chain(screen, under_policy("import gpuq")));
    RunParameters named = parameters;
    named.queue = "calibration";
    EXPECT_FALSE(has_chain(named, under_policy("import gpuq")));
}

} // namespace
} // namespace gpuq
