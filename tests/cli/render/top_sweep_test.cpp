// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/top_sweep.h"

#include "cli/render/top_picture.h"
#include "cli/render/top_rows.h"
#include "fakes/now.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using sweeps::Try;
using testing::ElementsAre;

const RunKey k_key = RunKey::make(k_now - 1h, {1, 2, 3, 4, 5, 6, 7, 8});

Try ended(std::vector<std::string> values, std::optional<double> best, int status = 0)
{
    Try entry;
    entry.values = std::move(values);
    entry.state = Try::State::ended;
    entry.attempt = 1;
    entry.used = 10min;
    entry.reached = {best, best, {}};
    entry.end = sweeps::TryEvent{sweeps::TryEvent::Kind::ended};
    entry.end->at = k_now - 10min;
    entry.end->status = status;
    return entry;
}

TopSweep top_sweep(std::vector<Try> tries, SweepStatus::State state, std::size_t workers)
{
    sweeps::Sweep sweep{"cal", {"lr", "act"}, {}, 1, {}, {k_key}, {}};
    sweep.run.request.gpus.count = 2;
    SweepStatus status{std::move(sweep), std::move(tries), {}, {}, {}, {}};
    status.tally = sweeps::tally_of(status.tries);
    TopSweep made;
    made.shown = std::make_shared<const tui::Sweep>(top_tries(status));
    made.status = std::make_shared<const SweepStatus>(std::move(status));
    made.state = state;
    made.workers = workers;
    return made;
}

Try waiting(std::vector<std::string> values)
{
    Try entry;
    entry.values = std::move(values);
    return entry;
}

TEST(TopSweep, RanksItsTriesAndLeavesOutWhatIsTheSame)
{
    const TopSweep sweep = top_sweep({ended({"1", "relu"}, 0.5), ended({"2", "relu"}, 0.25),
                                      ended({"3", "relu"}, {}, 1), waiting({"4", "relu"})},
                                     SweepStatus::State::running, 1);
    EXPECT_THAT(sweep.shown->parameters, ElementsAre("lr"));
    EXPECT_EQ(sweep.shown->best, 2U);
    std::vector<std::size_t> ranks;
    std::vector<std::string> states;
    for (const tui::TryRow& row : sweep.shown->tries) {
        ranks.push_back(row.rank);
        states.push_back(row.state);
    }
    EXPECT_THAT(ranks, ElementsAre(2, 1, 0, 0));
    EXPECT_THAT(states, ElementsAre("done", "done", "failed", "waiting"));
    EXPECT_EQ(sweep.shown->tries[0].used, 20min) << "on two GPUs";
    EXPECT_EQ(sweep.shown->course.size(), 2U);
    EXPECT_EQ(sweep.shown->course[1].value, 0.25);
}

TEST(TopSweep, EstimatesItsEndAndWhatIsToCome)
{
    const tui::RunRow row =
        top_sweep_row(top_sweep({ended({"1", "relu"}, 0.5), waiting({"4", "relu"})},
                                SweepStatus::State::running, 1),
                      k_now);
    EXPECT_EQ(row.name, "cal");
    EXPECT_EQ(row.id, "01020304");
    EXPECT_EQ(row.state, "1/2 done");
    EXPECT_EQ(row.part, 0.5);
    EXPECT_EQ(row.ends, k_now + 10min);
    EXPECT_EQ(row.facts[0], "1 of 2 tries done, 1 waiting");
    EXPECT_THAT(row.facts[1],
                testing::StartsWith("GPU-hours: 0.333 used, about 0.333 to come; finish: about "));
}

