// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/top_sweeps.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "fakes/now.h"
#include "sweeps/changes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using State = SweepStatus::State;
using sweeps::TryEvent;

const RunKey k_sweep = RunKey::make(k_now - 1h, {1});
const RunKey k_worker = RunKey::make(k_now - 59min, {2});

class TopSweepsTest : public testing::Test {
protected:
    void begin(std::size_t tries)
    {
        sweeps::Sweep sweep{"cal", {"n"}, {}, 1, {}, {k_sweep}, {}};
        sweep.run.submitted_at = k_sweep.made_at();
        sweep.run.request.program = {"train", "{n}"};
        sweep.run.request.name = "cal";
        sweep.run.request.gpus.count = 1;
        std::vector<sweeps::Values> values;
        for (std::size_t n = 1; n <= tries; ++n) {
            values.push_back({std::to_string(n)});
        }
        ASSERT_TRUE(sweeps::write_sweep(m_store, sweep, values));
        ASSERT_TRUE(m_store.write(layout::run_json(k_worker), "{}"));
        m_worker.run = gpuq::Run{k_worker};
        m_worker.run->request.sweep = SweepWorker{k_sweep, 1};
        m_worker.state = RunState::running;
        m_worker.link = LinkNumber{1};
    }
    static std::string line(TryEvent::Kind kind, std::size_t number, double value = 0)
    {
        TryEvent event{kind, number, 1, k_now - 30min, LinkNumber{1}};
        if (kind == TryEvent::Kind::ended) {
            event.at = k_now - 20min;
            event.values = {value, value, 1};
        }
        return to_line(event);
    }
    void note(TryEvent::Kind kind, std::size_t number, double value = 0)
    {
        ASSERT_TRUE(m_store.append_line(layout::sweep_worker(k_sweep, k_worker),
                                        line(kind, number, value)));
    }

    fakes::MemoryStore m_store;
    TopSweeps m_sweeps{m_store, false};
    RunStatus m_worker{k_worker};
};

TEST_F(TopSweepsTest, FollowsItsTries)
{
    begin(3);
    auto found = m_sweeps.read({}, k_now);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].state, State::stalled);
    note(TryEvent::Kind::began, 1);
    note(TryEvent::Kind::ended, 1, 0.5);
    note(TryEvent::Kind::began, 2);
    found = m_sweeps.read({m_worker}, k_now);
    EXPECT_EQ(found[0].state, State::running);
    EXPECT_EQ(found[0].workers, 1U);
    EXPECT_EQ(found[0].shown->best, 1U);
    EXPECT_EQ(found[0].shown->running, 1U);
    // Nothing has changed: nothing is made anew.
    EXPECT_EQ(m_sweeps.read({m_worker}, k_now)[0].shown, found[0].shown);
}

TEST_F(TopSweepsTest, ATryOfALostWorkerWaits)
{
    begin(1);
    note(TryEvent::Kind::began, 1);
    EXPECT_EQ(m_sweeps.read({m_worker}, k_now)[0].shown->running, 1U);
    ASSERT_TRUE(m_store.write(layout::ended_json(k_worker), "{}"));
    const auto found = m_sweeps.read({}, k_now);
    EXPECT_EQ(found[0].shown->running, 0U);
    EXPECT_EQ(found[0].state, State::stalled);
}

TEST_F(TopSweepsTest, AStoppedSweepThatContinuesIsShownSo)
{
    begin(1);
    m_worker.state = RunState::waiting;
    EXPECT_EQ(m_sweeps.read({m_worker}, k_now)[0].state, State::waiting);
    ASSERT_TRUE(sweeps::stop_sweep(m_store, k_sweep));
    EXPECT_EQ(m_sweeps.read({m_worker}, k_now)[0].state, State::stopped);
    ASSERT_TRUE(sweeps::continue_sweep(m_store, k_sweep));
    EXPECT_EQ(m_sweeps.read({m_worker}, k_now)[0].state, State::waiting);
}

TEST_F(TopSweepsTest, AnOldSweepIsListedWhileItIsActive)
{
    begin(1);
    EXPECT_EQ(m_sweeps.read({}, k_now + 48h).size(), 1U);
    ASSERT_TRUE(m_store.remove(layout::active_sweep(k_sweep)));
    EXPECT_TRUE(m_sweeps.read({}, k_now + 48h).empty());
    EXPECT_EQ(TopSweeps(m_store, true).read({}, k_now + 48h).size(), 1U);
}

TEST_F(TopSweepsTest, ReadsAndComparesTheLogsOfTries)
{
    begin(2);
    for (const std::size_t number : {1, 2}) {
        ASSERT_TRUE(m_store.write(layout::try_log(k_sweep, number),
                                  "step 1/9 loss: 0.5\nstep 2/9 loss: 0.25\n"));
    }
    const auto found = m_sweeps.read({}, k_now);
    const std::string key = k_sweep.text();
    const tui::Detail detail = detail_of_try(m_store, found, *parse_try_name(key + "/2"));
    EXPECT_EQ(detail.key, key + "/2");
    EXPECT_EQ(detail.step, 2);
    ASSERT_EQ(detail.curves.size(), 1U);
    EXPECT_EQ(detail.curves[0].dots.back().value, 0.25);
    const auto compared = compare_tries(m_store, found, {key + "/1", key + "/2"}, k_now);
    EXPECT_EQ(compared.trouble, "");
    EXPECT_EQ(compared.metrics.at(0).curves.size(), 2U);
    EXPECT_EQ(detail_of_try(m_store, found, {key, 3}).curves.size(), 0U) << "no such try";
    EXPECT_EQ(compare_tries(m_store, {}, {key + "/1", key + "/2"}, k_now).trouble,
              "the sweep is no longer listed");
    EXPECT_FALSE(parse_try_name(key));
}

TEST_F(TopSweepsTest, TenThousandTriesAreReadOnce)
{
    begin(10'000);
    std::string journal;
    for (std::size_t n = 1; n <= 9'999; ++n) {
        journal += line(TryEvent::Kind::began, n) + "\n";
        journal += line(TryEvent::Kind::ended, n, static_cast<double>(n * 7919 % 10'000)) + "\n";
    }
    ASSERT_TRUE(m_store.write(layout::sweep_worker(k_sweep, k_worker), journal));
    const auto milliseconds = [this] {
        const std::clock_t before = std::clock(); // not affected by other processes
        const auto found = m_sweeps.read({m_worker}, k_now);
        const double taken = 1000.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
        EXPECT_EQ(found[0].shown->done, 9'999U);
        return taken;
    };
    const double first = milliseconds(), again = milliseconds();
    RecordProperty("first", std::to_string(first));
    RecordProperty("again", std::to_string(again));
    EXPECT_LT(again, 20);
    note(TryEvent::Kind::began, 10'000);
    const double changed = milliseconds();
    RecordProperty("changed", std::to_string(changed));
    EXPECT_LT(changed, 200) << "without optimisation";
}

} // namespace
} // namespace gpuq::cli
