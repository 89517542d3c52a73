// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/curves.h"

#include <algorithm>

namespace gpuq::sim {
namespace {

/// Averages over time of amounts that each last from one time to another.
class Averages {
public:
    Averages(Seconds end, Seconds part)
        : m_end(end)
        , m_part(part)
        , m_sums(static_cast<std::size_t>((end + part - Seconds{1}) / part))
        , m_steps(m_sums.size() + 1)
    {
    }

    void add(Seconds from, Seconds to, double amount)
    {
        from = std::clamp(from, Seconds{0}, m_end);
        to = std::clamp(to, from, m_end);
        add_until(to, amount);
        add_until(from, -amount);
    }

    std::vector<double> values() const
    {
        std::vector<double> values;
        double level = 0;
        for (std::size_t i = 0; i < m_sums.size(); ++i) {
            // An amount that lasts beyond this part counts for the entire part.
            const Seconds begin = m_part * static_cast<std::int64_t>(i);
            const Seconds width = std::min(m_part, m_end - begin);
            level += m_steps[i];
            values.push_back((m_sums[i] + level * count(width)) / count(width));
        }
        return values;
    }

private:
    static double count(Seconds seconds) { return static_cast<double>(seconds.count()); }

    /// Adds the amount from time 0 on: entire parts as a step, the rest to the sum of its part.
    void add_until(Seconds to, double amount)
    {
        const auto whole = static_cast<std::size_t>(to / m_part);
        m_steps.front() += amount;
        m_steps[std::min(whole, m_sums.size())] -= amount;
        if (whole < m_sums.size()) {
            m_sums[whole] += amount * count(to % m_part);
        }
    }

    Seconds m_end;
    Seconds m_part;
    std::vector<double> m_sums;
    std::vector<double> m_steps;
};

double gpus_of(const Machine& machine, const Piece& piece)
{
    double gpus = 0;
    for (std::size_t i = 0; i < piece.nodes.size(); ++i) {
        gpus += gpus_on(machine, piece, i);
    }
    return gpus;
}

} // namespace

Curves curves(const Machine& machine, const std::vector<Job>& jobs, const Course& course,
              Seconds end, Seconds part, const Targets& targets)
{
    Curves result;
    result.part = part;
    for (const Node& node : machine.nodes) {
        result.gpus += node.gpus;
    }
    Averages waiting(end, part);
    Averages used(end, part);
    for (const Piece& piece : course.pieces) {
        waiting.add(piece.eligible, piece.start, 1);
        used.add(piece.start, piece.end, gpus_of(machine, piece));
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Outcome& outcome = course.outcomes[i];
        if (outcome.links > 0 && jobs[i].duration <= targets.short_run) {
            result.short_waits.push_back(outcome.start - jobs[i].submit);
        } else if (outcome.links == 0 && outcome.ending == Ending::waiting) {
            waiting.add(jobs[i].submit, end, 1);
        }
    }
    std::sort(result.short_waits.begin(), result.short_waits.end());
    result.waiting = waiting.values();
    result.used = used.values();
    return result;
}

double share_within(const std::vector<Seconds>& waits, Seconds wait)
{
    const auto beyond = std::upper_bound(waits.begin(), waits.end(), wait);
    return waits.empty()
               ? 1
               : static_cast<double>(beyond - waits.begin()) / static_cast<double>(waits.size());
}

Seconds part_for(Seconds span)
{
    using namespace std::chrono_literals;
    constexpr int k_most = 100;
    for (const Seconds part : {Seconds{10min}, Seconds{1h}, Seconds{6h}, Seconds{24h}}) {
        if (span <= part * k_most) {
            return part;
        }
    }
    constexpr Seconds k_week = 7 * 24h;
    return k_week * ((span + k_week * k_most - Seconds{1}) / (k_week * k_most));
}

} // namespace gpuq::sim
