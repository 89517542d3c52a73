// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace gpuq::tune {
namespace {

constexpr double k_missed = 100;
constexpr double k_change = 0.01;
constexpr double k_step = 0.001;
constexpr double k_emphasis = 8;
constexpr double k_box = 0.05;
constexpr int k_most_idle_restarts = 20;
constexpr std::size_t k_most_seen = 100; ///< points per evaluation: most were not valid

/// Uniform in [0, below): std::uniform_int_distribution differs between libraries.
std::size_t pick(std::mt19937_64& random, std::size_t below)
{
    return below == 0 ? 0 : static_cast<std::size_t>(random() % below);
}

template <typename T>
void shuffle(std::mt19937_64& random, std::vector<T>& list)
{
    for (std::size_t i = list.size(); i > 1; --i) {
        std::swap(list[i - 1], list[pick(random, i)]);
    }
}

/// One search, with everything that it has evaluated.
class PatternSearch {
public:
    PatternSearch(const Space& space, std::size_t goals, std::uint64_t seed, std::size_t most,
                  const Evaluate& evaluate)
        : m_space(space)
        , m_goals(goals)
        , m_random(seed)
        , m_most(most)
        , m_evaluate(evaluate)
    {
    }

    std::vector<Evaluated> run()
    {
        evaluate_new({m_space.start});
        int idle = 0;
        for (std::size_t round = 0; !m_over && !m_all.empty() && idle < k_most_idle_restarts;
             ++round) {
            const std::size_t before = m_seen.size();
            m_weights = weights_of(round);
            descend(start_of(round));
            idle = m_seen.size() == before ? idle + 1 : 0;
        }
        return std::move(m_all);
    }

private:
    /// All equal first, then with emphasis on one goal after the other, then at random.
    std::vector<double> weights_of(std::size_t round)
    {
        std::vector<double> weights(m_goals, 1);
        if (round >= 1 && round <= m_goals) {
            weights[round - 1] = k_emphasis;
        } else if (round > m_goals) {
            for (double& weight : weights) {
                weight = std::pow(2.0, static_cast<double>(pick(m_random, 7)) - 3);
            }
        }
        return weights;
    }

    /// The start, then in turn the best point so far and one near it with some numbers at random.
    Point start_of(std::size_t round)
    {
        if (round == 0) {
            return m_space.start;
        }
        Point point = best().point;
        if (round % 2 == 0) {
            for (std::size_t i = 0; i < point.size(); ++i) {
                if (pick(m_random, 3) == 0) {
                    point[i] = pick(m_random, m_space.sizes[i]);
                }
            }
        }
        return point;
    }

    double total_of(const Evaluated& one) const { return total(m_space, one, m_weights); }

    const Evaluated& best() const
    {
        return *std::min_element(m_all.begin(), m_all.end(),
                                 [&](const Evaluated& one, const Evaluated& other) {
                                     return total_of(one) < total_of(other);
                                 });
    }

    const Evaluated* found(const Point& point) const
    {
        const auto known = m_seen.find(point);
        return known != m_seen.end() && known->second ? &m_all[*known->second] : nullptr;
    }

    void descend(const Point& from)
    {
        evaluate_new({from});
        const Evaluated* here = found(from);
        if (here == nullptr) {
            return;
        }
        Evaluated now = *here;
        std::size_t step = std::max<std::size_t>(1, largest_size() / 4);
        while (!m_over) {
            if (auto next = better_neighbour(now, step)) {
                now = *std::move(next);
            } else if (step > 1) {
                step /= 2;
            } else {
                return;
            }
        }
    }

    std::size_t largest_size() const
    {
        return m_space.sizes.empty()
                   ? 0
                   : *std::max_element(m_space.sizes.begin(), m_space.sizes.end());
    }

    /// The best point of the first batch that has a better one.
    std::optional<Evaluated> better_neighbour(const Evaluated& now, std::size_t step)
    {
        const std::vector<Point> all = neighbours(now.point, step);
        for (std::size_t begin = 0; begin < all.size() && !m_over; begin += k_batch) {
            const std::size_t end = std::min(begin + k_batch, all.size());
            const std::vector<Point> batch(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                           all.begin() + static_cast<std::ptrdiff_t>(end));
            evaluate_new(batch);
            const Evaluated* winner = nullptr;
            for (const Point& point : batch) {
                const Evaluated* const other = found(point);
                if (other != nullptr && total_of(*other) < total_of(now) &&
                    (winner == nullptr || total_of(*other) < total_of(*winner))) {
                    winner = other;
                }
            }
            if (winner != nullptr) {
                return *winner;
            }
        }
        return std::nullopt;
    }

    /// The point with a number moved, or nothing if that is not possible.
    std::optional<Point> moved(Point point, std::size_t number, bool up, std::size_t step) const
    {
        const std::size_t size = m_space.sizes[number];
        if (up ? point[number] + 1 >= size : point[number] == 0) {
            return std::nullopt;
        }
        point[number] = up ? std::min(point[number] + step, size - 1)
                           : point[number] - std::min(point[number], step);
        return point;
    }

