// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/comparison.h"

#include "runs/run_on_disk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpuq {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = SettingValue::Kind;

constexpr Time k_ten_hours = Time(10h);

RunToCompare run(std::vector<std::string> program)
{
    Run record = fakes::some_run(k_ten_hours - 1h, "train");
    record.request.program = std::move(program);
    RunToCompare one{RunStatus{record.key, record}, {}, {}};
    one.status.state = RunState::ended;
    one.status.started_at = k_ten_hours - 30min;
    one.status.ending = Ending{0, Cause::finished, "", k_ten_hours - 10min};
    one.gpu_time.busy = 10min;
    one.gpu_time.unknown = 10min;
    return one;
}

Request& request(RunToCompare& one)
{
    return one.status.run->request;
}

std::string text_of(const SettingValue& value)
{
    switch (value.kind) {
    case Kind::given:
        return value.text;
    case Kind::switched:
        return "(switched)";
    case Kind::hidden:
        return fmt::format("({})", value.text);
    case Kind::absent:
        return "(absent)";
    case Kind::unknown:
        break;
    }
    return "(unknown)";
}

/// `--lr: 0.1 | 0.2`.
std::vector<std::string> settings(const std::vector<RunToCompare>& runs)
{
    std::vector<std::string> lines;
    for (const Setting& setting : compare(runs, k_ten_hours).settings) {
        std::vector<std::string> texts;
        for (const SettingValue& value : setting.values) {
            texts.push_back(text_of(value));
        }
        lines.push_back(fmt::format("{}: {}", setting.name, fmt::join(texts, " | ")));
    }
    return lines;
}

TEST(Comparison, HasOnlyTheArgumentsThatDiffer)
{
    EXPECT_THAT(settings({run({"train", "--lr", "0.1", "--seed=1", "data", "--amp", "-v"}),
                          run({"train", "--lr=0.2", "--seed", "1", "data", "-v", "-v"}),
                          run({"train", "--amp", "--seed=1", "other", "--lr", "0.1", "-v"})}),
                ElementsAre("--lr: 0.1 | 0.2 | 0.1", "argument 1: data | data | other",
                            "--amp: (switched) | (absent) | (switched)",
                            "-v: (switched) | 2 times | (switched)"));
    EXPECT_THAT(settings({run({"train", "-x", "1"}), run({"train", "-x", "1"})}), IsEmpty());
}

TEST(Comparison, TellsAnEmptyValueFromASwitchAndFromNone)
{
    EXPECT_THAT(settings({run({"a", "--x="}), run({"a", "--x"}), run({"a"})}),
                ElementsAre("--x:  | (switched) | (absent)"));
}

TEST(Comparison, HasTheRequestBeforeTheArguments)
{
    RunToCompare one = run({"python", "a.py", "--lr", "1"});
    RunToCompare other = run({"python3", "b.py", "--lr", "2"});
    request(one).setup.conda = "old";
    request(one).gpus.model = "a100";
    request(other).gpus.count = 2;
    request(other).nodes = 2;
    request(other).work_dir = "/scratch";
    request(other).memory_mib = 64 << 10;
    EXPECT_THAT(settings({one, other}),
                ElementsAre("program: python | python3", "script: a.py | b.py",
                            "directory: /home/ada | /scratch",
                            fmt::format("GPUs: {} | 2", to_text(request(one).gpus)), "nodes: 1 | 2",
                            "memory: (absent) | 64 GiB", "conda: old | (absent)", "--lr: 1 | 2"));
}

TEST(Comparison, DoesNotShowSecretsButThatTheyDiffer)
{
    RunToCompare one = run({"train", "--token", "hunter2", "--name", "x-hunter4"});
    RunToCompare other = run({"train", "--token", "hunter3", "--name", "y"});
    RunToCompare third = run({"train", "--token", "hunter2", "--name", "x-hunter4"});
    request(one).setup.env = {{"LR", "0.1"}, {"SAME", "1"}};
    request(other).setup.env = {{"SAME", "1"}};
    request(third).setup.env = {{"LR", "0.2"}, {"SAME", "1"}};
    one.status.run->environment = {"PASSWORD=hunter4"};
    EXPECT_THAT(settings({one, other, third}),
                ElementsAre("env LR: (value 1) | (absent) | (value 2)",
                            "--token: (value 1) | (value 2) | (value 1)",
                            "--name: (value 1) | y | (value 1)"));
}

TEST(Comparison, OfAnUnreadableRecordIsUnknown)
{
    RunToCompare lost = run({});
    lost.status.run.reset();
    EXPECT_THAT(settings({run({"a", "--lr", "1"}), lost, run({"a", "--lr", "2"})}),
                ElementsAre("--lr: 1 | (unknown) | 2"));
    EXPECT_THAT(settings({run({"a", "--lr", "1"}), lost}), IsEmpty());
    EXPECT_FALSE(compare({lost, lost}, k_ten_hours).runs[0].gpu_hours);
}

TEST(Comparison, HasTimeAndGpuHoursOfRunsThatHaveStarted)
{
    RunToCompare waiting = run({"a"});
    waiting.status.state = RunState::waiting;
    waiting.status.started_at.reset();
    waiting.status.ending.reset();
    const Comparison both = compare({run({"a"}), waiting}, k_ten_hours);
    EXPECT_EQ(both.runs[0].duration, std::optional<std::chrono::seconds>(20min));
    EXPECT_NEAR(both.runs[0].gpu_hours.value_or(0), 1.0 / 3, 1e-9);
    EXPECT_EQ(both.runs[1].duration, std::nullopt);
    EXPECT_EQ(both.runs[1].gpu_hours, std::nullopt);
}

