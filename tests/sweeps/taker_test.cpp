// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/taker.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class TakerStore : public fakes::MemoryStore {
public:
    bool journals_fail = false;
    /// Done once, right after the reader has found no file at `read_last`.
    std::function<void()> meanwhile;
    std::string read_last;
    Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                std::size_t size) override
    {
        auto read = MemoryStore::read_at(path, offset, size);
        if (!read && meanwhile && path == read_last) {
            std::exchange(meanwhile, nullptr)();
        }
        return read;
    }
    Result<void> append_line(const std::string& path, std::string_view line) override
    {
        return journals_fail ? Result<void>(fail(Error::Kind::io, path + ": Input/output error"))
                             : MemoryStore::append_line(path, line);
    }
};

class TakerTest : public testing::Test {
protected:
    void begin(int tries)
    {
        ASSERT_TRUE(write_sweep(m_store, numbered_sweep("cal"), numbered_tries(tries)));
    }
    TryTaker taker(unsigned int worker, int link = 1)
    {
        return TryTaker(m_store, k_numbered_sweep, {numbered_key(worker), LinkNumber{link}},
                        [this](const Claimant& who) { return m_over.contains(who.worker); });
    }
    static std::size_t number(const Result<std::optional<TryTaker::Taken>>& taken)
    {
        return taken && *taken ? (*taken)->number : 0;
    }

    TakerStore m_store;
    std::set<RunKey> m_over;
};

TEST_F(TakerTest, GivesEachTryToOneWorker)
{
    begin(3);
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    EXPECT_EQ(number(one.next(k_first_taken)), 1U);
    EXPECT_EQ(number(two.next(k_first_taken)), 2U);
    EXPECT_EQ(number(one.next(k_first_taken)), 3U);
    EXPECT_EQ(number(two.next(k_first_taken)), 0U);
    EXPECT_EQ(number(one.next(k_first_taken)), 0U);
}

TEST_F(TakerTest, KnowsTheRungsOfAllTriesAndWhichMayNotEndEarlyAgain)
{
    begin(2);
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    const auto first = one.next(k_first_taken);
    ASSERT_EQ(number(two.next(k_first_taken)), 2U);
    const auto pass = [](TryTaker& by, std::size_t which, int attempt, RungValue value) {
        TryEvent event{TryEvent::Kind::passed, which, attempt, k_first_taken};
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
    TryEvent end = end_of_taken(**first, TryEnd::stopped_early, 85);
    end.evidence = EarlyStop{2, 9, 1, 0.5, 3};
    ASSERT_TRUE(one.record(end));
    ASSERT_TRUE(two.refresh());
    EXPECT_EQ(tally_of(two.board().tries()).stopped_early, 1U);
    EXPECT_EQ(two.board().tries()[0].end->evidence, end.evidence);
    EXPECT_EQ(number(two.next(k_first_taken)), 0U) << "it is not continued";
    ASSERT_TRUE(retry(m_store, k_numbered_sweep, {{1, 1}}));
    const auto again = two.next(k_first_taken);
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
    ASSERT_EQ(number(taker(1).next(k_first_taken)), 1U);
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_first_taken)), 0U);
    m_over.insert(numbered_key(1));
    const auto taken = two.next(k_first_taken);
    ASSERT_EQ(number(taken), 1U);
    EXPECT_EQ((*taken)->attempt, 2);
    EXPECT_EQ((*taken)->interruptions, 1);
}

TEST_F(TakerTest, AWorkerWhoseRecordsHaveBeenRemovedIsOver)
{
    const Claimant one{numbered_key(1), LinkNumber{1}};
    const std::string record = layout::run_json(one.worker);
    ASSERT_TRUE(m_store.write(record, "{}"));
    EXPECT_FALSE(is_link_over(m_store, one));
    m_store.unreadable.insert(record);
    EXPECT_FALSE(is_link_over(m_store, one)) << "unknown";
    m_store.unreadable.clear();
    ASSERT_TRUE(m_store.remove_tree(layout::run_dir(one.worker)));
    EXPECT_TRUE(is_link_over(m_store, one));
}

TEST_F(TakerTest, FindsAClaimThatNoJournalMentions)
{
    begin(1);
    ASSERT_TRUE(m_store.write_once(layout::try_claim(k_numbered_sweep, 1, 1),
                                   to_text(Claimant{numbered_key(1), LinkNumber{1}})));
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_first_taken)), 0U);
    m_over.insert(numbered_key(1));
    EXPECT_EQ(number(two.next(k_first_taken)), 1U);
}

