// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/taker.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "sweeps/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

RunKey key_of(unsigned char number)
{
    return RunKey::make(Time(1'700'000'000s), {number, 1, 2, 3, 4, 5, 6, 7});
}

const RunKey k_sweep = key_of(255);
const Time k_taken = Time(1'700'000'100s);

Sweep sweep_named(const std::string& name)
{
    Sweep sweep{name, {"n"}, {}, 1, std::nullopt, {k_sweep}};
    sweep.run.submitted_at = k_sweep.made_at();
    sweep.run.request.program = {"train", "{n}"};
    sweep.run.request.name = name;
    return sweep;
}

std::vector<Values> numbered(int count)
{
    std::vector<Values> tries;
    for (int n = 1; n <= count; ++n) {
        tries.push_back({std::to_string(n)});
    }
    return tries;
}

TryEvent end_of(const TryTaker::Taken& taken, TryEnd end = TryEnd::finished, int status = 0)
{
    TryEvent event{TryEvent::Kind::ended, taken.number, taken.attempt, k_taken + 1s};
    event.end = end;
    event.status = status;
    return event;
}

class TakerTest : public testing::Test {
protected:
    void begin(int tries)
    {
        ASSERT_TRUE(write_sweep(m_store, sweep_named("cal"), numbered(tries)));
    }
    TryTaker taker(unsigned char worker, int link = 1)
    {
        return TryTaker(m_store, k_sweep, {key_of(worker), LinkNumber{link}},
                        [this](const Claimant& who) { return m_over.contains(who.worker); });
    }
    static std::size_t number(const Result<std::optional<TryTaker::Taken>>& taken)
    {
        return taken && *taken ? (*taken)->number : 0;
    }

    fakes::MemoryStore m_store;
    std::set<RunKey> m_over;
};

TEST_F(TakerTest, GivesEachTryToOneWorker)
{
    begin(3);
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    EXPECT_EQ(number(one.next(k_taken)), 1U);
    EXPECT_EQ(number(two.next(k_taken)), 2U);
    EXPECT_EQ(number(one.next(k_taken)), 3U);
    EXPECT_EQ(number(two.next(k_taken)), 0U);
    EXPECT_EQ(number(one.next(k_taken)), 0U);
}

TEST_F(TakerTest, KnowsTheRungsOfAllTriesAndWhichMayNotEndEarlyAgain)
{
    begin(2);
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    const auto first = one.next(k_taken);
    ASSERT_EQ(number(two.next(k_taken)), 2U);
    const auto pass = [](TryTaker& by, std::size_t which, int attempt, RungValue value) {
        TryEvent event{TryEvent::Kind::passed, which, attempt, k_taken};
        event.rung = value;
        ASSERT_TRUE(by.record(event));
    };
    pass(one, 1, 1, {9, 1, 1, 9});
    pass(one, 1, 1, {3, 2, 2, 3});
    pass(two, 2, 1, {3, 5, 5, 3});
    ASSERT_TRUE(two.refresh());
    EXPECT_THAT(others_at(two.board().tries(), 3, 2), ElementsAre(RungValue{3, 2, 2, 3}));
    EXPECT_THAT(others_at(two.board().tries(), 9, 1), ElementsAre());
    EXPECT_THAT(others_at(two.board().tries(), 9, 2), ElementsAre(RungValue{9, 1, 0.5, 6}))
        << "its mean since step 3";
    TryEvent end = end_of(**first, TryEnd::stopped_early, 85);
    end.evidence = EarlyStop{2, 9, 1, 0.5, 3};
    ASSERT_TRUE(one.record(end));
    ASSERT_TRUE(two.refresh());
    EXPECT_EQ(tally_of(two.board().tries()).stopped_early, 1U);
    EXPECT_EQ(two.board().tries()[0].end->evidence, end.evidence);
    EXPECT_EQ(number(two.next(k_taken)), 0U) << "it is not continued";
    ASSERT_TRUE(retry(m_store, k_sweep, {{1, 1}}));
    const auto again = two.next(k_taken);
    ASSERT_EQ(number(again), 1U);
    pass(two, 1, 2, {9, 0.5, 1, 9}); // from the beginning
    ASSERT_TRUE(two.refresh());
    const Try& entry = two.board().tries()[0];
    EXPECT_TRUE(entry.is_exempt);
    EXPECT_THAT(entry.rungs, ElementsAre(RungValue{3, 2, 2, 3}, RungValue{9, 0.5, 1, 9}));
    EXPECT_FALSE(two.board().tries()[1].is_exempt);
}

TEST_F(TakerTest, TakesATryOfALostWorkerOnlyOnceItIsOver)
{
    begin(1);
    ASSERT_EQ(number(taker(1).next(k_taken)), 1U);
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_taken)), 0U);
    m_over.insert(key_of(1));
    const auto taken = two.next(k_taken);
    ASSERT_EQ(number(taken), 1U);
    EXPECT_EQ((*taken)->attempt, 2);
    EXPECT_EQ((*taken)->interruptions, 1);
}

