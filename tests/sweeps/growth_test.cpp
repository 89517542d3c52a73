// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/growth.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "runs/records/heartbeat.h"
#include "runs/records/journal.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;

/// A sweep of 100 tries whose worker 1 has run the first one for a minute.
class GrowthTest : public testing::Test {
protected:
    GrowthTest()
    {
        EXPECT_TRUE(write_sweep(m_store, m_sweep, numbered_tries(100)));
        EXPECT_TRUE(m_store.write(layout::sweep_grows(k_numbered_sweep), ""));
        submit(numbered_key(1));
        start(numbered_key(1));
        take(numbered_key(1));
    }

    void submit(const RunKey& worker)
    {
        EXPECT_TRUE(m_store.write(layout::sweep_run(k_numbered_sweep, worker), ""));
        EXPECT_TRUE(m_store.write(layout::run_json(worker), "{}"));
        EXPECT_TRUE(m_store.write(layout::job_json(worker, k_first), "{}"));
    }
    void start(const RunKey& worker, LinkNumber link = k_first)
    {
        EXPECT_TRUE(m_store.write(layout::claim(worker, link), "1"));
    }
    void take(const RunKey& worker)
    {
        TryTaker taker(m_store, k_numbered_sweep, {worker, k_first},
                       [](const Claimant&) { return false; });
        EXPECT_TRUE(taker.next(k_first_taken));
    }
    std::optional<Vacancy> vacancy() { return vacancy(m_growth); }
    std::optional<Vacancy> vacancy(Growth& growth)
    {
        Board board(m_store, k_numbered_sweep);
        EXPECT_TRUE(board.refresh());
        const auto found = growth.vacancy(m_sweep, board, m_now);
        EXPECT_TRUE(found);
        return found ? *found : std::nullopt;
    }
    Result<void> fill_by(const Vacancy& vacancy, const RunKey& worker)
    {
        return fill(m_store, k_numbered_sweep, vacancy, worker, [&]() -> Result<void> {
            submit(worker);
            return {};
        });
    }

    fakes::MemoryStore m_store;
    Sweep m_sweep = numbered_sweep("cal");
    Growth m_growth{m_store, k_numbered_sweep};
    Time m_now = k_first_taken + 1min;
};

TEST_F(GrowthTest, AddsAWorkerBehindTheNewestOneThatHasATry)
{
    const auto found = vacancy();
    ASSERT_EQ(found, (Vacancy{numbered_key(1), 2}));
    ASSERT_TRUE(fill_by(*found, numbered_key(2)));
    EXPECT_FALSE(vacancy()) << "one waits";
    start(numbered_key(2));
    EXPECT_FALSE(vacancy()) << "it may fail";
    take(numbered_key(2));
    EXPECT_EQ(vacancy(), (Vacancy{numbered_key(2), 3}));
}

TEST(IsWorkerWorthwhile, ForASingleTryThatNoWorkerWouldTake)
{
    std::vector<Try> tries(2);
    const Sweep sweep = numbered_sweep("cal");
    EXPECT_TRUE(is_worker_worthwhile(tries, sweep, k_first_taken));
    for (Try& entry : tries) {
        entry.state = Try::State::ended;
        entry.end.emplace();
    }
    EXPECT_FALSE(is_worker_worthwhile(tries, sweep, k_first_taken));
}

TEST_F(GrowthTest, ReadsLittleWhileTheNewestOfManyWorkersWaits)
{
    for (int number = 2; number <= 20; ++number) {
        submit(numbered_key(number));
        if (number < 20) {
            start(numbered_key(number));
        }
    }
    Board board(m_store, k_numbered_sweep);
    ASSERT_TRUE(board.refresh());
    for (int i = 0; i < 2; ++i) {
        const int before = m_store.reads;
        const auto found = m_growth.vacancy(m_sweep, board, m_now);
        EXPECT_TRUE(found && !*found) << "one waits";
        EXPECT_LT(m_store.reads - before, 10);
    }
}

TEST_F(GrowthTest, AddsNoneIfANumberWasGivenOrTheSweepIsStopped)
{
    EXPECT_TRUE(m_growth.is_allowed());
    const auto found = vacancy();
    ASSERT_TRUE(m_store.remove(layout::sweep_grows(k_numbered_sweep)));
    EXPECT_FALSE(m_growth.is_allowed());
    EXPECT_EQ(fill_by(*found, numbered_key(2)).error().kind, Error::Kind::busy) << "in between";
    EXPECT_FALSE(m_store.size(layout::sweep_run(k_numbered_sweep, numbered_key(2))));
    ASSERT_TRUE(stop_sweep(m_store, k_numbered_sweep));
    EXPECT_FALSE(vacancy());
}