TEST_F(TakerTest, FindsTheLastOfSeveralSuchClaims)
{
    begin(1);
    for (const int worker : {1, 2, 3}) {
        ASSERT_TRUE(m_store.write_once(
            layout::try_claim(k_numbered_sweep, 1, worker),
            to_text(Claimant{numbered_key(static_cast<unsigned int>(worker)), LinkNumber{1}})));
    }
    m_over = {numbered_key(1), numbered_key(2)};
    TryTaker four = taker(4);
    EXPECT_EQ(number(four.next(k_first_taken)), 0U);
    m_over.insert(numbered_key(3));
    const auto taken = four.next(k_first_taken);
    ASSERT_EQ(number(taken), 1U);
    EXPECT_EQ((*taken)->attempt, 4);
    EXPECT_EQ((*taken)->interruptions, 0) << "no program was started";
}

TEST_F(TakerTest, SeesAnEndThatWasRecordedJustBeforeItsWorkerWasOver)
{
    begin(1);
    TryTaker one = taker(1);
    const auto taken = one.next(k_first_taken);
    TryTaker two(m_store, k_numbered_sweep, {numbered_key(2), LinkNumber{1}}, [&](const Claimant&) {
        EXPECT_TRUE(one.record(end_of_taken(**taken)));
        return true;
    });
    EXPECT_EQ(number(two.next(k_first_taken)), 0U);
    EXPECT_EQ(tally_of(two.board().tries()).succeeded, 1U);
}

TEST_F(TakerTest, CountsATryThatWasAddedAndBegunWhileTheBoardWasRead)
{
    begin(1);
    TryTaker one = taker(1);
    ASSERT_EQ(number(one.next(k_first_taken)), 1U);
    ASSERT_TRUE(one.record({TryEvent::Kind::ended, 1, 1, k_first_taken}));
    TryTaker two = taker(2);
    m_store.read_last = layout::sweep_tries(k_numbered_sweep, 2);
    m_store.meanwhile = [&] {
        ASSERT_TRUE(add_tries(m_store, k_numbered_sweep, numbered_tries(2)));
        const auto ended = one.next(k_first_taken);
        ASSERT_EQ(number(ended), 2U);
        ASSERT_TRUE(one.record(end_of_taken(**ended, TryEnd::not_started, 125)));
        ASSERT_EQ(number(one.next(k_first_taken)), 3U);
    };
    EXPECT_EQ(number(two.next(k_first_taken)), 0U);
    EXPECT_FALSE(m_store.meanwhile);
    m_over.insert(numbered_key(1));
    const auto taken = two.next(k_first_taken + 10s);
    ASSERT_EQ(number(taken), 3U) << "the other one has ended";
    EXPECT_EQ((*taken)->attempt, 2);
    ASSERT_TRUE(two.refresh());
    Board afresh(m_store, k_numbered_sweep);
    ASSERT_TRUE(afresh.refresh());
    EXPECT_EQ(tally_of(two.board().tries()).failed, 1U);
    Sweep sweep = numbered_sweep("cal");
    for (const Board* board : {static_cast<const Board*>(&afresh), &two.board()}) {
        EXPECT_EQ(gpu_time_used(board->tries(), sweep, k_first_taken + 15s), 1s + 10s + 5s);
    }
}

TEST_F(TakerTest, ReadsARetryOfATryWhoseListIsNotVisibleYet)
{
    begin(1);
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    ASSERT_EQ(number(one.next(k_first_taken)), 1U);
    m_store.hold(layout::sweep_tries(k_numbered_sweep, 2)); // as on NFS
    ASSERT_EQ(number(two.next(k_first_taken)), 0U);
    const std::string tries = to_lines(numbered_tries(1));
    const TryEvent end{TryEvent::Kind::ended, 2, 1, k_first_taken, LinkNumber{1}, {}, 1};
    ASSERT_TRUE(m_store.write_once(layout::sweep_tries(k_numbered_sweep, 2), tries));
    ASSERT_TRUE(
        m_store.append_line(layout::sweep_worker(k_numbered_sweep, numbered_key(1)), to_line(end)));
    ASSERT_TRUE(m_store.write_once(layout::sweep_retries(k_numbered_sweep, 1),
                                   to_lines(std::vector<Retry>{{2, 1}})));
    ASSERT_EQ(number(two.next(k_first_taken)), 0U);
    m_store.release(layout::sweep_tries(k_numbered_sweep, 2));
    const auto taken = two.next(k_first_taken);
    ASSERT_EQ(number(taken), 2U);
    EXPECT_EQ((*taken)->attempt, 2);
}

