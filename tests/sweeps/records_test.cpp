// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RunKey k_worker = RunKey::make(Time(1'700'000'000s), {1, 2, 3, 4, 5, 6, 7, 8});

TEST(Records, OfASweepAreReadAsWritten)
{
    Sweep sweep{"cal", {"lr", "n"},           {"val/acc", Metric::Goal::max},
                3,     18446744073709551615U, {k_worker}};
    sweep.run.cluster = "c";
    sweep.run.submitted_at = k_worker.made_at();
    sweep.run.request.program = {"python3", "train \xff.py", "{lr}"};
    sweep.run.request.name = "cal";
    sweep.stop_early = parse_stop_rule("asha:eta=4").value();
    const auto read = sweep_from_json(to_json(sweep));
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(read->name, "cal");
    EXPECT_EQ(read->parameters, sweep.parameters);
    EXPECT_EQ(read->metric, sweep.metric);
    EXPECT_EQ(read->per_gpu, 3);
    EXPECT_EQ(read->seed, sweep.seed);
    EXPECT_EQ(read->stop_early, sweep.stop_early);
    EXPECT_EQ(read->run.key, k_worker);
    EXPECT_EQ(read->run.request, sweep.run.request);
    EXPECT_FALSE(sweep_from_json("{}"));
    EXPECT_FALSE(sweep_from_json("rubbish"));
}

TEST(Records, OfTriesEndAtATornLine)
{
    const std::vector<std::vector<std::string>> tries{{"1e-4", "a \"b\"\n"}, {"", "größe"}};
    const std::string lines = to_lines(tries);
    EXPECT_EQ(tries_in(lines), tries);
    EXPECT_THAT(tries_in(lines.substr(0, lines.size() - 1)), ElementsAre(tries.front()));
    EXPECT_THAT(tries_in("[\"1\"]\nrubbish\n[\"2\"]\n"), ElementsAre(ElementsAre("1")));
}

TEST(Records, OfTriesAreReadFromAnyJson)
{
    EXPECT_THAT(tries_in("[\"1\",\"\",\"a b\"]\n[ \"\\u0061\" , \"]\" ]\n[\"\\\\\"]\n[]\n"),
                ElementsAre(ElementsAre("1", "", "a b"), ElementsAre("a", "]"), ElementsAre("\\"),
                            IsEmpty()));
    for (const char* line : {"[\"]", "[\"1\",]\"]", "[\"1\"\"2\"]", "[\"1\",\"]", "[\"1\"] \"]",
                             "[\"\x01\"]", "[\"\xff\"]", "[\"1\", 2 \"]", "\"1\""}) {
        EXPECT_THAT(tries_in(std::string(line) + "\n"), IsEmpty()) << line;
    }
}

TEST(Records, OfEventsAreReadAsWritten)
{
    const TryEvent began{TryEvent::Kind::began, 12, 2, Time(5us), LinkNumber{3}};
    EXPECT_EQ(to_line(began), "began 12 2 5 3 .");
    EXPECT_EQ(try_event_in(to_line(began)), began);
    TryEvent ended = began;
    ended.kind = TryEvent::Kind::ended;
    ended.status = 137;
    ended.end = TryEnd::crashed;
    ended.values.best = 0.1;
    ended.values.best_step = -4;
    EXPECT_EQ(to_line(ended), "ended 12 2 5 3 137 crashed - 0.1 -4 .");
    EXPECT_EQ(try_event_in(to_line(ended)), ended);
    TryEvent reached{TryEvent::Kind::reached, 12, 2, Time(5us), LinkNumber{3}, {2.5, 0.5, 7}};
    EXPECT_EQ(to_line(reached), "reached 12 2 5 3 2.5 0.5 7 .");
    EXPECT_EQ(try_event_in(to_line(reached)), reached);
    EXPECT_EQ(try_event_in("ended 12 2 5 3 137 crashed - 0.1 -4 new ."),
              ended); // of a newer version
}

TEST(Records, OfEarlyEndsHaveTheirEvidence)
{
    TryEvent ended{TryEvent::Kind::ended, 12, 2, Time(5us), LinkNumber{3}, {2.5, 0.5, 7}, 143};
    ended.end = TryEnd::stopped_early;
    ended.evidence = EarlyStop{2, 27, std::numeric_limits<double>::infinity(), 0.25, 9};
    EXPECT_EQ(to_line(ended), "ended 12 2 5 3 143 stopped_early 2.5 0.5 7 2 27 inf 0.25 9 .");
    EXPECT_EQ(try_event_in(to_line(ended)), ended);
    ended.evidence.reset();
    EXPECT_EQ(try_event_in("ended 12 2 5 3 143 stopped_early 2.5 0.5 7 2 27 x 0.25 9 ."), ended);
    EXPECT_EQ(try_event_in("ended 12 2 5 3 143 stopped_early 2.5 0.5 7 ."), ended);
    EXPECT_EQ(text_of(TryEnd::stopped_early), "stopped early");
}

