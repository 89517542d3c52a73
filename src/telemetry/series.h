// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a training measures of itself, step by step: a loss, a learning rate. Pure.
namespace gpuq::telemetry {

struct Point {
    std::int64_t step = 0;
    std::optional<Time> at; ///< when it was measured; not every source says
    double value = 0;
    bool operator==(const Point&) const = default;
};

/// The points of one tag in bounded memory, however many there are: a bucket holds the lowest and
/// the highest of points that follow each other, and when there are too many buckets each takes
/// twice as many points. So a spike of one step is never lost.
class Series {
public:
    static constexpr std::size_t k_most_buckets = 4096;
    static constexpr std::size_t k_most_recent = 64;

    struct Bucket {
        Point low, high;
        std::uint64_t points = 0;
        /// The step went back before it: a program that began again from a checkpoint; or there
        /// were values that are not finite. A curve has a gap there.
        bool gap_before = false;
    };

    /// A value that is not finite is in no bucket; it is told by not_finite_since().
    void add(const Point& point);

    /// In the order of their coming.
    const std::vector<Bucket>& buckets() const { return m_buckets; }
    /// The newest points one by one, the oldest first.
    const std::vector<Point>& recent() const { return m_recent; }
    const std::optional<Point>& first() const { return m_first; }
    const std::optional<Point>& last() const { return m_last; }
    std::uint64_t points() const { return m_points; }
    /// How often the step went back.
    std::uint64_t restarts() const { return m_restarts; }
    /// The first of the NaN and infinite values that the series ends with.
    const std::optional<Point>& not_finite_since() const { return m_not_finite_since; }

private:
    void into_bucket(const Point& point, bool gap_before);
    void merge_buckets();

    std::vector<Bucket> m_buckets;
    std::vector<Point> m_recent;
    std::optional<Point> m_first, m_last, m_not_finite_since;
    std::uint64_t m_points = 0;
    std::uint64_t m_restarts = 0;
    std::uint64_t m_per_bucket = 1;
    bool m_gap = false; ///< before the next bucket
};

/// The series of a training by tag. Tags come from outside: they are sanitised where they are
/// shown.
class Curves {
public:
    static constexpr std::size_t k_most_tags = 128;
    static constexpr std::size_t k_longest_tag = 256;

    /// A tag that is too long, or one too many, is left out and counted.
    void add(std::string_view tag, const Point& point);
    /// A whole series, under a tag that has none.
    void add(std::string_view tag, const Series& series);

    const std::map<std::string, Series, std::less<>>& by_tag() const { return m_by_tag; }
    const Series* find(std::string_view tag) const;
    /// Points of tags that had no room.
    std::uint64_t left_out() const { return m_left_out; }

private:
    std::map<std::string, Series, std::less<>> m_by_tag;
    std::uint64_t m_left_out = 0;
};

/// The word is in it, in whatever letters: `Loss`, `val_loss`.
bool is_loss(std::string_view tag);

/// The tag that people mean by "the loss": `loss`, `train/loss`, `train_loss`, else the shortest
/// one with the word in it, the training's before a validation's. Nothing when there is none.
const std::pair<const std::string, Series>* main_loss(const Curves& curves);

} // namespace gpuq::telemetry