TEST_F(TakerTest, ReadsOnBehindALineAboutATryThatDoesNotExist)
{
    begin(1);
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    const auto taken = one.next(k_first_taken);
    ASSERT_TRUE(m_store.append_line(
        layout::sweep_worker(k_numbered_sweep, numbered_key(1)),
        to_line(TryEvent{TryEvent::Kind::ended, 4000000000, 1, k_first_taken, LinkNumber{1}})));
    ASSERT_TRUE(one.record(end_of_taken(**taken)));
    ASSERT_TRUE(two.refresh());
    EXPECT_EQ(two.board().tries().size(), 1U);
    EXPECT_EQ(tally_of(two.board().tries()).succeeded, 1U);
}

TEST_F(TakerTest, ReadsAnEndWithoutItsLineEnd)
{
    begin(1);
    TryTaker one = taker(1);
    const auto taken = one.next(k_first_taken);
    m_store.append(layout::sweep_worker(k_numbered_sweep, numbered_key(1)),
                   to_line(end_of_taken(**taken)));
    m_over.insert(numbered_key(1));
    EXPECT_EQ(number(taker(2).next(k_first_taken)), 0U);
}

TEST_F(TakerTest, ContinuesPausedTriesFirstAndThoseOfTheEarlierLink)
{
    begin(3);
    TryTaker one = taker(1);
    const auto first = one.next(k_first_taken);
    const auto second = one.next(k_first_taken);
    ASSERT_EQ(number(second), 2U);
    ASSERT_TRUE(one.record(end_of_taken(**second, TryEnd::paused, 85)));
    TryTaker next_link = taker(1, 2);
    EXPECT_EQ(number(next_link.next(k_first_taken)), 2U);
    EXPECT_EQ(number(next_link.next(k_first_taken)), 3U);
    EXPECT_EQ(number(next_link.next(k_first_taken)),
              1U); // the first link ended without recording it
    EXPECT_EQ(number(next_link.next(k_first_taken)), 0U);
}

TEST_F(TakerTest, IgnoresTheLateEndOfAVoidAttempt)
{
    begin(1);
    TryTaker one = taker(1);
    const auto old = one.next(k_first_taken);
    m_over.insert(numbered_key(1));
    TryTaker two = taker(2);
    const auto newer = two.next(k_first_taken);
    ASSERT_EQ(number(newer), 1U);
    ASSERT_TRUE(one.record(end_of_taken(**old, TryEnd::finished, 1)));
    ASSERT_TRUE(two.record(end_of_taken(**newer)));
    Board board(m_store, k_numbered_sweep);
    ASSERT_TRUE(board.refresh());
    EXPECT_EQ(board.tries().front().end->status, 0);
    EXPECT_EQ(board.tries().front().end->attempt, 2);
}

TEST_F(TakerTest, KnowsTheValuesOfARunningTryAndOfTheAttemptsItContinues)
{
    begin(2);
    TryTaker one = taker(1);
    const auto taken = one.next(k_first_taken);
    TryEvent reached{TryEvent::Kind::reached, 1, 1, k_first_taken, {}, {3.0, 2.0, 5}};
    ASSERT_TRUE(one.record(reached));
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().reached, reached.values);
    EXPECT_EQ(one.board().tries().front().state, Try::State::running);
    EXPECT_THAT(ranking(one.board().tries(), {}), ElementsAre(0));
    TryEvent paused = end_of_taken(**taken, TryEnd::paused, 85);
    paused.values = {2.5, 2.0, 5};
    ASSERT_TRUE(one.record(paused));
    EXPECT_EQ(number(one.next(k_first_taken)), 1U);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().reached, paused.values);
    ASSERT_TRUE(one.record({TryEvent::Kind::ended, 1, 2, k_first_taken, {}, {1.0, 1.0, 9}}));
    ASSERT_TRUE(retry(m_store, k_numbered_sweep, {{1, 2}}));
    EXPECT_EQ(number(one.next(k_first_taken)), 1U);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().reached, TryValues());
}