TEST_F(TakerTest, FindsAClaimThatNoJournalMentions)
{
    begin(1);
    ASSERT_TRUE(m_store.write_once(layout::try_claim(k_sweep, 1, 1),
                                   to_text(Claimant{key_of(1), LinkNumber{1}})));
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_taken)), 0U);
    m_over.insert(key_of(1));
    EXPECT_EQ(number(two.next(k_taken)), 1U);
}

TEST_F(TakerTest, ContinuesPausedTriesFirstAndThoseOfTheEarlierLink)
{
    begin(3);
    TryTaker one = taker(1);
    const auto first = one.next(k_taken);
    const auto second = one.next(k_taken);
    ASSERT_EQ(number(second), 2U);
    ASSERT_TRUE(one.record(end_of(**second, TryEnd::paused, 85)));
    TryTaker next_link = taker(1, 2);
    EXPECT_EQ(number(next_link.next(k_taken)), 2U);
    EXPECT_EQ(number(next_link.next(k_taken)), 3U);
    EXPECT_EQ(number(next_link.next(k_taken)), 1U); // the first link ended without recording it
    EXPECT_EQ(number(next_link.next(k_taken)), 0U);
}

TEST_F(TakerTest, IgnoresTheLateEndOfAVoidAttempt)
{
    begin(1);
    TryTaker one = taker(1);
    const auto old = one.next(k_taken);
    m_over.insert(key_of(1));
    TryTaker two = taker(2);
    const auto newer = two.next(k_taken);
    ASSERT_EQ(number(newer), 1U);
    ASSERT_TRUE(one.record(end_of(**old, TryEnd::finished, 1)));
    ASSERT_TRUE(two.record(end_of(**newer)));
    Board board(m_store, k_sweep);
    ASSERT_TRUE(board.refresh());
    EXPECT_EQ(board.tries().front().end->status, 0);
    EXPECT_EQ(board.tries().front().end->attempt, 2);
}

TEST_F(TakerTest, KnowsTheValuesOfARunningTryAndOfTheAttemptsItContinues)
{
    begin(2);
    TryTaker one = taker(1);
    const auto taken = one.next(k_taken);
    TryEvent reached{TryEvent::Kind::reached, 1, 1, k_taken, {}, {3.0, 2.0, 5}};
    ASSERT_TRUE(one.record(reached));
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().reached, reached.values);
    EXPECT_EQ(one.board().tries().front().state, Try::State::running);
    EXPECT_THAT(ranking(one.board().tries(), {}), ElementsAre(0));
    TryEvent paused = end_of(**taken, TryEnd::paused, 85);
    paused.values = {2.5, 2.0, 5};
    ASSERT_TRUE(one.record(paused));
    EXPECT_EQ(number(one.next(k_taken)), 1U);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().reached, paused.values);
    ASSERT_TRUE(one.record({TryEvent::Kind::ended, 1, 2, k_taken, {}, {1.0, 1.0, 9}}));
    ASSERT_TRUE(retry(m_store, k_sweep, {{1, 2}}));
    EXPECT_EQ(number(one.next(k_taken)), 1U);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().reached, TryValues());
}