TEST_F(GrowthTest, OneOfTwoThatFindTheSameVacancyFillsIt)
{
    Growth other(m_store, k_numbered_sweep);
    const auto first = vacancy();
    const auto second = vacancy(other);
    ASSERT_EQ(first, second);
    ASSERT_TRUE(fill_by(*first, numbered_key(2)));
    EXPECT_EQ(fill_by(*second, numbered_key(3)).error().kind, Error::Kind::busy);
    EXPECT_FALSE(m_store.size(layout::sweep_run(k_numbered_sweep, numbered_key(3))));
    EXPECT_FALSE(vacancy(other));
}

TEST_F(GrowthTest, IsOpenAgainIfSlurmRefuses)
{
    const auto found = vacancy();
    const auto refuse = []() -> Result<void> { return fail(Error::Kind::denied, "no"); };
    EXPECT_FALSE(fill(m_store, k_numbered_sweep, *found, numbered_key(2), refuse));
    EXPECT_EQ(vacancy(), found);
    const auto no_answer = []() -> Result<void> { return fail(Error::Kind::unreachable, "?"); };
    EXPECT_FALSE(fill(m_store, k_numbered_sweep, *found, numbered_key(2), no_answer));
    EXPECT_FALSE(vacancy()) << "it may be in the queue";
}

TEST_F(GrowthTest, ContinuesBehindAWorkerWhoseProcessDied)
{
    const RunKey dead = RunKey::make(m_now, {1});
    ASSERT_TRUE(
        m_store.write_once(layout::sweep_added(k_numbered_sweep, numbered_key(1)), dead.text()));
    EXPECT_FALSE(vacancy()) << "it is being added";
    m_now += 2min;
    EXPECT_EQ(vacancy(), (Vacancy{dead, 2}));
}

TEST_F(GrowthTest, ContinuesSomeTimeAfterAWorkerThatEndedWithoutATry)
{
    const RunKey failed = RunKey::make(m_now, {1});
    ASSERT_TRUE(fill_by(*vacancy(), failed));
    start(failed);
    m_now += 9min;
    EXPECT_FALSE(vacancy());
    m_now += 2min;
    EXPECT_EQ(vacancy(), (Vacancy{failed, 3}));
}

TEST_F(GrowthTest, AWorkerThatWillNotStartDoesNotWait)
{
    m_now += 10min;
    for (const std::string& file :
         {layout::ended_json(numbered_key(2)),
          layout::inbox(numbered_key(2)) + "/" + layout::k_stop_request}) {
        submit(numbered_key(2));
        EXPECT_FALSE(vacancy());
        ASSERT_TRUE(m_store.write(file, "{}"));
        EXPECT_TRUE(vacancy());
        ASSERT_TRUE(m_store.remove(file));
    }
    m_store.unreadable.insert(layout::job_json(numbered_key(2), k_first));
    EXPECT_FALSE(vacancy()) << "unknown";
}

TEST_F(GrowthTest, AWorkerWaitsBetweenTwoLinks)
{
    ASSERT_TRUE(m_store.write(layout::job_json(numbered_key(1), LinkNumber{2}), "{}"));
    EXPECT_TRUE(vacancy()) << "its link runs";
    Event end;
    end.kind = Event::Kind::ended;
    end.at = m_now;
    m_store.append(layout::journal(numbered_key(1), k_first), to_line(end));
    EXPECT_FALSE(vacancy());
    start(numbered_key(1), LinkNumber{2});
    EXPECT_TRUE(vacancy());
}

TEST_F(GrowthTest, TheNewestOfTheWorkersThatRunEndsFirst)
{
    const RunKey first = numbered_key(1), second = numbered_key(2), third = numbered_key(3);
    const auto beats = [&](const RunKey& worker, Time at) {
        EXPECT_TRUE(m_store.write(layout::heartbeat(worker, k_first), to_line(Heartbeat{at, {}})));
    };
    for (const RunKey& worker : {second, third}) {
        submit(worker);
        start(worker);
    }
    beats(first, m_now - 1min);
    EXPECT_FALSE(m_growth.is_newest_of_several(second, m_now)) << "the other one may be lost";
    beats(first, m_now);
    EXPECT_TRUE(m_growth.is_newest_of_several(second, m_now));
    EXPECT_FALSE(m_growth.is_newest_of_several(first, m_now));
    beats(second, m_now);
    beats(third, m_now);
    EXPECT_FALSE(m_growth.is_newest_of_several(second, m_now));
    ASSERT_TRUE(m_store.write(layout::ended_json(third), "{}"));
    EXPECT_TRUE(m_growth.is_newest_of_several(second, m_now));
    submit(numbered_key(4));
    EXPECT_TRUE(m_growth.is_newest_of_several(second, m_now)) << "that one waits";
}