TEST_F(TakerTest, CountsTheGpuTimeOfAllAttempts)
{
    begin(2);
    Sweep sweep = numbered_sweep("cal");
    sweep.run.request.gpus.count = 2;
    sweep.gpu_time = 1min;
    TryTaker one = taker(1);
    const auto taken = one.next(k_first_taken);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(gpu_time_used(one.board().tries(), sweep, k_first_taken + 10s), 20s);
    EXPECT_FALSE(is_spent(one.board().tries(), sweep, k_first_taken + 29s));
    EXPECT_TRUE(is_spent(one.board().tries(), sweep, k_first_taken + 30s));
    m_over.insert(numbered_key(1)); // its end is not known
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_first_taken + 5s)), 2U);
    EXPECT_EQ(number(two.next(k_first_taken + 12s)), 1U);
    ASSERT_TRUE(two.refresh());
    EXPECT_EQ(gpu_time_used(two.board().tries(), sweep, k_first_taken + 20s), 2 * (12s + 15s + 8s));
    sweep.per_gpu = 2; // side by side
    EXPECT_EQ(gpu_time_used(two.board().tries(), sweep, k_first_taken + 20s), 12s + 15s + 8s);
}

TEST_F(TakerTest, ReadsTheJournalsOfAttemptsInAnyOrder)
{
    begin(1);
    TryTaker later = taker(2); // its journal is read after that of worker 1
    ASSERT_EQ(number(later.next(k_first_taken)), 1U);
    m_over.insert(numbered_key(2));
    TryTaker earlier = taker(1);
    const auto taken = earlier.next(k_first_taken + 7s);
    ASSERT_EQ(number(taken), 1U);
    TryEvent end = end_of_taken(**taken);
    end.at = k_first_taken + 10s;
    ASSERT_TRUE(earlier.record(end));
    ASSERT_TRUE(earlier.refresh());
    Board afresh(m_store, k_numbered_sweep);
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
    ASSERT_TRUE(stop_sweep(m_store, k_numbered_sweep));
    EXPECT_EQ(number(one.next(k_first_taken)), 0U);
    ASSERT_TRUE(continue_sweep(m_store, k_numbered_sweep));
    EXPECT_EQ(number(taker(2).next(k_first_taken)), 1U);
}

TEST_F(TakerTest, TakesAddedAndRetriedTries)
{
    begin(1);
    TryTaker one = taker(1);
    const auto first = one.next(k_first_taken);
    ASSERT_TRUE(one.record(end_of_taken(**first, TryEnd::finished, 1)));
    EXPECT_EQ(number(one.next(k_first_taken)), 0U);
    ASSERT_TRUE(add_tries(m_store, k_numbered_sweep, numbered_tries(1)));
    const auto added = one.next(k_first_taken);
    EXPECT_EQ(number(added), 2U);
    ASSERT_TRUE(one.record(end_of_taken(**added)));
    ASSERT_TRUE(retry(m_store, k_numbered_sweep, {{1, 1}}));
    const auto again = one.next(k_first_taken);
    ASSERT_EQ(number(again), 1U);
    EXPECT_EQ((*again)->attempt, 2);
    EXPECT_EQ((*again)->interruptions, 0); // it had come to an end
    ASSERT_TRUE(one.record(end_of_taken(**again)));
    EXPECT_EQ(number(one.next(k_first_taken)), 0U);
    EXPECT_EQ(tally_of(one.board().tries()).succeeded, 2U);
}

TEST_F(TakerTest, ReportsAFullDiskAndTakesNothing)
{
    begin(1);
    m_store.full = true;
    TryTaker one = taker(1);
    EXPECT_FALSE(one.next(k_first_taken));
    m_store.full = false;
    EXPECT_EQ(number(one.next(k_first_taken)), 1U);
}

TEST_F(TakerTest, FindsItsOwnClaimAfterAFailedWrite)
{
    begin(1);
    TryTaker one = taker(1);
    m_store.full = true;
    EXPECT_FALSE(one.next(k_first_taken));
    m_store.full = false;
    // The write had created the file, but its directory could not be synchronised.
    m_store.append(layout::try_claim(k_numbered_sweep, 1, 1),
                   to_text(Claimant{numbered_key(1), LinkNumber{1}}));
    TryTaker two = taker(2);
    EXPECT_EQ(number(two.next(k_first_taken)), 0U);
    const auto taken = one.next(k_first_taken);
    ASSERT_EQ(number(taken), 1U);
    EXPECT_EQ((*taken)->attempt, 1);
    EXPECT_EQ(number(one.next(k_first_taken)), 0U) << "only once";
}