TEST_F(TakerTest, CountsTheGpuTimeOfAllAttempts)
{
    begin(2);
    Sweep sweep = sweep_named("cal");
    sweep.run.request.gpus.count = 2;
    sweep.gpu_time = 1min;
    TryTaker one = taker(1);
    const auto taken = one.next(k_taken);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(gpu_time_used(one.board().tries(), sweep, k_taken + 10s), 20s);
    EXPECT_FALSE(is_spent(one.board().tries(), sweep, k_taken + 29s));
    EXPECT_TRUE(is_spent(one.board().tries(), sweep, k_taken + 30s));
    m_over.insert(key_of(1)); // its end is not known
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_taken + 5s)), 2U);
    EXPECT_EQ(number(two.next(k_taken + 12s)), 1U);
    ASSERT_TRUE(two.refresh());
    EXPECT_EQ(gpu_time_used(two.board().tries(), sweep, k_taken + 20s), 2 * (12s + 15s + 8s));
    sweep.per_gpu = 2; // side by side
    EXPECT_EQ(gpu_time_used(two.board().tries(), sweep, k_taken + 20s), 12s + 15s + 8s);
}

TEST_F(TakerTest, ReadsTheJournalsOfAttemptsInAnyOrder)
{
    begin(1);
    TryTaker later = taker(2); // its journal is read after that of worker 1
    ASSERT_EQ(number(later.next(k_taken)), 1U);
    m_over.insert(key_of(2));
    TryTaker earlier = taker(1);
    const auto taken = earlier.next(k_taken + 7s);
    ASSERT_EQ(number(taken), 1U);
    TryEvent end = end_of(**taken);
    end.at = k_taken + 10s;
    ASSERT_TRUE(earlier.record(end));
    ASSERT_TRUE(earlier.refresh());
    Board afresh(m_store, k_sweep);
    ASSERT_TRUE(afresh.refresh());
    for (const Board* board : {static_cast<const Board*>(&afresh), &earlier.board()}) {
        EXPECT_EQ(board->tries().front().used, 10s);
        EXPECT_EQ(board->tries().front().interruptions, 1);
        EXPECT_EQ(board->tries().front().attempt, 2);
    }
}

TEST_F(TakerTest, StopsWithTheSweepAndContinuesWithIt)
{
    begin(2);
    TryTaker one = taker(1);
    ASSERT_TRUE(stop_sweep(m_store, k_sweep));
    EXPECT_EQ(number(one.next(k_taken)), 0U);
    ASSERT_TRUE(continue_sweep(m_store, k_sweep));
    EXPECT_EQ(number(taker(2).next(k_taken)), 1U);
}

TEST_F(TakerTest, TakesAddedAndRetriedTries)
{
    begin(1);
    TryTaker one = taker(1);
    const auto first = one.next(k_taken);
    ASSERT_TRUE(one.record(end_of(**first, TryEnd::finished, 1)));
    EXPECT_EQ(number(one.next(k_taken)), 0U);
    ASSERT_TRUE(add_tries(m_store, k_sweep, numbered(1)));
    const auto added = one.next(k_taken);
    EXPECT_EQ(number(added), 2U);
    ASSERT_TRUE(one.record(end_of(**added)));
    ASSERT_TRUE(retry(m_store, k_sweep, {{1, 1}}));
    const auto again = one.next(k_taken);
    ASSERT_EQ(number(again), 1U);
    EXPECT_EQ((*again)->attempt, 2);
    EXPECT_EQ((*again)->interruptions, 0); // it had come to an end
    ASSERT_TRUE(one.record(end_of(**again)));
    EXPECT_EQ(number(one.next(k_taken)), 0U);
    EXPECT_EQ(tally_of(one.board().tries()).succeeded, 2U);
}

TEST_F(TakerTest, ReportsAFullDiskAndTakesNothing)
{
    begin(1);
    m_store.full = true;
    TryTaker one = taker(1);
    EXPECT_FALSE(one.next(k_taken));
    m_store.full = false;
    EXPECT_EQ(number(one.next(k_taken)), 1U);
}

TEST_F(TakerTest, IsOverIfTheLinkRecordedItsEndOrTheNextHasBegun)
{
    const Claimant who{key_of(1), LinkNumber{1}};
    EXPECT_FALSE(is_link_over(m_store, who));
    m_store.append(layout::journal(who.worker, who.link),
                   "{\"v\":1,\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"program_started\"}\n");
    EXPECT_FALSE(is_link_over(m_store, who));
    m_store.append(layout::journal(who.worker, who.link),
                   "{\"v\":1,\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"ended\",\"status\":0,"
                   "\"cause\":\"finished\"}\n");
    EXPECT_TRUE(is_link_over(m_store, who));
    const Claimant other{key_of(2), LinkNumber{1}};
    m_store.append(layout::claim(other.worker, LinkNumber{2}), "7");
    EXPECT_TRUE(is_link_over(m_store, other));
    const Claimant third{key_of(3), LinkNumber{1}};
    m_store.append(layout::ended_json(third.worker), "{}");
    EXPECT_TRUE(is_link_over(m_store, third));
}

