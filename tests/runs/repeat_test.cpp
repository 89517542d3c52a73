// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/repeat.h"

#include "core/split_arguments.h"
#include "fakes/now.h"
#include "runs/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

const std::vector<Partition> k_queues = {
    {.name = "gpu", .max_time = 48h, .default_time = 4h},
    {.name = "calibration", .max_time = 2h, .default_time = 1h, .is_default = true},
};

SiteContext here()
{
    SiteContext site_context;
    site_context.work_dir = "/home/ann";
    site_context.file = [](const std::string& path) {
        return path == "/home/ann/train.py" ? SiteContext::File::plain : SiteContext::File::missing;
    };
    site_context.variable = [](const std::string&) { return std::optional<std::string>("here"); };
    return site_context;
}

Request planned(const RunParameters& parameters, const std::vector<Partition>& queues = k_queues,
                const SiteContext& site_context = here())
{
    const auto made = plan(parameters, queues, site_context);
    EXPECT_TRUE(made) << made.error().text;
    return made ? made->request : Request{};
}

RunParameters asking(Strings program = {"train.py", "--lr", "1"})
{
    RunParameters parameters;
    parameters.program = std::move(program);
    return parameters;
}

/// The request of a run like the recorded one, with these options.
Request again(const Request& recorded, RunParameters given = {})
{
    given.program = recorded.program;
    return planned(repeated(std::move(given), recorded, k_now));
}

RunParameters everything()
{
    RunParameters parameters = asking();
    parameters.walltime = 30h;
    parameters.gpus = GpuRequest{4, "k80", std::nullopt};
    parameters.cpus = 8;
    parameters.memory_mib = 4096;
    parameters.nodes = 2;
    parameters.tasks_per_node = 2;
    parameters.gpus_per_task = 2;
    parameters.name = "sweep";
    parameters.queue = "gpu";
    parameters.account = "lab";
    parameters.qos = "high";
    parameters.env = {{"LR", "1"}, {"HOST", std::nullopt}};
    parameters.sources = {"env.sh"};
    parameters.modules = {"cuda"};
    parameters.venv = "venv";
    parameters.container = "image.sif";
    parameters.slurm_options = "--exclusive";
    parameters.chain.link = 10h;
    parameters.chain.checkpoint = "out/*.pt";
    parameters.chain.resume_args = {"--resume", "{}"};
    parameters.chain.valid = {"check", "{}"};
    parameters.chain.notice = Notice::usr2;
    parameters.chain.from_scratch = true;
    parameters.chain.max_links = 5;
    parameters.chain.gpu_time = 100h;
    parameters.chain.until = k_now + 24h;
    return parameters;
}

TEST(Repeat, GivesTheSameRequest)
{
    for (const auto& queue : {std::optional<std::string>{}, std::optional<std::string>{"gpu"}}) {
        RunParameters plain = asking();
        plain.queue = queue;
        EXPECT_EQ(again(planned(plain)), planned(plain));
    }
    RunParameters memory = asking();
    memory.gpus = GpuRequest{2, "k80", std::nullopt};
    EXPECT_EQ(again(planned(memory)), planned(memory));
    EXPECT_EQ(again(planned(everything())), planned(everything()));
    RunParameters conda = asking();
    conda.conda = "torch";
    EXPECT_EQ(again(planned(conda)), planned(conda));
    RunParameters one_link = asking();
    one_link.chain.checkpoint = "out/*.pt";
    EXPECT_EQ(again(planned(one_link)), planned(one_link));
}

TEST(Repeat, TakesTheOptionsGiven)
{
    const Request first = planned(everything());
    RunParameters other;
    other.walltime = 20h;
    other.name = "other";
    other.memory_mib = 1024;
    other.env = {{"LR", "2"}, {"NEW", "3"}};
    other.sources = {"/b.sh"};
    other.conda = "torch";
    other.chain.resume_args = {"--from", "{}"};
    Request expected = first;
    expected.walltime = 20h;
    expected.name = "other";
    expected.memory_mib = 1024;
    expected.setup.env = {{"HOST", "here"}, {"LR", "2"}, {"NEW", "3"}};
    expected.setup.sources = {"/b.sh"};
    expected.setup.conda = "torch";
    expected.setup.venv.reset();
    expected.chain->resume_args = {"--from", "{}"};
    EXPECT_EQ(again(first, other), expected);
}