TEST_F(TakerTest, GivesNoTryWhoseBeginningIsNotRecorded)
{
    begin(1);
    m_store.journals_fail = true;
    TryTaker one = taker(1);
    EXPECT_FALSE(one.next(k_first_taken));
    EXPECT_FALSE(one.next(k_first_taken));
    m_store.journals_fail = false;
    const auto taken = one.next(k_first_taken + 9s);
    ASSERT_EQ(number(taken), 1U);
    EXPECT_EQ((*taken)->attempt, 1);
    ASSERT_TRUE(one.refresh());
    EXPECT_EQ(one.board().tries().front().began_at, k_first_taken + 9s);
}

TEST_F(TakerTest, CountsItsOwnGpuTimeWhileTheDiskCannotBeRead)
{
    begin(2);
    Sweep sweep = numbered_sweep("cal");
    sweep.gpu_time = 1min;
    TryTaker one = taker(1);
    TryTaker two = taker(2);
    ASSERT_EQ(number(two.next(k_first_taken)), 1U);
    ASSERT_EQ(number(one.next(k_first_taken)), 2U);
    m_store.unreadable = {layout::sweep_worker(k_numbered_sweep, numbered_key(1)),
                          layout::sweep_worker(k_numbered_sweep, numbered_key(2))};
    EXPECT_FALSE(one.is_spent(sweep, k_first_taken + 29s));
    EXPECT_TRUE(one.is_spent(sweep, k_first_taken + 30s));
    m_store.unreadable.clear();
    EXPECT_FALSE(one.is_spent(sweep, k_first_taken + 29s));
    EXPECT_TRUE(one.is_spent(sweep, k_first_taken + 30s));
}

TEST_F(TakerTest, IsOverIfTheLinkRecordedItsEndOrTheNextHasBegun)
{
    for (const unsigned int number : {1U, 2U, 3U}) {
        ASSERT_TRUE(m_store.write(layout::run_json(numbered_key(number)), "{}"));
    }
    const Claimant who{numbered_key(1), LinkNumber{1}};
    EXPECT_FALSE(is_link_over(m_store, who));
    m_store.append(layout::journal(who.worker, who.link),
                   "{\"v\":1,\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"program_started\"}\n");
    EXPECT_FALSE(is_link_over(m_store, who));
    m_store.append(layout::journal(who.worker, who.link),
                   "{\"v\":1,\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"ended\",\"status\":0,"
                   "\"cause\":\"finished\"}\n");
    EXPECT_TRUE(is_link_over(m_store, who));
    const Claimant other{numbered_key(2), LinkNumber{1}};
    m_store.append(layout::claim(other.worker, LinkNumber{2}), "7");
    EXPECT_TRUE(is_link_over(m_store, other));
    const Claimant third{numbered_key(3), LinkNumber{1}};
    m_store.append(layout::ended_json(third.worker), "{}");
    EXPECT_TRUE(is_link_over(m_store, third));
}

TEST_F(TakerTest, FindsSweepsByNameAndKey)
{
    begin(1);
    m_store.reads = 0;
    EXPECT_EQ(find_sweep(m_store, "cal")->run.key, k_numbered_sweep);
    EXPECT_EQ(m_store.reads, 2) << "only the list of sweeps and its record, not its tries";
    EXPECT_EQ(find_sweep(m_store, k_numbered_sweep.text())->run.key, k_numbered_sweep);
    EXPECT_FALSE(find_sweep(m_store, "other"));
    forget_sweep(m_store, k_numbered_sweep);
    EXPECT_FALSE(find_sweep(m_store, "cal"));
}

TEST_F(TakerTest, ANameDenotesTheNewestUnfinishedSweep)
{
    begin(1);
    Sweep newer = numbered_sweep("cal");
    newer.run.key = RunKey::make(k_numbered_sweep.made_at() + 1h, {1});
    ASSERT_TRUE(write_sweep(m_store, newer, numbered_tries(1)));
    const auto found = [&] { return find_sweep(m_store, "cal")->run.key; };
    EXPECT_EQ(found(), newer.run.key) << "both are unfinished";
    TryTaker worker(m_store, newer.run.key, {numbered_key(1), LinkNumber{1}},
                    [](const Claimant&) { return false; });
    const auto taken = worker.next(k_first_taken);
    ASSERT_EQ(number(taken), 1U);
    EXPECT_EQ(found(), newer.run.key);
    ASSERT_TRUE(worker.record(end_of_taken(**taken)));
    EXPECT_EQ(found(), k_numbered_sweep);
    ASSERT_TRUE(stop_sweep(m_store, k_numbered_sweep));
    EXPECT_EQ(found(), newer.run.key) << "both have ended";
}

} // namespace
} // namespace gpuq::sweeps
