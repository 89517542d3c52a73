// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using File = Surroundings::File;
using Words = std::vector<std::string>;

const std::vector<Partition> k_lab = {
    {.name = "gpu", .max_time = 48h, .default_time = 4h},
    {.name = "calibration", .max_time = 2h, .default_time = 1h, .is_default = true},
};

Surroundings here(const std::map<std::string, File>& files = {})
{
    Surroundings surroundings;
    surroundings.work_dir = "/home/ann";
    surroundings.file = [files](const std::string& path) {
        const auto found = files.find(path);
        return found == files.end() ? File::missing : found->second;
    };
    surroundings.variable = [](const std::string& name) {
        return name == "HOME" ? std::optional<std::string>("/home/ann") : std::nullopt;
    };
    surroundings.container_command = {"apptainer", "exec", "--nv", "{image}"};
    return surroundings;
}

AskedFor asking(const Words& program = {"hostname"})
{
    AskedFor asked;
    asked.program = program;
    return asked;
}

AskedFor asking_for(std::optional<std::chrono::minutes> walltime,
                    std::optional<std::string> queue = {})
{
    AskedFor asked = asking();
    asked.walltime = walltime;
    asked.queue = std::move(queue);
    return asked;
}

std::string queue_for(const AskedFor& asked, const std::vector<Partition>& partitions = k_lab)
{
    const auto made = plan(asked, partitions, here());
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
    AskedFor asked = asking_for(1h);
    asked.nodes = 4;
    EXPECT_EQ(queue_for(asked, lab), "refused: -N 4: a job in queue calibration can have 1 node; "
                                     "gpu has them: -p gpu");
    asked.queue = "gpu";
    EXPECT_EQ(queue_for(asked, lab), "gpu");
    asked.nodes = 5;
    EXPECT_EQ(queue_for(asked, lab),
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
    AskedFor wide = asking_for(1h);
    wide.nodes = 2; // node limits of a queue are left to the policy
    EXPECT_EQ(queue_for(wide, lab), "calibration,owners,gpu");
    EXPECT_THAT(plan(asking_for(3h), lab, here())->summary,
                HasSubstr("in the first available of owners,gpu"));
    lab.back().up = false;
    EXPECT_EQ(queue_for(asking_for(3h), lab), "gpu");
}

TEST(Plan, LeavesTheNumberOfNodesToSlurmWhereItIsNotKnown)
{
    AskedFor asked = asking_for(1h);
    asked.nodes = 400;
    EXPECT_EQ(queue_for(asked), "calibration");
}

TEST(Plan, PassesOnEverythingAskedFor)
{
    AskedFor asked = asking();
    asked.walltime = 90min;
    asked.gpus = GpuRequest{.count = 2, .model = "k80"};
    asked.cpus = 8;
    asked.memory_mib = 16384;
    asked.nodes = 2;
    asked.name = "sweep";
    asked.account = "lab";
    asked.qos = "high";
    asked.after = JobId{7};
    asked.input = Input::pipe;
    asked.env = {{"SEED", "1"}, {"HOME", std::nullopt}};
    asked.modules = {"cuda/12"};
    asked.conda = "torch";
    asked.container = "pytorch.sif";
    asked.slurm_options = "--exclude=n1";
    const Plan made = *plan(asked, k_lab, here());
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
    EXPECT_EQ(made.request.env, (std::vector<std::pair<std::string, std::string>>{
                                    {"SEED", "1"}, {"HOME", "/home/ann"}}));
    EXPECT_EQ(made.request.modules, Words{"cuda/12"});
    EXPECT_EQ(made.request.conda, "torch");
    EXPECT_EQ(made.request.container, "pytorch.sif");
    EXPECT_EQ(made.request.container_command, here().container_command);
    EXPECT_EQ(made.request.slurm_options, "--exclude=n1");
    EXPECT_TRUE(made.spec.by_sbatch);
    EXPECT_EQ(made.summary, "2 k80 GPUs on each of 2 nodes for 1 h 30 min in queue calibration");
}

TEST(Plan, FindsGpusAndTasksOfANodeOutOfEachOther)
{
    AskedFor asked = asking();
    asked.tasks_per_node = 4;
    EXPECT_EQ(plan(asked, k_lab, here())->request.gpus.count, 1) << "which all of them see";
    asked.gpus_per_task = 1;
    EXPECT_EQ(plan(asked, k_lab, here())->request.gpus.count, 4);
    EXPECT_EQ(plan(asked, k_lab, here())->spec.tasks_per_node, 4);
    asked.gpus = GpuRequest{.count = 3};
    EXPECT_THAT(plan(asked, k_lab, here()).error().text,
                HasSubstr("4 tasks with 1 each need 4 GPUs on each node, -g asks for 3"));
    asked.tasks_per_node.reset();
    EXPECT_EQ(plan(asked, k_lab, here())->request.tasks_per_node, 3);
}

TEST(Plan, SharesTheCoresOfANodeEvenlyAmongItsTasks)
{
    AskedFor asked = asking();
    asked.cpus = 10;
    asked.tasks_per_node = 4;
    EXPECT_THAT(plan(asked, k_lab, here()).error().text, HasSubstr("10 cores"));
    asked.cpus = 8;
    EXPECT_EQ(plan(asked, k_lab, here())->spec.cpus_per_node, 8);
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
    EXPECT_EQ(queue_for(asking_for(1h), {queues[0]}),
              "refused: no queue of this cluster is up; try again later");
    EXPECT_EQ(queue_for(asking_for({}), {}),
              "refused: no queue of this cluster is up; try again later");
}

TEST(Plan, NamesTheQueueThatTakesALongerTime)
{
    const auto refused = plan(asking_for(3h, "calibration"), k_lab, here());
    EXPECT_EQ(refused.error(), fail(Error::Kind::denied, "queue calibration takes at most 2 h; gpu "
                                                         "takes 3 h: -p gpu"));
}

TEST(Plan, NamesTheLongestQueueBeyondAll)
{
    for (const auto& asked : {asking_for(49h), asking_for(49h, "calibration")}) {
        const auto refused = plan(asked, k_lab, here());
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

Words program_of(const Words& typed, const std::map<std::string, File>& files)
{
    return plan(asking(typed), k_lab, here(files))->request.program;
}

TEST(Plan, RunsTheFileInTheWorkingDirectoryFirst)
{
    EXPECT_EQ(program_of({"train.py", "-x"}, {{"/home/ann/train.py", File::plain}}),
              (Words{"python3", "train.py", "-x"}));
    EXPECT_EQ(program_of({"train.py"}, {{"/home/ann/train.py", File::executable}}),
              Words{"./train.py"});
    EXPECT_EQ(program_of({"train.py"}, {}), Words{"train.py"}); // from PATH on the node
    EXPECT_EQ(program_of({"notes"}, {{"/home/ann/notes", File::plain}}), Words{"notes"});
    EXPECT_EQ(program_of({"src"}, {{"/home/ann/src", File::other}}), Words{"src"});
    EXPECT_EQ(program_of({"sub/train.py"}, {{"/home/ann/sub/train.py", File::plain}}),
              (Words{"python3", "sub/train.py"}));
    EXPECT_EQ(program_of({"/opt/train.py"}, {{"/opt/train.py", File::plain}}),
              (Words{"python3", "/opt/train.py"}));
    EXPECT_EQ(program_of({"/opt/tool"}, {{"/opt/tool", File::executable}}), Words{"/opt/tool"});
    EXPECT_EQ(program_of({"-x.py"}, {{"/home/ann/-x.py", File::plain}}),
              (Words{"python3", "./-x.py"}));
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
    AskedFor asked = asking();
    asked.env = {{"NOPE", std::nullopt}};
    EXPECT_EQ(plan(asked, k_lab, here()).error(),
              fail(Error::Kind::usage, "--env NOPE: NOPE is not set here; write --env NOPE=VALUE"));
}

TEST(Plan, TurnsAMemoryIntoAModel)
{
    AskedFor asked = asking();
    asked.gpus = GpuRequest{.count = 1, .min_memory_mib = 16 * 1024};
    EXPECT_TRUE(needs_nodes(asked));
    EXPECT_FALSE(needs_nodes(asking()));
    Surroundings surroundings = here();
    surroundings.nodes = {
        {.name = "n1", .gpus = {{"k80", 4, 0}, {"a100", 4, 0}}, .partitions = {"calibration"}}};
    const Plan made = *plan(asked, k_lab, surroundings);
    EXPECT_EQ(made.spec.gpu_model, "a100");
    EXPECT_EQ(made.request.gpus, *asked.gpus); // recorded as requested
    EXPECT_EQ(plan(asked, k_lab, here()).error().kind, Error::Kind::denied);
}

/// With train.py of this content in the working directory.
Surroundings with_script(const std::string& script)
{
    Surroundings surroundings = here({{"/home/ann/train.py", File::plain}});
    surroundings.text = [script](const std::string& path) {
        return path == "/home/ann/train.py" ? script : "";
    };
    return surroundings;
}

AskedFor days(int count)
{
    AskedFor asked = asking({"train.py"});
    asked.walltime = count * 24h;
    return asked;
}

TEST(PlanOfAChain, TakesTheLongestQueueForWhatIsLonger)
{
    AskedFor asked = days(7);
    asked.checkpoint = "out/*.pt";
    const Plan made = *plan(asked, k_lab, here());
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
    AskedFor asked = days(1);
    asked.checkpoint = "out/*.pt";
    asked.queue = "calibration";
    EXPECT_EQ(plan(asked, k_lab, here())->request.chain->link, 2h);
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
    AskedFor budget = days(1);
    budget.max_links = 3;
    EXPECT_EQ(plan(budget, k_lab, with_script("train()")).error().kind, Error::Kind::usage);
    AskedFor reckless = days(7);
    reckless.from_scratch = true;
    EXPECT_TRUE(plan(reckless, k_lab, with_script("train()"))->request.chain);
}

TEST(PlanOfAChain, IsMadeWithinTheLimitOnlyWhenAskedFor)
{
    AskedFor asked = asking_for(1h);
    EXPECT_FALSE(plan(asked, k_lab, here())->request.chain);
    asked.checkpoint = "out/*";
    const Plan made = *plan(asked, k_lab, here());
    EXPECT_EQ(made.request.queue, "calibration");
    EXPECT_EQ(made.request.chain->link, 1h);
    EXPECT_THAT(made.summary, HasSubstr("continuing after a failed node"));
}

TEST(PlanOfAChain, RoundsAShortLinkUpForSlurm)
{
    AskedFor asked = asking_for(1h);
    asked.checkpoint = "out/*";
    asked.link = 20s;
    const Plan made = *plan(asked, k_lab, here());
    EXPECT_EQ(made.request.chain->link, 20s);
    EXPECT_EQ(made.spec.walltime, 1min);
    asked.link = 49h;
    asked.queue = "gpu";
    asked.walltime = 72h;
    EXPECT_EQ(plan(asked, k_lab, here()).error().kind, Error::Kind::denied);
}

TEST(PlanOfAChain, HasNeitherTerminalNorPipe)
{
    AskedFor asked = days(7);
    asked.checkpoint = "out/*";
    asked.input = Input::pipe;
    EXPECT_THAT(plan(asked, k_lab, here()).error().text, HasSubstr("</dev/null"));
    asked.input = Input::terminal;
    EXPECT_TRUE(plan(asked, k_lab, here()));
    asked.pty = Pty{};
    EXPECT_THAT(plan(asked, k_lab, here()).error().text, HasSubstr("--pty"));
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

Surroundings under_policy(const std::string& script)
{
    Surroundings surroundings = with_script(script);
    surroundings.chains = {{"calibration", {}},
                           {"gpu", {.allowed = true, .link = 24h, .links = 10, .gpu_time = 500h}}};
    return surroundings;
}

TEST(PlanUnderAPolicy, GoesOnOnlyWhereAQueueAllowsIt)
{
    const Surroundings site = under_policy("import gpuq");
    const Plan made = *plan(days(7), ruled_lab(), site);
    EXPECT_EQ(made.request.queue, "gpu");
    EXPECT_EQ(made.request.chain->link, 24h) << "the policy's";
    EXPECT_EQ(made.request.chain->max_links, 10);
    EXPECT_EQ(made.request.chain->gpu_time, 500h);
    AskedFor named = days(7);
    named.queue = "calibration";
    EXPECT_THAT(plan(named, ruled_lab(), site).error().text,
                HasSubstr("in gpu a run can continue beyond that: -p gpu"));
    Surroundings strict = site;
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
    AskedFor asked = asking({"train.py"});
    asked.walltime = 50h;
    Surroundings site = under_policy("import gpuq");
    site.chains["night"] = {};
    EXPECT_EQ(plan(asked, lab, site)->request.queue, "night");
    site.entry = {{"night", Surroundings::Entry::closed}};
    EXPECT_EQ(plan(asked, lab, site)->request.queue, "gpu");
    EXPECT_TRUE(plan(asked, lab, site)->request.chain) << "in links, where it may";
    site.entry = {{"night", Surroundings::Entry::unknown}};
    EXPECT_EQ(plan(asked, lab, site)->request.queue, "gpu,night") << "Slurm has the last word";
    site.chains["gpu"] = {};
    EXPECT_EQ(plan(asked, lab, site)->request.queue, "night") << "nothing else holds it";
    asked.queue = "calibration";
    site.entry = {{"night", Surroundings::Entry::closed}};
    EXPECT_THAT(plan(asked, lab, site).error().text, Not(HasSubstr("night")));
    asked.queue = "night";
    EXPECT_EQ(plan(asked, lab, site)->request.queue, "night") << "it was named";
}

TEST(PlanUnderAPolicy, HoldsAChainToItsLimits)
{
    const Surroundings site = under_policy("import gpuq");
    AskedFor asked = days(7);
    asked.max_links = 5;
    EXPECT_EQ(plan(asked, ruled_lab(), site)->request.chain->max_links, 5);
    asked.max_links = 11;
    EXPECT_EQ(plan(asked, ruled_lab(), site).error().text,
              "--max-links: at most 10 in queue gpu (its policy)");
    asked.max_links.reset();
    asked.gpu_time = 501h;
    EXPECT_EQ(plan(asked, ruled_lab(), site).error().text,
              "--gpu-hours: at most 500 in queue gpu (its policy)");
    asked.gpu_time.reset();
    asked.link = 30h;
    EXPECT_EQ(plan(asked, ruled_lab(), site).error().text,
              "--link: at most 1 day in queue gpu (its policy)");
}

TEST(PlanUnderAPolicy, SaysWhatALinkWithoutATicketDoes)
{
    Surroundings site = under_policy("import gpuq");
    AskedFor asked = days(7);
    EXPECT_EQ(plan(asked, ruled_lab(), site)->when_short, WhenShort::hold);
    asked.when_short = WhenShort::run;
    EXPECT_EQ(plan(asked, ruled_lab(), site)->when_short, WhenShort::run);
    site.chains["gpu"].when_short = WhenShort::fail;
    EXPECT_THAT(plan(asked, ruled_lab(), site).error().text,
                HasSubstr("--credentials: hold or fail in queue gpu (its policy)"));
    asked.when_short.reset();
    EXPECT_EQ(plan(asked, ruled_lab(), site)->when_short, WhenShort::fail);
    asked.when_short = WhenShort::hold;
    EXPECT_EQ(plan(asked, ruled_lab(), site)->when_short, WhenShort::hold);
    site.chains["gpu"].when_short = WhenShort::run;
    asked.when_short.reset();
    EXPECT_EQ(plan(asked, ruled_lab(), site)->when_short, WhenShort::run);
    EXPECT_EQ(plan(asked, ruled_lab(), under_policy("import gpuq"))->when_short, WhenShort::hold);
}

TEST(PlanUnderAPolicy, OfARunThatIsNoChainNothingIsAskedForItsTicket)
{
    Surroundings site = under_policy("import gpuq");
    site.chains["gpu"].when_short = WhenShort::hold;
    AskedFor asked = asking({"train.py"});
    asked.walltime = 1h;
    asked.when_short = WhenShort::run;
    EXPECT_TRUE(plan(asked, ruled_lab(), site));
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
    const auto has_chain = [](const AskedFor& asked, const Surroundings& site) {
        const auto made = plan(asked, ruled_lab(), site);
        return made && made->request.chain.has_value();
    };
    const AskedFor asked = asking({"train.py"});
    EXPECT_TRUE(has_chain(asked, under_policy("import gpuq")));
    EXPECT_FALSE(has_chain(asked, under_policy("train()"))) << "it saves nothing";
    EXPECT_FALSE(has_chain(asked, with_script("import gpuq"))) << "no policy is known";
    AskedFor piped = asked;
    piped.input = Input::pipe;
    EXPECT_FALSE(has_chain(piped, under_policy("import gpuq")));
    AskedFor screen = asked;
    screen.pty = Pty{};
    EXPECT_FALSE(has_chain(screen, under_policy("import gpuq")));
    AskedFor named = asked;
    named.queue = "calibration";
    EXPECT_FALSE(has_chain(named, under_policy("import gpuq")));
}

} // namespace
} // namespace gpuq
