// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/tuning.h"

#include "core/fnv.h"
#include "core/number.h"
#include "policy/read.h"
#include "tune/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>

namespace gpuq::tune {
namespace {

constexpr std::size_t k_most_choices = 5;
constexpr double k_least_gain = 0.02; ///< of the first choice over the policy as it is
constexpr std::string_view k_never_text = "never";
constexpr int k_hexadecimal = 16;
constexpr std::size_t k_hash_digits = 16;

/// Evaluates the points of a search.
class Evaluator {
public:
    Evaluator(const Problem& problem, const Known& known, const Effort& effort)
        : m_problem(problem)
        , m_known(known)
        , m_effort(effort)
        , m_progress{0, effort.most, std::nullopt}
    {
    }

    bool is_over() const { return m_over; }
    std::size_t simulations() const { return m_progress.simulations; }
    const std::vector<Seconds>& waits_of(const Point& point) const { return m_waits.at(point); }

    std::vector<std::optional<Costs>> evaluate(const std::vector<Point>& points)
    {
        std::vector<Work> batch;
        for (const Point& point : points) {
            const auto trial = trial_of(m_problem, point);
            const std::uint64_t hash = trial ? policy_hash(trial->text) : 0;
            auto waits = trial ? known_waits(*trial, hash) : std::nullopt;
            const bool is_done = !trial || waits;
            batch.push_back({trial, hash, std::move(waits), is_done});
        }
        simulate(batch);
        std::vector<std::optional<Costs>> costs;
        for (std::size_t i = 0; i < batch.size() && batch[i].is_done; ++i) {
            costs.push_back(taken(points[i], batch[i]));
        }
        return costs;
    }

private:
    struct Work {
        std::optional<Trial> trial;
        std::uint64_t hash = 0;
        std::optional<std::vector<Seconds>> waits;
        bool is_done = false;
        bool is_new = false;
    };

    std::optional<std::vector<Seconds>> known_waits(const Trial& trial, std::uint64_t hash) const
    {
        if (trial.changes.empty()) {
            return m_problem.searched.waits;
        }
        const auto known = m_known.find(hash);
        return known != m_known.end() && known->second.size() == m_problem.goals.size()
                   ? std::optional(known->second)
                   : std::nullopt;
    }

    void simulate(std::vector<Work>& batch)
    {
        std::vector<Work*> todo;
        for (Work& work : batch) {
            if (!work.is_done) {
                todo.push_back(&work);
            }
        }
        watch();
        in_parallel(
            todo.size(),
            [&](std::size_t i) {
                if (m_over) {
                    return;
                }
                auto waits = waits_under(m_problem, todo[i]->trial->text, m_problem.weeks.searched,
                                         m_problem.searched);
                todo[i]->is_done = true;
                todo[i]->is_new = waits.has_value();
                todo[i]->waits = waits ? std::optional(*std::move(waits)) : std::nullopt;
            },
            [this] { watch(); });
    }

    std::optional<Costs> taken(const Point& point, const Work& work)
    {
        if (!work.waits) {
            return std::nullopt;
        }
        if (work.is_new && m_effort.record) {
            m_effort.record(work.hash, *work.waits);
        }
        m_waits[point] = *work.waits;
        ++m_progress.simulations;
        const Costs costs = costs_of(m_problem, *work.waits, m_problem.searched);
        const double sum = total(m_problem.numbers.space(), {point, costs});
        if (!m_progress.best || sum < m_best) {
            m_best = sum;
            m_progress.best = *work.waits;
        }
        return costs;
    }

    void watch()
    {
        m_over = m_over || (m_effort.is_over && m_effort.is_over());
        if (m_effort.show) {
            m_effort.show(m_progress);
        }
    }

    const Problem& m_problem;
    const Known& m_known;
    const Effort& m_effort;
    Progress m_progress;
    double m_best = 0;
    std::map<Point, std::vector<Seconds>> m_waits;
    std::atomic<bool> m_over = false;
};

/// By goal, the weeks of the period in which it is held.
std::vector<int> held_weeks(const Problem& problem, const Observed& observed)
{
    const Period& period = problem.weeks.unseen;
    std::vector<int> held;
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        const Group& group = problem.groups[problem.group_of[i]];
        int count = 0;
        for (int week = period.first; week <= period.last; ++week) {
            const Seconds wait =
                wait_of(problem.goals[i], group, observed, k_week * (week - 1), k_week * week);
            count += wait <= problem.unseen.limits[i] ? 1 : 0;
        }
        held.push_back(count);
    }
    return held;
}

/// Adds the waits in the weeks that the search did not see.
Result<void> check_unseen(const Problem& problem, Choice& choice)
{
    const Period& period = problem.weeks.unseen;
    TRY_ASSIGN(policy::Reading reading, policy::read_policy(choice.text, problem.file.name));
    const policy::Rules rules(std::move(reading.policy));
    TRY_ASSIGN(const Observed observed, observe(rules, period, problem.user_model));
    choice.held = held_weeks(problem, observed);
    const bool serves = observed.unserved <= problem.unseen.unserved;
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        const Group& group = problem.groups[problem.group_of[i]];
        choice.unseen.push_back(
            serves ? wait_of(problem.goals[i], group, observed, period.begin(), period.end())
                   : k_never);
        const bool misses = choice.unseen[i] > problem.unseen.limits[i];
        if (misses && choice.unseen[i] > problem.unseen.waits[i]) {
            choice.worse.push_back(i);
        }
    }
    return {};
}