    std::vector<Point> neighbours(const Point& point, std::size_t step)
    {
        std::vector<Point> all;
        const auto add = [&](std::optional<Point> other) {
            if (other && *other != point) {
                all.push_back(*std::move(other));
            }
        };
        for (std::size_t i = 0; i < point.size(); ++i) {
            add(moved(point, i, true, step));
            add(moved(point, i, false, step));
            Point back = point;
            back[i] = m_space.start[i];
            add(std::move(back));
        }
        for (std::size_t pairs = point.size() / 2; pairs > 0; --pairs) {
            const auto first =
                moved(point, pick(m_random, point.size()), pick(m_random, 2) == 0, step);
            if (first) {
                add(moved(*first, pick(m_random, point.size()), pick(m_random, 2) == 0, step));
            }
        }
        shuffle(m_random, all);
        return all;
    }

    /// Evaluates those of the points that are new.
    void evaluate_new(const std::vector<Point>& points)
    {
        std::vector<Point> fresh;
        for (const Point& point : points) {
            const bool twice = std::find(fresh.begin(), fresh.end(), point) != fresh.end();
            if (!m_seen.contains(point) && !twice) {
                fresh.push_back(point);
            }
        }
        if (fresh.size() > m_most - std::min(m_most, m_evaluations)) {
            fresh.resize(m_most - std::min(m_most, m_evaluations));
            m_over = true;
        }
        m_over = m_over || m_seen.size() > k_most_seen * m_most;
        const auto costs = fresh.empty() ? std::vector<std::optional<Costs>>{} : m_evaluate(fresh);
        m_over = m_over || costs.size() < fresh.size();
        for (std::size_t i = 0; i < costs.size(); ++i) {
            if (!costs[i]) {
                m_seen.emplace(fresh[i], std::nullopt);
                continue;
            }
            ++m_evaluations; // one that is not valid costs nothing
            m_seen.emplace(fresh[i], m_all.size());
            m_all.push_back({fresh[i], *costs[i]});
        }
    }

    const Space& m_space;
    std::size_t m_goals;
    std::mt19937_64 m_random;
    std::size_t m_most;
    const Evaluate& m_evaluate;
    std::vector<double> m_weights;
    std::vector<Evaluated> m_all;
    std::map<Point, std::optional<std::size_t>> m_seen; ///< index in m_all; nullopt: not valid
    std::size_t m_evaluations = 0;
    bool m_over = false;
};

using Box = std::vector<long>;

Box box_of(const Costs& costs)
{
    Box box;
    for (const double cost : costs) {
        box.push_back(std::lround(std::floor(cost / k_box)));
    }
    return box;
}

/// No worse in any goal. Equal boxes dominate each other.
bool dominates(const Box& one, const Box& other)
{
    return std::equal(one.begin(), one.end(), other.begin(), [](long a, long b) { return a <= b; });
}

} // namespace

std::size_t changes_in(const Space& space, const Point& point)
{
    std::size_t changes = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
        changes += point[i] != space.start[i] ? 1 : 0;
    }
    return changes;
}

double total(const Space& space, const Evaluated& one, const std::vector<double>& weights)
{
    double sum = k_change * static_cast<double>(changes_in(space, one.point));
    for (std::size_t i = 0; i < one.point.size(); ++i) {
        sum += k_step *
               std::abs(static_cast<double>(one.point[i]) - static_cast<double>(space.start[i]));
    }
    for (std::size_t i = 0; i < one.costs.size(); ++i) {
        sum += (weights.empty() ? 1.0 : weights[i]) * one.costs[i] +
               k_missed * std::max(0.0, one.costs[i]);
    }
    return sum;
}

std::vector<Evaluated> search(const Space& space, std::size_t goals, std::uint64_t seed,
                              std::size_t most, const Evaluate& evaluate)
{
    return PatternSearch(space, goals, seed, most, evaluate).run();
}

std::vector<Evaluated> front_of(const Space& space, const std::vector<Evaluated>& all,
                                std::size_t most)
{
    std::vector<Evaluated> sorted = all;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const Evaluated& one, const Evaluated& other) {
                         return total(space, one) < total(space, other);
                     });
    std::vector<Box> boxes;
    for (const Evaluated& one : sorted) {
        boxes.push_back(box_of(one.costs));
    }
    std::vector<Evaluated> front;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const Box& box = boxes[i];
        const bool worse = std::any_of(boxes.begin(), boxes.end(), [&](const Box& other) {
            return other != box && dominates(other, box);
        });
        const auto here = boxes.begin() + static_cast<std::ptrdiff_t>(i);
        if (!worse && std::find(boxes.begin(), here, box) == here) {
            front.push_back(sorted[i]);
        }
    }
    std::erase_if(front, [&](const Evaluated& one) { return one.point == space.start; });
    // The first, and of the others those that are spread evenly.
    if (front.size() > most) {
        std::sort(front.begin() + 1, front.end(), [](const Evaluated& one, const Evaluated& other) {
            return one.costs < other.costs;
        });
        std::vector<Evaluated> spread{front.front()};
        for (std::size_t i = 1; i < most; ++i) {
            const std::size_t place =
                1 + (i - 1) * (front.size() - 2) / std::max<std::size_t>(1, most - 2);
            spread.push_back(front[std::min(place, front.size() - 1)]);
        }
        front = std::move(spread);
    }
    return front;
}

} // namespace gpuq::tune