TEST_F(TakerTest, FindsSweepsByNameAndKey)
{
    begin(1);
    EXPECT_EQ(find_sweep(m_store, "cal")->run.key, k_sweep);
    EXPECT_EQ(find_sweep(m_store, k_sweep.text())->run.key, k_sweep);
    EXPECT_FALSE(find_sweep(m_store, "other"));
    forget_sweep(m_store, k_sweep);
    EXPECT_FALSE(find_sweep(m_store, "cal"));
}

// Schedules of faults: workers that die before, in or after any access to the disk, while other
// workers run between any two accesses.

struct Death {};

/// The disk as one worker sees it.
class UnsafeStore : public Store {
public:
    UnsafeStore(fakes::MemoryStore& store, std::mt19937& random, std::function<void()> others)
        : m_store(store)
        , m_random(random)
        , m_others(std::move(others))
    {
    }
    const std::string& root() const override { return m_store.root(); }
    Result<std::string> read(const std::string& path) override
    {
        access();
        return m_store.read(path);
    }
    Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                std::size_t size) override
    {
        access();
        return m_store.read_at(path, offset, size);
    }
    Result<std::uint64_t> size(const std::string& path) override
    {
        access();
        return m_store.size(path);
    }
    Result<void> write(const std::string& path, std::string_view content) override
    {
        access();
        return m_store.write(path, content);
    }
    Result<void> write_once(const std::string& path, std::string_view content) override
    {
        access();
        auto result = m_store.write_once(path, content);
        die(60);
        return result;
    }
    Result<void> write_together(const std::vector<NewFile>& files) override
    {
        return m_store.write_together(files);
    }
    Result<void> append_line(const std::string& path, std::string_view line) override
    {
        access();
        if (is_chosen(60)) { // a part of the line
            const auto whole = static_cast<std::uint32_t>(line.size());
            m_store.append(path, line.substr(0, m_random() % (whole + 1)));
            throw Death();
        }
        auto result = m_store.append_line(path, line);
        die(60);
        return result;
    }
    Result<void> make_dir(const std::string& path) override { return m_store.make_dir(path); }
    Result<std::vector<std::string>> list(const std::string& path) override
    {
        access();
        return m_store.list(path);
    }
    Result<void> remove(const std::string& path) override { return m_store.remove(path); }
    Result<std::uint64_t> tree_size(const std::string& path) override
    {
        return m_store.tree_size(path);
    }
    Result<Descriptor> try_lock(const std::string& path, std::uint32_t byte) override
    {
        return m_store.try_lock(path, byte);
    }
    Result<void> remove_tree(const std::string& path) override { return m_store.remove_tree(path); }

private:
    bool is_chosen(unsigned int in) { return m_random() % in == 0; }
    void die(unsigned int in)
    {
        if (is_chosen(in)) {
            throw Death();
        }
    }
    void access()
    {
        die(400);
        if (is_chosen(4)) {
            m_others();
        }
    }

    fakes::MemoryStore& m_store;
    std::mt19937& m_random;
    std::function<void()> m_others;
};

class Schedule {
public:
    explicit Schedule(unsigned int seed)
        : m_random(seed)
    {
        m_tries = 1 + static_cast<int>(m_random() % 12);
        EXPECT_TRUE(write_sweep(m_disk, sweep_named("cal"), numbered(m_tries)));
    }

    void run()
    {
        for (int step = 0; step < 3000 && !is_complete(); ++step) {
            if (m_workers.size() < 3) {
                hire();
            }
            advance(m_random() % m_workers.size());
            // A guardian or a client records the death later.
            if (!m_dead.empty() && m_random() % 8 == 0) {
                m_over.push_back(m_dead.front());
                m_dead.erase(m_dead.begin());
            }
        }
        EXPECT_TRUE(is_complete());
        for (const auto& [number, ends] : m_counted_ends) {
            EXPECT_EQ(ends, 1) << "try " << number;
        }
    }

private:
    struct Worker {
        Claimant self;
        std::unique_ptr<UnsafeStore> store;
        std::unique_ptr<TryTaker> taker;
        std::optional<TryTaker::Taken> running;
        std::optional<TryEvent> end; ///< to be recorded
        bool busy = false;           ///< in a call, while others advance
    };