TEST(TopSweep, SaysWhatItDoesNotKnow)
{
    const tui::RunRow begun =
        top_sweep_row(top_sweep({waiting({"4", "relu"})}, SweepStatus::State::waiting, 0), k_now);
    EXPECT_EQ(begun.state, "waiting: 0/1 done");
    EXPECT_FALSE(begun.ends);
    EXPECT_EQ(begun.facts[1], "GPU-hours: 0 used, to come unknown; finish: unknown");
    const tui::RunRow failed = top_sweep_row(
        top_sweep({ended({"1", "relu"}, {}, 1)}, SweepStatus::State::ended, 0), k_now);
    EXPECT_EQ(failed.mark, tui::RunMark::failed);
    EXPECT_EQ(failed.facts[1], "GPU-hours: 0.333 used");
    EXPECT_EQ(failed.ends, k_now - 10min);
    const tui::RunRow stalled =
        top_sweep_row(top_sweep({waiting({"4", "relu"})}, SweepStatus::State::stalled, 0), k_now);
    EXPECT_EQ(stalled.mark, tui::RunMark::attention);
    EXPECT_EQ(stalled.facts[1],
              "no worker is left, gpuq sweep retry cal starts one; GPU-hours: 0 used");
}

TEST(TopSweep, IsListedByItsAgeAndKnowsItsWorkers)
{
    const auto run = [](Time made, bool is_worker) {
        RunStatus status{RunKey::make(made, {9})};
        status.run = gpuq::Run{status.key};
        status.run->request.name = is_worker ? "cal-w1" : "other";
        if (is_worker) {
            status.run->request.sweep = SweepWorker{k_key, 1};
        }
        return status;
    };
    TopFound found;
    found.runs = {run(k_now - 30min, false), run(k_now - 59min, true), run(k_now - 2h, false)};
    found.sweeps = {top_sweep({waiting({"4", "relu"})}, SweepStatus::State::waiting, 0)};
    std::vector<std::string> names;
    for (const tui::RunRow& row : top_picture(found, k_now).runs) {
        names.push_back(row.name + (row.sweep_key.empty() ? "" : " of a sweep"));
    }
    EXPECT_THAT(names, ElementsAre("other", "cal-w1 of a sweep", "cal", "other"));
    found.runs.pop_back();
    for (tui::RunRow& row :
         top_rows({run(k_now - 58min, true), run(k_now - 3h, false)}, {}, k_now)) {
        row.name += " of old";
        found.old.push_back(std::make_shared<const tui::RunRow>(std::move(row)));
    }
    names.clear();
    for (const tui::RunRow& row : top_picture(found, k_now).runs) {
        names.push_back(row.name + (row.sweep_key.empty() ? "" : " of a sweep"));
    }
    EXPECT_THAT(names, ElementsAre("other", "cal-w1 of old of a sweep", "cal-w1 of a sweep", "cal",
                                   "other of old"));
    found.sweeps.clear();
    EXPECT_EQ(top_picture(found, k_now).runs[1].sweep_key, "") << "an ordinary run";
}

TEST(TopSweep, ComparesTries)
{
    const TopSweep sweep = top_sweep({ended({"1", "relu"}, 0.5), ended({"2", "relu"}, 0.25)},
                                     SweepStatus::State::ended, 0);
    std::vector<telemetry::Curves> curves(2);
    for (auto& one : curves) {
        one.add("accuracy", {1, {}, 0.1});
        one.add("loss", {1, {}, 0.5});
    }
    const tui::Comparison shown = top_tries_comparison(*sweep.status, {2, 1}, curves, k_now);
    EXPECT_THAT(shown.names, ElementsAre("cal/2", "cal/1"));
    EXPECT_EQ(shown.keys[0], k_key.text() + "/2");
    EXPECT_EQ(shown.metrics.at(0).title, "loss");
    EXPECT_EQ(shown.metrics.at(0).curves.size(), 2U);
    ASSERT_EQ(shown.tables.size(), 1U);
    EXPECT_EQ(shown.tables[0].columns[2].name, "lr");
    EXPECT_EQ(shown.tables[0].columns[3].name, "best") << "act is the same";
    EXPECT_EQ(shown.tables[0].rows[0][2].text, "2");
}

} // namespace
} // namespace gpuq::cli