TEST(Repeat, LeavesOutWhatWasForThatRunOnly)
{
    RunParameters first = everything();
    first.after = JobId{7};
    first.input = Input::terminal;
    first.chain.until = k_now - 1h;
    const Request request = again(planned(first));
    EXPECT_EQ(request.after, std::nullopt);
    EXPECT_EQ(request.input, Input::none);
    EXPECT_EQ(request.chain->until, std::nullopt);
}

TEST(Repeat, PlansLinksAnewInAnotherQueue)
{
    RunParameters given;
    given.queue = "calibration";
    given.walltime = 2h;
    EXPECT_EQ(again(planned(everything()), given).chain->link, 2h);
    given.chain.link = 1h;
    EXPECT_EQ(again(planned(everything()), given).chain->link, 1h);
}

TEST(Repeat, GpusFollowFromRanksAndRanksFromGpus)
{
    RunParameters first = asking();
    first.gpus_per_task = 2;
    first.tasks_per_node = 2;
    const Request recorded = planned(first);
    EXPECT_EQ(recorded.gpus.count, 4);
    RunParameters ranks;
    ranks.tasks_per_node = 4;
    EXPECT_EQ(again(recorded, ranks).gpus.count, 8);
    RunParameters gpus;
    gpus.gpus = GpuRequest{6, std::nullopt, std::nullopt};
    EXPECT_EQ(again(recorded, gpus).tasks_per_node, 3);
    RunParameters each;
    each.gpus_per_task = 1;
    EXPECT_EQ(again(recorded, each).tasks_per_node, 4);
    EXPECT_EQ(again(recorded, each).gpus.count, 4);
}

TEST(Repeat, LeavesThePolicysChoiceOfQueuesToThePolicy)
{
    Request recorded = planned(asking());
    recorded.queue = "short,long";
    EXPECT_EQ(repeated({}, recorded, k_now).queue, std::nullopt);
    EXPECT_EQ(repeated({}, recorded, k_now).walltime, recorded.walltime);
    recorded.chain = Chain{.link = 24h, .first = 1h};
    recorded.queue = "short";
    recorded.walltime = 700h;
    const RunParameters open_ended = repeated({}, recorded, k_now);
    EXPECT_EQ(open_ended.queue, std::nullopt);
    EXPECT_EQ(open_ended.walltime, std::nullopt);
    RunParameters given;
    given.walltime = 1h;
    EXPECT_EQ(repeated(given, recorded, k_now).chain.link, std::nullopt) << "may be too long there";
}

TEST(Repeat, NamesTheValuesThatAreKept)
{
    Request recorded = planned(everything());
    recorded.setup.conda = "torch";
    EXPECT_EQ(options_kept(recorded, k_now),
              (std::map<std::string, std::string>{{"--chdir", "/home/ann"},
                                                  {"--conda", "torch"},
                                                  {"--gpus", "k80:4"},
                                                  {"--name", recorded.name},
                                                  {"--queue", "gpu"},
                                                  {"--time", "1 day 6 h"},
                                                  {"--venv", "/home/ann/venv"}}));
    recorded.queue = "calibration,gpu"; // chosen by the policy
    EXPECT_FALSE(options_kept(recorded, k_now).contains("--queue"));
}

TEST(AgainText, IsSplitIntoTheSameWords)
{
    for (const Strings& program :
         {Strings{"python3", "train.py", "--lr", "1e-3"},
          {"./a b", "", "it's", "\"x\"", "\\", "\\'", "a\\ b", "$HOME", "`id`", "$(id)", "*"},
          {"p", " ", "\t", "two\nlines\n", "\n", "\r", "größe", "日本 語", "\x01\x1b[31m", "\xff"},
          {"-odd", "--", "-", "'", "''", "';'", "#", "~", "!", "{}", "a=b"}}) {
        Request request;
        request.program = program;
        EXPECT_EQ(*split_arguments(again_text(request)), program);
    }
    Request plain;
    plain.program = {"python3", "train.py", "--lr", "1e-3"};
    EXPECT_EQ(again_text(plain), "python3 train.py --lr 1e-3");
}

} // namespace
} // namespace gpuq
