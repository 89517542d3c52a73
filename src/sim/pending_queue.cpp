// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/pending_queue.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace gpuq::sim {
namespace {

auto submission(const Entry& entry)
{
    return std::tie(entry.submit, entry.id, entry.position);
}

} // namespace

bool goes_before(const Entry& a, const Entry& b)
{
    return std::tie(b.tier, b.priority, a.submit, a.id, a.position) <
           std::tie(a.tier, a.priority, b.submit, b.id, b.position);
}

void PendingQueue::insert(const Entry& entry)
{
    if (m_by_submission.size() > 2 * size() + 1000) {
        compact();
    }
    if (m_unused.empty()) {
        m_unused.push_back(static_cast<std::uint32_t>(m_entries.size()));
        m_entries.emplace_back();
        m_alive.push_back(false);
    }
    const std::uint32_t index = m_unused.back();
    m_unused.pop_back();
    m_entries[index] = entry;
    m_alive[index] = true;
    m_by_submission.insert(std::upper_bound(m_by_submission.begin(), m_by_submission.end(), index,
                                            [&](std::uint32_t a, std::uint32_t b) {
                                                return submission(m_entries[a]) <
                                                       submission(m_entries[b]);
                                            }),
                           index);
    const auto head = m_order.begin() + static_cast<std::ptrdiff_t>(m_head);
    const auto place =
        std::upper_bound(head, m_order.end(), index, [&](std::uint32_t a, std::uint32_t b) {
            return goes_before(m_entries[a], m_entries[b]);
        });
    if (m_head > 0 && place - head < m_order.end() - place) {
        std::move(head, place, head - 1);
        *(place - 1) = index;
        --m_head;
    } else {
        m_order.insert(place, index);
    }
}

std::size_t PendingQueue::end_of_tier(std::size_t place, int tier) const
{
    const auto head = m_order.begin() + static_cast<std::ptrdiff_t>(m_head);
    const auto end =
        std::partition_point(head + static_cast<std::ptrdiff_t>(place), m_order.end(),
                             [&](std::uint32_t index) { return m_entries[index].tier >= tier; });
    return static_cast<std::size_t>(end - head);
}

std::size_t PendingQueue::place_of(const Entry& entry) const
{
    const auto head = m_order.begin() + static_cast<std::ptrdiff_t>(m_head);
    auto place =
        std::lower_bound(head, m_order.end(), entry, [&](std::uint32_t index, const Entry& other) {
            return goes_before(m_entries[index], other);
        });
    while (m_entries[*place].link != entry.link) {
        ++place;
    }
    return static_cast<std::size_t>(place - head);
}

/// Drops the removed entries.
void PendingQueue::compact()
{
    if (m_by_submission.size() == size()) {
        return;
    }
    std::erase_if(m_by_submission, [&](std::uint32_t index) {
        if (!m_alive[index]) {
            m_unused.push_back(index);
        }
        return !m_alive[index];
    });
}

/// A step of sort().
template <typename DigitOf>
void PendingQueue::distribute(std::size_t digits, DigitOf digit_of)
{
    m_places.assign(digits, 0);
    for (const Keyed& each : m_keyed) {
        ++m_places[digit_of(each)];
    }
    std::uint32_t begin = 0;
    for (std::uint32_t& place : m_places) {
        begin += std::exchange(place, begin);
    }
    m_sorted.resize(m_keyed.size());
    for (const Keyed& each : m_keyed) {
        m_sorted[m_places[digit_of(each)]++] = each;
    }
    m_keyed.swap(m_sorted);
}

/// Sorts by the digits of priority and by tier, the last digit first; each step keeps the order of
/// equal ones, at first that of submissions. Returns whether the order has changed.
bool PendingQueue::sort()
{
    constexpr int k_bits = 11;
    constexpr std::uint32_t k_digits = 1U << k_bits;
    std::uint32_t most = 0;
    std::vector<int> tiers; // the highest first
    for (const std::uint32_t index : m_by_submission) {
        const Entry& entry = m_entries[index];
        most = std::max(most, entry.priority);
        const auto place =
            std::lower_bound(tiers.begin(), tiers.end(), entry.tier, std::greater<>());
        if (place == tiers.end() || *place != entry.tier) {
            tiers.insert(place, entry.tier);
        }
    }
    m_keyed.clear();
    std::uint32_t highest = 0;
    for (const std::uint32_t index : m_by_submission) {
        m_keyed.push_back({most - m_entries[index].priority, index});
        highest = std::max(highest, m_keyed.back().key);
    }
    for (int shift = 0; shift < 32 && highest >> shift != 0; shift += k_bits) {
        distribute(k_digits, [&](const Keyed& each) { return each.key >> shift & (k_digits - 1); });
    }
    if (tiers.size() > 1) {
        distribute(tiers.size(), [&](const Keyed& each) {
            return static_cast<std::size_t>(std::lower_bound(tiers.begin(), tiers.end(),
                                                             m_entries[each.index].tier,
                                                             std::greater<>()) -
                                            tiers.begin());
        });
    }
    bool changed = false;
    for (std::size_t i = 0; i < m_keyed.size(); ++i) {
        changed = changed || m_order[m_head + i] != m_keyed[i].index;
        m_order[m_head + i] = m_keyed[i].index;
    }
    return changed;
}

} // namespace gpuq::sim
