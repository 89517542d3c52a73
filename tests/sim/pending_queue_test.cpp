// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/pending_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gpuq::sim {
namespace {

/// A queue beside a sorted list, both with the same random entries.
class QueueAndList {
public:
    explicit QueueAndList(unsigned seed, int tiers, std::uint32_t priorities)
        : m_random(seed)
        , m_tiers(tiers)
        , m_priorities(priorities)
    {
    }

    void insert()
    {
        m_time += Seconds{pick(3)};
        Entry entry{.tier = pick(m_tiers), .priority = priority(), .submit = m_time};
        entry.submit -= Seconds{pick(4)}; // nearly in the order of submissions
        entry.id = static_cast<std::uint64_t>(pick(1000) * 100'000 + m_count);
        entry.link = static_cast<std::uint32_t>(m_count++);
        m_queue.insert(entry);
        m_list.insert(std::upper_bound(m_list.begin(), m_list.end(), entry, goes_before), entry);
    }

    /// Removes up to three of the first `most` entries.
    void remove(int most)
    {
        if (m_list.empty()) {
            return;
        }
        std::size_t last = 0;
        std::vector<std::uint32_t> gone;
        for (int i = 0; i < 3; ++i) {
            const auto place =
                static_cast<std::size_t>(pick(std::min(most, static_cast<int>(m_list.size()))));
            EXPECT_EQ(m_queue.place_of(m_list[place]), place);
            last = std::max(last, place);
            gone.push_back(m_list[place].link);
        }
        const auto is_gone = [&](const Entry& entry) {
            return std::find(gone.begin(), gone.end(), entry.link) != gone.end();
        };
        m_queue.remove(last, is_gone);
        std::erase_if(m_list, is_gone);
    }

    /// Gives one of `number` entries another priority.
    void reprioritise(int number)
    {
        std::vector<std::uint32_t> priorities(static_cast<std::size_t>(m_count));
        for (Entry& entry : m_list) {
            entry.priority = pick(number) == 0 ? priority() : entry.priority;
            priorities[entry.link] = entry.priority;
        }
        const bool was_sorted = std::is_sorted(m_list.begin(), m_list.end(), goes_before);
        std::sort(m_list.begin(), m_list.end(), goes_before);
        const bool changed = m_queue.reprioritise([&](Entry& entry) {
            return std::exchange(entry.priority, priorities[entry.link]) != priorities[entry.link];
        });
        EXPECT_EQ(changed, !was_sorted);
    }

    void compare() const
    {
        ASSERT_EQ(m_queue.size(), m_list.size());
        for (std::size_t i = 0; i < m_list.size(); ++i) {
            ASSERT_EQ(m_queue[i].link, m_list[i].link) << i;
        }
        for (int tier = 0; tier < m_tiers && !m_list.empty(); ++tier) {
            const auto end =
                std::partition_point(m_list.begin(), m_list.end(),
                                     [&](const Entry& entry) { return entry.tier >= tier; });
            EXPECT_EQ(m_queue.end_of_tier(0, tier), static_cast<std::size_t>(end - m_list.begin()));
        }
    }

    int pick(int most) { return static_cast<int>(m_random() % static_cast<unsigned>(most)); }

private:
    std::uint32_t priority() { return static_cast<std::uint32_t>(m_random()) % m_priorities; }

    std::mt19937 m_random;
    int m_tiers;
    std::uint32_t m_priorities;
    int m_count = 0;
    Seconds m_time{0};
    PendingQueue m_queue;
    std::vector<Entry> m_list;
};

TEST(PendingQueue, HasTheOrderOfASortedList)
{
    for (const std::uint32_t priorities : {1U, 50U, 5000U, 0xffffffffU}) {
        for (const int tiers : {1, 3, 40}) {
            QueueAndList both(priorities + static_cast<unsigned>(tiers), tiers, priorities);
            for (int round = 0; round < 300; ++round) {
                for (int i = both.pick(12); i > 0; --i) {
                    both.insert();
                }
                both.remove(both.pick(4) == 0 ? 10'000 : 5);
                if (both.pick(3) == 0) {
                    both.reprioritise(both.pick(2) == 0 ? 2 : 1000);
                }
                both.compare();
            }
        }
    }
}

TEST(PendingQueue, ReusesTheRoomOfThoseThatLeft)
{
    QueueAndList both(1, 1, 100);
    for (int round = 0; round < 3000; ++round) {
        both.insert();
        both.remove(1);
    }
    both.compare();
}

} // namespace
} // namespace gpuq::sim