Result<std::vector<Choice>> choices_of(const Problem& problem, const std::vector<Evaluated>& front,
                                       const Evaluator& evaluator)
{
    std::vector<Choice> choices(front.size());
    std::vector<std::optional<Error>> errors(front.size());
    for (std::size_t i = 0; i < front.size(); ++i) {
        auto trial = trial_of(problem, front[i].point);
        if (!trial) {
            return fail(Error::Kind::internal, "a choice of the search is not valid");
        }
        choices[i].text = std::move(trial->text);
        choices[i].changes = std::move(trial->changes);
        choices[i].searched = evaluator.waits_of(front[i].point);
    }
    in_parallel(
        front.size(),
        [&](std::size_t i) {
            if (auto checked = check_unseen(problem, choices[i]); !checked) {
                errors[i] = std::move(checked).error();
            }
        },
        [] {});
    for (std::optional<Error>& error : errors) {
        if (error) {
            return *std::move(error);
        }
    }
    return choices;
}

std::uint64_t mixed(std::uint64_t hash, std::string_view text)
{
    return fnv1a(fmt::format("{:x} {}", hash, text));
}

} // namespace

std::uint64_t policy_hash(std::string_view text)
{
    return fnv1a(text);
}

std::uint64_t problem_hash(const Problem& problem, const Jobs& jobs)
{
    std::uint64_t hash = fnv1a(GPUQ_VERSION);
    for (const sim::TraceJob& job : jobs.trace.jobs) {
        hash = mixed(hash, fmt::format("{} {} {} {} {} {} {} {}", job.submit.count(),
                                       job.duration.count(), job.gpus, job.nodes,
                                       job.limit.value_or(Seconds{-1}).count(), job.user,
                                       job.account, job.partition));
    }
    hash =
        mixed(hash, fmt::format("{} {} {}", static_cast<int>(jobs.user_model.declared),
                                jobs.user_model.checkpointed_percent, problem.weeks.searched.last));
    const sim::TraceClock& clock = jobs.trace.clock;
    hash = mixed(hash, fmt::format("{} {}", clock.wall.time_since_epoch().count(),
                                   clock.instant.has_value()));
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        hash = mixed(hash, fmt::format("{} {}", to_text(problem.goals[i]),
                                       problem.searched.limits[i].count()));
    }
    // Groups and the allowed number of unserved runs follow from the file.
    return mixed(hash, problem.file.text);
}

std::string record_of(std::uint64_t hash, const std::vector<Seconds>& waits)
{
    std::string line = fmt::format("{:016x}", hash);
    for (const Seconds wait : waits) {
        line +=
            wait == k_never ? fmt::format(" {}", k_never_text) : fmt::format(" {}", wait.count());
    }
    return line;
}

std::optional<Known::value_type> parse_record(std::string_view line)
{
    std::uint64_t hash = 0;
    const std::string_view digits = line.substr(0, k_hash_digits);
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), hash, k_hexadecimal);
    if (digits.size() < k_hash_digits || error != std::errc{} ||
        rest != digits.data() + digits.size()) {
        return std::nullopt;
    }
    std::vector<Seconds> waits;
    for (line.remove_prefix(k_hash_digits); !line.empty();) {
        if (line.front() != ' ') {
            return std::nullopt;
        }
        line.remove_prefix(1);
        const std::string_view word = line.substr(0, line.find(' '));
        const auto number = whole_number(word);
        constexpr std::uint64_t k_longest = 1'000'000'000'000;
        if (word != k_never_text && (!number || *number > k_longest)) {
            return std::nullopt;
        }
        waits.push_back(number ? Seconds{static_cast<std::int64_t>(*number)} : k_never);
        line.remove_prefix(word.size());
    }
    return Known::value_type{hash, std::move(waits)};
}

Result<Tuning> tune(const Problem& problem, const Known& known, const Effort& effort)
{
    const Space space = problem.numbers.space();
    Evaluator evaluator(problem, known, effort);
    const std::vector<Evaluated> all =
        search(space, problem.goals.size(), effort.seed, effort.most,
               [&](const std::vector<Point>& points) { return evaluator.evaluate(points); });
    const std::vector<Evaluated> front = front_of(space, all, k_most_choices);
    Tuning tuning;
    TRY_ASSIGN(tuning.choices, choices_of(problem, front, evaluator));
    tuning.simulations = evaluator.simulations();
    tuning.interrupted = evaluator.is_over();
    Choice as_it_is{problem.file.text, {}, {}, {}, {}, {}};
    TRY(check_unseen(problem, as_it_is));
    tuning.held = std::move(as_it_is.held);
    const Evaluated start{space.start, costs_of(problem, problem.searched.waits, problem.searched)};
    tuning.is_better =
        !front.empty() && total(space, front.front()) < total(space, start) - k_least_gain;
    return tuning;
}

} // namespace gpuq::tune
