// SPDX-License-Identifier: GPL-2.0-or-later
#include "telemetry/pace.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace gpuq::telemetry {
namespace {

/// The newest points with a time whose steps only increase.
std::vector<Point> since_it_began(const Series& series)
{
    std::vector<Point> points;
    for (const Point& point : series.recent()) {
        if (!points.empty() &&
            (!point.at || point.step < points.back().step || *point.at < *points.back().at)) {
            points.clear();
        }
        if (point.at && (points.empty() || point.step > points.back().step)) {
            points.push_back(point);
        }
    }
    return points;
}

} // namespace

std::optional<double> steps_per_second(const Series& series)
{
    const auto points = since_it_began(series);
    if (points.size() < 2 || *points.back().at <= *points.front().at) {
        return std::nullopt;
    }
    const double steps =
        static_cast<double>(points.back().step) - static_cast<double>(points.front().step);
    return steps / std::chrono::duration<double>(*points.back().at - *points.front().at).count();
}

std::optional<std::chrono::milliseconds> usual_interval(const Series& series)
{
    const auto points = since_it_began(series);
    if (points.size() < 3) {
        return std::nullopt;
    }
    std::vector<std::chrono::microseconds> intervals;
    std::transform(
        std::next(points.begin()), points.end(), points.begin(), std::back_inserter(intervals),
        [](const Point& later, const Point& earlier) { return *later.at - *earlier.at; });
    const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
    std::nth_element(intervals.begin(), middle, intervals.end());
    return std::chrono::ceil<std::chrono::milliseconds>(*middle);
}

bool is_stall(std::chrono::milliseconds silence, std::chrono::milliseconds usual)
{
    constexpr std::chrono::minutes k_least{5};
    return silence > k_least && silence > 20 * usual;
}

} // namespace gpuq::telemetry
