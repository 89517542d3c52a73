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

/// The values that a training reports step by step: a loss, a learning rate. Pure.
namespace gpuq::telemetry {

struct Point {
    std::int64_t step = 0;
    std::optional<Time> at; ///< when it was measured; unset if the source has no times
    double value = 0;
    bool operator==(const Point&) const = default;
};

/// The points of one tag in bounded memory, for any number of points: a bucket holds the lowest and
/// the highest of consecutive points. When there are too many buckets, each takes twice as many
/// points. A spike of a single step is thus never lost.
class Series {
public:
    static constexpr std::size_t k_most_buckets = 4096;
    static constexpr std::size_t k_most_recent = 64;

    struct Bucket {
        Point low, high;
        std::uint64_t points = 0;
        /// Before it, the step decreased, because a program restarted from a checkpoint, or values
        /// were not finite. A curve has a gap at this place.
        bool gap_before = false;
    };

    /// A value that is not finite is in no bucket; not_finite_since() reports it.
    void add(const Point& point);
    /// Adds a later series; of its points, those that are in its buckets and the last one.
    void add(const Series& later);

    /// In the order in which the points were added.
    const std::vector<Bucket>& buckets() const { return m_buckets; }
    /// The newest points individually, oldest first.
    const std::vector<Point>& recent() const { return m_recent; }
    const std::optional<Point>& first() const { return m_first; }
    const std::optional<Point>& last() const { return m_last; }
    std::uint64_t points() const { return m_points; }
    /// The number of times that the step decreased.
    std::uint64_t restarts() const { return m_restarts; }
    /// The first of the NaN and infinite values at the end of the series.
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

/// The series of a training by tag. Tags are untrusted: they are sanitised when displayed.
class Curves {
public:
    static constexpr std::size_t k_most_tags = 128;
    static constexpr std::size_t k_longest_tag = 256;

    /// A tag that is too long, or exceeds the maximum number of tags, is ignored and counted.
    void add(std::string_view tag, const Point& point);
    /// Adds a whole series: under a new tag, or after the points that its tag has.
    void add(std::string_view tag, const Series& series);
    /// Adds all series of later ones likewise.
    void add(const Curves& later);

    const std::map<std::string, Series, std::less<>>& by_tag() const { return m_by_tag; }
    const Series* find(std::string_view tag) const;
    /// The number of points of ignored tags.
    std::uint64_t left_out() const { return m_left_out; }

private:
    std::map<std::string, Series, std::less<>> m_by_tag;
    std::uint64_t m_left_out = 0;
};

/// True if the tag contains "loss", ignoring case: `Loss`, `val_loss`.
bool is_loss(std::string_view tag);

/// The main loss: the tag `loss`, `train/loss` or `train_loss`, else the shortest one that contains
/// "loss", the training's before a validation's. Null if there is none.
const std::pair<const std::string, Series>* main_loss(const Curves& curves);

} // namespace gpuq::telemetry
