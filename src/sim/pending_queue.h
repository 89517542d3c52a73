// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sim/machine.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuq::sim {

/// A pending link in one of its partitions, as an entry of the scheduler's queue.
struct Entry {
    int tier = 0;
    std::uint32_t priority = 0;
    Seconds submit{0};
    std::uint64_t id = 0;
    std::uint32_t link = 0;
    std::uint32_t shape = 0;
    int position = 0; ///< in the job's list of partitions
    int partition = 0;
    int share = 0;     ///< index of its user in FairShare
    int qos = -1;      ///< the job's own; -1: none
    bool aged = false; ///< has reached the maximum age
};

/// The order in which both schedulers process the queue: tier, priority, submission, id, position
/// in the job's list.
bool goes_before(const Entry& a, const Entry& b);

/// The entries in the order of goes_before(). An insertion, and a removal near the head, move a few
/// bytes for each entry on one side of it. After a change of priorities the order is computed
/// digit by digit from the order of submissions, which stays the same.
class PendingQueue {
public:
    bool empty() const { return size() == 0; }
    std::size_t size() const { return m_order.size() - m_head; }
    /// The entry at a place, 0 to size() - 1.
    const Entry& operator[](std::size_t place) const { return m_entries[m_order[m_head + place]]; }

    void insert(const Entry& entry);

    /// The first place, at or after `place`, with a tier below `tier`.
    std::size_t end_of_tier(std::size_t place, int tier) const;

    /// Removes the entries for which `is_gone` is true. Costs little if they are near the head:
    /// those behind `last` are not considered.
    template <typename IsGone>
    void remove(std::size_t last, IsGone is_gone)
    {
        const auto begin = m_order.begin() + static_cast<std::ptrdiff_t>(m_head);
        auto kept = begin + static_cast<std::ptrdiff_t>(last + 1);
        for (auto each = kept; each != begin;) {
            --each;
            if (is_gone(m_entries[*each])) {
                m_alive[*each] = false;
            } else {
                *--kept = *each;
            }
        }
        m_head = static_cast<std::size_t>(kept - m_order.begin());
    }
    /// The place of an entry that is in the queue.
    std::size_t place_of(const Entry& entry) const;

    /// Calls `change` for each entry, in the order of submissions. It may set the entry's priority,
    /// and returns whether it did. Returns whether the order of the entries has changed.
    template <typename Change>
    bool reprioritise(Change change)
    {
        compact();
        bool changed = false;
        for (const std::uint32_t index : m_by_submission) {
            changed = change(m_entries[index]) || changed;
        }
        return changed && sort();
    }

private:
    struct Keyed {
        std::uint32_t key;
        std::uint32_t index;
    };
    void compact();
    bool sort();
    template <typename DigitOf>
    void distribute(std::size_t digits, DigitOf digit_of);

    std::vector<Entry> m_entries;
    std::vector<bool> m_alive;           ///< by index; entries that were removed are dropped later
    std::vector<std::uint32_t> m_unused; ///< indexes
    std::vector<std::uint32_t> m_by_submission; ///< with some that were removed
    std::vector<std::uint32_t> m_order;         ///< from m_head on: in the order of the queue
    std::size_t m_head = 0;
    // Working space of sort():
    std::vector<Keyed> m_keyed;
    std::vector<Keyed> m_sorted;
    std::vector<std::uint32_t> m_places; ///< by digit
};

} // namespace gpuq::sim