    void hire()
    {
        auto worker = std::make_unique<Worker>(Worker{
            {key_of(m_next_key), LinkNumber{1}}, nullptr, nullptr, std::nullopt, std::nullopt});
        // Sometimes as the next link of a run whose link has died.
        if (!m_dead.empty() && m_random() % 2 == 0) {
            worker->self = {m_dead.front().worker, LinkNumber{m_dead.front().link.value + 1}};
            m_over.push_back(m_dead.front());
            m_dead.erase(m_dead.begin());
        } else {
            ++m_next_key;
        }
        worker->store =
            std::make_unique<UnsafeStore>(m_disk, m_random, [this] { advance_other(); });
        worker->taker = std::make_unique<TryTaker>(
            *worker->store, k_sweep, worker->self, [this](const Claimant& who) {
                return std::find(m_over.begin(), m_over.end(), who) != m_over.end();
            });
        m_workers.push_back(std::move(worker));
    }

    void advance_other()
    {
        if (m_depth < 2 && !m_workers.empty()) {
            advance(m_random() % m_workers.size());
        }
    }

    void advance(std::size_t index)
    {
        Worker* const worker = m_workers[index].get();
        if (worker->busy) {
            return;
        }
        worker->busy = true;
        ++m_depth;
        try {
            act(*worker);
        } catch (const Death&) {
            bury(worker);
        }
        --m_depth;
        worker->busy = false;
        if (m_depth == 0) {
            std::erase_if(m_workers, [](const auto& one) { return one->taker == nullptr; });
        }
    }

    void act(Worker& worker)
    {
        if (worker.taker == nullptr) {
            return;
        }
        if (m_random() % 50 == 0) {
            throw Death();
        }
        if (worker.end) {
            const TryEvent end = *worker.end;
            const auto written = worker.taker->record(end);
            EXPECT_TRUE(written);
            ++m_counted_ends[end.number];
            worker.end.reset();
            return;
        }
        if (worker.running) {
            if (m_random() % 3 == 0) { // its program ends
                m_alive.erase(worker.running->number);
                worker.end = end_of(*worker.running);
                worker.running.reset();
            }
            return;
        }
        const auto taken = worker.taker->next(k_taken);
        EXPECT_TRUE(taken);
        if (taken && *taken) {
            EXPECT_TRUE(m_alive.insert((*taken)->number).second)
                << "try " << (*taken)->number << " runs twice";
            EXPECT_EQ(m_counted_ends.count((*taken)->number), 0U) << "it has ended";
            worker.running = **taken;
        }
    }

    /// All its processes end at once, as when the guardian has killed them.
    void bury(Worker* worker)
    {
        if (worker->running) {
            m_alive.erase(worker->running->number);
        }
        // The end may have been recorded completely before the worker died.
        if (worker->end) {
            Board board(m_disk, k_sweep);
            EXPECT_TRUE(board.refresh());
            const Try& entry = board.tries()[worker->end->number - 1];
            if (entry.end && entry.attempt == worker->end->attempt) {
                ++m_counted_ends[worker->end->number];
            }
        }
        m_dead.push_back(worker->self);
        worker->taker.reset();
        worker->running.reset();
        worker->end.reset();
    }

    bool is_complete()
    {
        Board board(m_disk, k_sweep);
        EXPECT_TRUE(board.refresh());
        const Tally tally = tally_of(board.tries());
        return tally.succeeded == static_cast<std::size_t>(m_tries);
    }

    fakes::MemoryStore m_disk;
    std::mt19937 m_random;
    int m_tries = 0;
    int m_depth = 0;
    unsigned char m_next_key = 1;
    std::vector<std::unique_ptr<Worker>> m_workers;
    std::vector<Claimant> m_dead, m_over;
    std::set<std::size_t> m_alive;
    std::map<std::size_t, int> m_counted_ends;
};

TEST(TakerSchedules, RunEachTryOnceWhereverWorkersDie)
{
    const char* const soak = std::getenv("GPUQ_SOAK");
    const unsigned int seeds = soak != nullptr ? 10'000 : 1000;
    for (unsigned int seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        Schedule(seed).run();
    }
}

} // namespace
} // namespace gpuq::sweeps
