// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/past.h"

#include "core/layout.h"
#include "fakes/memory_store.h"
#include "sweeps/board.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"
#include "sweeps/totals.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;

class PastTest : public testing::Test {
protected:
    PastTest() { EXPECT_TRUE(write_sweep(m_store, m_sweep, numbered_tries(8))); }

    void record(const TryEvent& event, unsigned int worker = 1)
    {
        const std::string path = layout::sweep_worker(k_numbered_sweep, numbered_key(worker));
        EXPECT_TRUE(m_store.append_line(path, to_line(event)));
    }
    void begins(std::size_t number, int attempt = 1, unsigned int worker = 1)
    {
        record({TryEvent::Kind::began, number, attempt, k_first_taken, k_first}, worker);
    }
    void ends(std::size_t number, double value, TryEnd end = TryEnd::finished, int attempt = 1,
              unsigned int worker = 1)
    {
        TryEvent event{TryEvent::Kind::ended, number, attempt, k_first_taken + 10s, k_first};
        event.end = end;
        event.values = {value, value, number};
        record(event, worker);
    }
    /// As clients keep it.
    Past past() const
    {
        Board board(m_store, k_numbered_sweep);
        EXPECT_TRUE(board.refresh());
        return *past_from_json(to_json(board.past(m_sweep.metric)));
    }
    Totals totals(Board& board) const
    {
        EXPECT_TRUE(board.refresh());
        return totals_of(board.tries(), m_sweep, k_first_taken + 1min);
    }
    Totals totals() const
    {
        Board board(m_store, k_numbered_sweep);
        return totals(board);
    }
    bool continues(const Past& past) const
    {
        Board board(m_store, k_numbered_sweep, past);
        EXPECT_TRUE(board.refresh());
        return board.continues_past();
    }

    mutable fakes::MemoryStore m_store;
    Sweep m_sweep = numbered_sweep("cal");
};

TEST_F(PastTest, HasTheTriesThatEndedAndThoseThatRun)
{
    begins(1);
    ends(1, 0.5);
    begins(2);
    ends(2, 0.25);
    begins(3);
    ends(3, 0, TryEnd::stopped);
    begins(4);
    const Past now = past();
    EXPECT_EQ(now.ends, "++x.....");
    EXPECT_EQ(now.ended(), 3U);
    EXPECT_EQ(now.used, 30s);
    EXPECT_EQ(now.best->number, 3U);
    EXPECT_EQ(now.open.size(), 2U);
    Board board(m_store, k_numbered_sweep, now);
    EXPECT_EQ(totals(board), totals());
    EXPECT_TRUE(board.continues_past());
}

TEST_F(PastTest, IsContinuedByLaterEventsAndTries)
{
    begins(1);
    ends(1, 0.5);
    begins(2);
    const Past before = past();
    ends(2, 0.25);
    begins(3, 1, 2);
    ends(3, 7, TryEnd::paused, 1, 2);
    ASSERT_TRUE(add_tries(m_store, k_numbered_sweep, numbered_tries(2)));
    Board board(m_store, k_numbered_sweep, before);
    EXPECT_EQ(totals(board), totals());
    EXPECT_EQ(totals().tries, 10U);
    EXPECT_EQ(board.past(m_sweep.metric).ends, "++........");
}

TEST_F(PastTest, IsOverOnceAnEndedTryIsRepeatedOrItsFilesChange)
{
    begins(1);
    ends(1, 0.5);
    begins(2);
    const Past before = past();
    EXPECT_TRUE(continues(before));
    ends(1, 0.75);
    EXPECT_FALSE(continues(before));
    const Past later = past();
    EXPECT_TRUE(continues(later)) << "of two ends the first one counts";
    ASSERT_TRUE(retry(m_store, k_numbered_sweep, {{1, 1}}));
    EXPECT_FALSE(continues(later));
    const Past last = past();
    std::string& journal = m_store.files[layout::sweep_worker(k_numbered_sweep, numbered_key(1))];
    journal.resize(journal.size() - 1); // as after a crash of the file server
    EXPECT_FALSE(continues(last));
    m_store.files.erase(layout::sweep_worker(k_numbered_sweep, numbered_key(1)));
    EXPECT_FALSE(continues(last));
}

TEST_F(PastTest, ALineWithoutItsEndIsReadOnce)
{
    begins(1);
    ends(1, 0.5);
    const std::string path = layout::sweep_worker(k_numbered_sweep, numbered_key(1));
    m_store.files[path].pop_back(); // torn
    const Past before = past();
    EXPECT_TRUE(continues(before));
    begins(2);
    Board board(m_store, k_numbered_sweep, before);
    EXPECT_EQ(totals(board), totals());
    EXPECT_EQ(totals().tally.running, 1U);
    EXPECT_TRUE(board.continues_past());
}

TEST_F(PastTest, IsInvalidIfItIsTorn)
{
    begins(1);
    ends(1, std::numeric_limits<double>::infinity());
    begins(2);
    const std::string text = to_json(past());
    EXPECT_EQ(*past_from_json(text), past());
    for (std::size_t size = 0; size + 2 < text.size(); ++size) {
        EXPECT_FALSE(past_from_json(text.substr(0, size))) << size;
    }
    Past other = past();
    other.ends = "?";
    EXPECT_FALSE(past_from_json(to_json(other)));
    other.ends = "";
    EXPECT_FALSE(past_from_json(to_json(other))) << "its best try does not exist";
}

/// For events in any order: totals from a past, if the files continue it, are those of
/// all files.
TEST_F(PastTest, GivesTheSameTotalsAsAllFiles)
{
    int continued = 0;
    for (unsigned int seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        m_store = fakes::MemoryStore();
        ASSERT_TRUE(write_sweep(m_store, m_sweep, numbered_tries(8)));
        Past before;
        for (int step = 0; step < 60; ++step) {
            const auto number = 1 + random() % 8;
            const auto attempt = 1 + static_cast<int>(random() % 3 / 2);
            const auto worker = 1 + (static_cast<unsigned int>(number) + attempt) % 3; // one each
            const auto value = static_cast<double>(random() % 5);
            switch (random() % 8) {
            case 0:
            case 1:
            case 2:
                begins(number, attempt, worker);
                break;
            case 3:
            case 4:
                ends(number, value, static_cast<TryEnd>(random() % 7), attempt, worker);
                break;
            case 5: {
                TryEvent event{TryEvent::Kind::reached, number, attempt, k_first_taken, k_first};
                event.values = {value, value, 1};
                record(event, worker);
                break;
            }
            case 6:
                if (random() % 8 == 0) {
                    ASSERT_TRUE(retry(m_store, k_numbered_sweep, {{number, attempt}}));
                }
                break;
            default:
                Board board(m_store, k_numbered_sweep, before);
                const Totals found = totals(board);
                if (board.continues_past()) {
                    ASSERT_EQ(found, totals());
                    before = *past_from_json(to_json(board.past(m_sweep.metric)));
                    ++continued;
                } else {
                    before = past();
                }
            }
        }
    }
    EXPECT_GT(continued, 200);
}

} // namespace
} // namespace gpuq::sweeps