TEST_F(GrowthTest, AWorkerThatGivesWayWaitsForTwoSignsOfLifeOfAnOlderOne)
{
    using Older = Growth::Older;
    const RunKey first = numbered_key(1), second = numbered_key(2);
    submit(second);
    start(second);
    const auto older = [&](std::chrono::seconds beat) {
        m_now += 1s;
        EXPECT_TRUE(m_store.write(layout::heartbeat(first, k_first),
                                  to_line(Heartbeat{k_first_taken + beat, {}})));
        return m_growth.older_than(second, m_now);
    };
    EXPECT_EQ(older(60s), Older::unknown);
    EXPECT_EQ(older(60s), Older::unknown);
    EXPECT_EQ(older(62s), Older::unknown);
    EXPECT_EQ(older(62s), Older::unknown);
    EXPECT_EQ(older(65s), Older::continues);
    EXPECT_EQ(older(240s), Older::unknown) << "its clock is ahead";
    m_now += 30s;
    EXPECT_EQ(older(240s), Older::gone) << "it is dead";
    EXPECT_EQ(older(100s), Older::unknown);
    EXPECT_EQ(m_growth.older_than(first, m_now), Older::gone) << "it is the oldest";
}

TEST_F(GrowthTest, AWorkerThatIsAboutToEndDoesNotContinueTheSweep)
{
    const RunKey first = numbered_key(1), second = numbered_key(2);
    submit(second);
    start(second);
    ASSERT_TRUE(m_store.write(layout::heartbeat(first, k_first), to_line(Heartbeat{m_now, {}})));
    EXPECT_TRUE(m_growth.is_newest_of_several(second, m_now));
    for (const auto kind : {Event::Kind::signalled, Event::Kind::stop_asked, Event::Kind::noticed,
                            Event::Kind::ended}) {
        Event event;
        event.kind = kind;
        event.at = m_now;
        ASSERT_TRUE(m_store.write(layout::journal(first, k_first), to_line(event)));
        EXPECT_EQ(m_growth.older_than(second, m_now), Growth::Older::gone);
        EXPECT_FALSE(m_growth.is_newest_of_several(second, m_now));
    }
}

TEST_F(GrowthTest, IsWorthItOnlyForALongList)
{
    Board board(m_store, k_numbered_sweep);
    ASSERT_TRUE(board.refresh());
    std::vector<Try> tries = board.tries();
    const auto is_worthwhile = [&](std::size_t count, std::chrono::milliseconds used) {
        return is_worker_worthwhile({tries.begin(), tries.begin() + static_cast<int>(count)},
                                    m_sweep, k_first_taken + used);
    };
    EXPECT_TRUE(is_worthwhile(100, 1s)) << "99 s";
    EXPECT_FALSE(is_worthwhile(20, 1s)) << "19 s";
    EXPECT_TRUE(is_worthwhile(2, 1h)) << "the other one would wait";
    EXPECT_FALSE(is_worthwhile(1, 1h));
    m_sweep.run.request.gpus.count = 2;
    m_sweep.gpu_time = 61min;
    EXPECT_TRUE(is_worthwhile(100, 30min));
    EXPECT_FALSE(is_worthwhile(100, 30min + 20s)) << "20 s of two GPUs are left";
}

/// Workers that may die in the middle, in any order: of those they add, one at most waits.
TEST_F(GrowthTest, NeverHasTwoThatWait)
{
    for (unsigned int seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        m_store = fakes::MemoryStore();
        m_now = k_first_taken + 1min;
        EXPECT_TRUE(write_sweep(m_store, m_sweep, numbered_tries(100)));
        EXPECT_TRUE(m_store.write(layout::sweep_grows(k_numbered_sweep), ""));
        submit(numbered_key(1));
        start(numbered_key(1));
        take(numbered_key(1));
        std::vector<RunKey> waiting;
        std::vector<Vacancy> seen; // by workers that have not acted yet
        Growth growth(m_store, k_numbered_sweep);
        unsigned char number = 2;
        for (int step = 0; step < 100; ++step) {
            m_now += 1s;
            const auto what = random() % 6;
            if (what < 2) {
                if (const auto found = vacancy(growth)) {
                    seen.push_back(*found);
                }
            } else if (what < 4 && !seen.empty()) {
                const Vacancy one = seen[random() % seen.size()];
                std::erase(seen, one);
                const RunKey key = RunKey::make(m_now, {number++});
                const auto dies_at = random() % 4; // 3: it does not
                if (dies_at == 0) {
                    (void)m_store.write_once(layout::sweep_added(k_numbered_sweep, one.behind),
                                             key.text());
                    continue;
                }
                const auto done = fill(m_store, k_numbered_sweep, one, key, [&]() -> Result<void> {
                    if (dies_at == 1) {
                        return fail(Error::Kind::unreachable, "dies");
                    }
                    submit(key);
                    waiting.push_back(key);
                    return {};
                });
                ASSERT_LE(waiting.size(), 1U) << "seed " << seed;
            } else if (what == 4 && !waiting.empty()) {
                start(waiting.front());
                take(waiting.front());
                waiting.clear();
            } else if (what == 5) {
                m_now += 3min;
            }
        }
        EXPECT_GT(number, 3) << "seed " << seed;
    }
}

} // namespace
} // namespace gpuq::sweeps
