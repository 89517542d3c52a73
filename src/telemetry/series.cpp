// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/series.h"

#include "core/lower_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

namespace gpuq::telemetry {
namespace {

bool is_of_validation(std::string_view tag)
{
    constexpr std::array<std::string_view, 4> k_keywords{"val", "eval", "test", "dev"};
    return std::ranges::any_of(k_keywords, [&](std::string_view word) {
        return tag.starts_with(word) || tag.find("/" + std::string(word)) != tag.npos ||
               tag.find("_" + std::string(word)) != tag.npos;
    });
}

} // namespace

void Series::add(const Point& point)
{
    ++m_points;
    const bool goes_back = m_last && point.step < m_last->step;
    m_restarts += goes_back ? 1 : 0;
    m_gap = m_gap || goes_back;
    if (!m_first) {
        m_first = point;
    }
    m_last = point;
    if (m_recent.size() == 2 * k_most_recent) {
        m_recent.erase(m_recent.begin(), m_recent.begin() + k_most_recent);
    }
    m_recent.push_back(point);
    if (std::isfinite(point.value)) {
        m_not_finite_since.reset();
        into_bucket(point, std::exchange(m_gap, false));
        return;
    }
    m_gap = true;
    m_not_finite_since = m_not_finite_since ? m_not_finite_since : point;
}

void Series::add(const Series& later)
{
    const std::uint64_t points = m_points + later.m_points;
    for (const Bucket& bucket : later.m_buckets) {
        const bool falls = bucket.high.step < bucket.low.step;
        m_gap = m_gap || bucket.gap_before;
        add(falls ? bucket.high : bucket.low);
        if (bucket.low.step != bucket.high.step) {
            add(falls ? bucket.low : bucket.high);
        }
    }
    for (const auto& point : {later.m_not_finite_since, later.m_last}) {
        if (point && (!m_last || m_last->step != point->step)) {
            add(*point);
        }
    }
    m_points = points;
}

void Series::into_bucket(const Point& point, bool gap_before)
{
    const bool fits = !m_buckets.empty() && !gap_before && m_buckets.back().points < m_per_bucket;
    if (!fits) {
        if (m_buckets.size() == k_most_buckets) {
            merge_buckets();
        }
        m_buckets.push_back({point, point, 1, gap_before});
        return;
    }
    Bucket& bucket = m_buckets.back();
    ++bucket.points;
    if (point.value < bucket.low.value) {
        bucket.low = point;
    }
    if (point.value >= bucket.high.value) {
        bucket.high = point;
    }
}

/// Merges each bucket with its neighbour, but not across a gap unless that frees too few buckets.
void Series::merge_buckets()
{
    for (const bool over_gaps : {false, true}) {
        std::vector<Bucket> merged;
        merged.reserve(k_most_buckets);
        bool is_open = false;
        for (const Bucket& bucket : m_buckets) {
            if (!is_open || (bucket.gap_before && !over_gaps)) {
                merged.push_back(bucket);
                is_open = true;
                continue;
            }
            Bucket& into = merged.back();
            into.low = bucket.low.value < into.low.value ? bucket.low : into.low;
            into.high = bucket.high.value >= into.high.value ? bucket.high : into.high;
            into.points += bucket.points;
            into.gap_before = into.gap_before || bucket.gap_before;
            is_open = false;
        }
        m_buckets = std::move(merged);
        if (m_buckets.size() <= k_most_buckets * 3 / 4) {
            break;
        }
    }
    m_per_bucket *= 2;
}

void Curves::add(std::string_view tag, const Point& point)
{
    auto found = m_by_tag.find(tag);
    if (found == m_by_tag.end()) {
        if (m_by_tag.size() == k_most_tags || tag.size() > k_longest_tag) {
            ++m_left_out;
            return;
        }
        found = m_by_tag.emplace(std::string(tag), Series()).first;
    }
    found->second.add(point);
}

void Curves::add(const Curves& later)
{
    for (const auto& [tag, series] : later.m_by_tag) {
        add(tag, series);
    }
    m_left_out += later.m_left_out;
}

void Curves::add(std::string_view tag, const Series& series)
{
    if (const auto found = m_by_tag.find(tag); found != m_by_tag.end()) {
        found->second.add(series);
        return;
    }
    if (m_by_tag.size() == k_most_tags || tag.size() > k_longest_tag) {
        m_left_out += series.points();
        return;
    }
    m_by_tag.emplace(std::string(tag), series);
}

const Series* Curves::find(std::string_view tag) const
{
    const auto found = m_by_tag.find(tag);
    return found == m_by_tag.end() ? nullptr : &found->second;
}

bool is_loss(std::string_view tag)
{
    return lower_case(tag).find("loss") != std::string::npos;
}

const std::pair<const std::string, Series>* main_loss(const Curves& curves)
{
    constexpr std::array<std::string_view, 3> k_first{"loss", "train/loss", "train_loss"};
    const auto rank = [&](std::string_view tag) {
        const std::string lower = lower_case(tag);
        const auto first = std::ranges::find(k_first, lower) - k_first.begin();
        return std::tuple(first, is_of_validation(lower), tag.size(), tag);
    };
    const std::pair<const std::string, Series>* best = nullptr;
    for (const auto& one : curves.by_tag()) {
        if (is_loss(one.first) && (best == nullptr || rank(one.first) < rank(best->first))) {
            best = &one;
        }
    }
    return best;
}

} // namespace gpuq::telemetry