void add(RunToCompare& one, const std::string& tag, const std::vector<double>& values)
{
    std::int64_t step = 0;
    for (const double value : values) {
        one.training.curves.add(tag, {++step, {}, value});
    }
}

TEST(Comparison, HasTheMetricsThatAllRunsHave)
{
    RunToCompare one = run({"a"}), other = run({"a"}), without = run({"a"});
    add(one, "loss", {3, 1, 2});
    add(one, "val_acc", {0.1, 0.9});
    add(one, "only_here", {1});
    add(other, "loss", {4, 2, 1.5});
    add(other, "val_acc", {0.2, 0.8});
    const Comparison all = compare({one, without, other}, k_ten_hours);
    ASSERT_EQ(all.metrics.size(), 2U);
    EXPECT_EQ(all.metrics_not_common, 1U);
    EXPECT_FALSE(all.runs[1].has_metrics);
    const ComparedMetric& loss = all.metrics[0];
    EXPECT_TRUE(loss.is_main_loss);
    EXPECT_EQ(loss.name, "loss");
    EXPECT_EQ(loss.best_run, std::optional<std::size_t>(0));
    EXPECT_FALSE(loss.runs[1]);
    EXPECT_EQ(best_of(*loss.runs[0], loss.better), (telemetry::Point{2, {}, 1}));
    EXPECT_EQ(loss.runs[0]->last, (telemetry::Point{3, {}, 2}));
    EXPECT_EQ(loss.runs[0]->points, 3U);
    EXPECT_EQ(loss.runs[0]->curve.size(), 3U);
    const ComparedMetric& accuracy = all.metrics[1];
    EXPECT_EQ(accuracy.name, "val_acc");
    EXPECT_EQ(accuracy.best_run, std::optional<std::size_t>(0));
    EXPECT_EQ(best_of(*accuracy.runs[2], accuracy.better), (telemetry::Point{2, {}, 0.8}));
}

TEST(Comparison, MatchesTheMainLossesOfDifferentNames)
{
    RunToCompare one = run({"a"}), other = run({"a"});
    add(one, "train/loss", {1});
    add(other, "loss", {1});
    const Comparison both = compare({one, other}, k_ten_hours);
    ASSERT_EQ(both.metrics.size(), 1U);
    EXPECT_EQ(both.metrics[0].name, "main loss");
    EXPECT_EQ(both.metrics[0].runs[0]->tag, "train/loss");
    EXPECT_EQ(both.metrics[0].runs[1]->tag, "loss");
    EXPECT_EQ(both.metrics[0].best_run, std::nullopt) << "a tie";
    EXPECT_EQ(both.metrics_not_common, 0U);
}

TEST(Comparison, CountsNoValueThatIsNotFinite)
{
    RunToCompare one = run({"a"}), other = run({"a"});
    add(one, "loss", {NAN, 2, INFINITY, 3, NAN});
    add(other, "loss", {NAN, NAN});
    const Comparison both = compare({one, other}, k_ten_hours);
    const ComparedMetric& loss = both.metrics[0];
    EXPECT_EQ(loss.runs[0]->lowest, (telemetry::Point{2, {}, 2}));
    EXPECT_TRUE(std::isnan(loss.runs[0]->last.value));
    ASSERT_EQ(loss.runs[0]->curve.size(), 3U);
    EXPECT_TRUE(std::isnan(loss.runs[0]->curve[1].value)) << "a gap";
    EXPECT_EQ(loss.runs[1]->lowest, std::nullopt);
    EXPECT_THAT(loss.runs[1]->curve, IsEmpty());
    EXPECT_EQ(loss.best_run, std::nullopt) << "there is only one";
}

TEST(Comparison, KeepsTheExtremesInABoundedCurve)
{
    RunToCompare one = run({"a"});
    std::vector<double> values;
    for (int i = 0; i < 100'000; ++i) {
        values.push_back(i == 77'777 ? 100 : i % 5000 == 9 ? NAN : std::sin(i));
    }
    values.back() = -100;
    add(one, "loss", values);
    const Comparison both = compare({one, one}, k_ten_hours);
    const auto& curve = both.metrics[0].runs[0]->curve;
    EXPECT_LE(curve.size(), Comparison::k_most_points);
    EXPECT_GT(curve.size(), Comparison::k_most_points / 4);
    const auto has = [&](std::int64_t step, double value) {
        return std::any_of(curve.begin(), curve.end(), [&](const telemetry::Point& point) {
            return point.step == step && point.value == value;
        });
    };
    EXPECT_TRUE(has(77'778, 100));
    EXPECT_TRUE(has(100'000, -100));
}

TEST(Comparison, LimitsTheNumberOfMetrics)
{
    RunToCompare one = run({"a"});
    for (int i = 0; i < 40; ++i) {
        add(one, fmt::format("m{}", i), {1});
    }
    const Comparison both = compare({one, one}, k_ten_hours);
    EXPECT_EQ(both.metrics.size(), Comparison::k_most_metrics);
    EXPECT_EQ(both.metrics_left_out, 8U);
}

TEST(Comparison, NoticesRunsThatWroteTheSameFile)
{
    RunToCompare one = run({"a"}), other = run({"a"}), third = run({"a"});
    one.training.source = other.training.source = third.training.source = "logs/metrics.csv";
    request(other).work_dir = "/scratch";
    EXPECT_THAT(compare({one, other, third}, k_ten_hours).same_file,
                ElementsAre(ElementsAre(0, 2)));
}

} // namespace
} // namespace gpuq