TEST(Records, OfRungsAreReadAsWritten)
{
    TryEvent passed{TryEvent::Kind::passed, 12, 2, Time(5us), LinkNumber{3}};
    passed.rung = {27, 0.5, 0.75, 9};
    EXPECT_EQ(to_line(passed), "passed 12 2 5 3 27 0.5 0.75 9 .");
    EXPECT_EQ(try_event_in(to_line(passed)), passed);
    for (const char* line :
         {"passed 12 2 5 3 27 0.5 0.75 .", "passed 12 2 5 3 27 nan 0.75 9 .",
          "passed 12 2 5 3 x 0.5 0.75 9 .", "passed 12 2 5 3 27 0.5 0.75 -9 ."}) {
        EXPECT_FALSE(try_event_in(line)) << line;
    }
}

TEST(Records, OfEventsAreRefusedIfTorn)
{
    for (const char* line :
         {"", "began .", "began 0 1 5 1 .", "began 1 0 5 1 .", "began 1 1 -5 1 .", "began 1 1 5 .",
          "began 1 1 5 0 .", "ended 1 1 5 1 0 .", "other 1 1 5 1 .", "ended 1 1 5 1 0 odd - - - .",
          "ended 1 1 5 1 x finished - - - .", "reached 1 1 5 1 - - .", "reached 1 1 5 1 - x - .",
          "ended 1 1 5 1 0 finished x - - .", "began 4294967296 1 5 1 ."}) {
        EXPECT_FALSE(try_event_in(line)) << line;
    }
    const std::string whole = "ended 12 2 5 3 137 crashed - 0.1 -45 .";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(try_event_in(whole.substr(0, size))) << size;
    }
}

TEST(Records, OfClaimsNameTheWorkersLink)
{
    const Claimant claimant{k_worker, LinkNumber{2}};
    EXPECT_EQ(claimant_in(to_text(claimant)), claimant);
    EXPECT_FALSE(claimant_in(""));
    EXPECT_FALSE(claimant_in("../../etc 1\n"));
    EXPECT_FALSE(claimant_in(k_worker.text() + " 0\n"));
}

TEST(Records, OfRetriesSkipRubbish)
{
    const std::vector<Retry> retries{{3, 1}, {12, 4}};
    EXPECT_EQ(retries_in(to_lines(retries)), retries);
    EXPECT_THAT(retries_in("x 1\n3 1\n5\n"), ElementsAre(Retry{3, 1}));
}

TEST(Metrics, HaveAGoal)
{
    EXPECT_EQ(*parse_metric("loss"), (Metric{"loss", Metric::Goal::min}));
    EXPECT_EQ(*parse_metric("val/Accuracy"), (Metric{"val/Accuracy", Metric::Goal::max}));
    EXPECT_EQ(*parse_metric("val:acc:min"), (Metric{"val:acc", Metric::Goal::min}));
    EXPECT_EQ(*parse_metric("ppl:max"), (Metric{"ppl", Metric::Goal::max}));
    for (const char* text : {"mape", "acc_loss", "score/error", "map_loss", "reward_err"}) {
        EXPECT_EQ(parse_metric(text)->goal, Metric::Goal::min) << text;
    }
    for (const char* text : {"mAP", "val/mean_iou", "top5_acc", "precision"}) {
        EXPECT_EQ(parse_metric(text)->goal, Metric::Goal::max) << text;
    }
    EXPECT_THAT(parse_metric("loss:mni").error().text,
                HasSubstr("'mni' is neither min nor max; if it is part of the name, add :min"));
    EXPECT_THAT(parse_metric("loss:").error().text, HasSubstr("'' is neither min nor max"));
    EXPECT_THAT(parse_metric(":min").error().text, HasSubstr("not the name of a metric"));
    EXPECT_THAT(parse_metric("").error().text, HasSubstr("not the name of a metric"));
}

TEST(Metrics, AreFoundByTheEndOfTheirTag)
{
    telemetry::Curves curves;
    curves.add("train/loss", {1, {}, 3.0});
    curves.add("val_acc", {1, {}, 0.5});
    curves.add("val/aux_acc", {1, {}, 0.6});
    EXPECT_EQ(series_of(curves, {"acc"}), curves.find("val_acc"));
    EXPECT_EQ(series_of(curves, {""}), curves.find("train/loss"));
    EXPECT_EQ(series_of(curves, {"cc"}), nullptr);
}

} // namespace
} // namespace gpuq::sweeps
