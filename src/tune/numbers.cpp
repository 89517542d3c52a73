// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/numbers.h"

#include "core/host_list.h"
#include "core/nearest.h"
#include "tune/spelling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace gpuq::tune {
namespace {

using policy::Maybe;
using policy::Policy;
using policy::Pool;
using policy::Queue;
using policy::Rule;
using sim::Seconds;
using namespace std::chrono_literals;

constexpr int k_factor = 4; ///< bounds: a quarter to four times the value

constexpr std::array<Seconds, 24> k_times = {30s,   1min,  2min, 3min,  5min, 10min, 15min, 20min,
                                             30min, 45min, 1h,   90min, 2h,   3h,    4h,    6h,
                                             8h,    12h,   18h,  24h,   36h,  48h,   72h,   168h};
constexpr std::array<int, 25> k_counts = {1,  2,  3,  4,  5,  6,   8,   10,  12,  16,  20,  24,  32,
                                          40, 48, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024};
constexpr std::array<double, 10> k_weights = {0.1, 0.25, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 5};

/// Whether a number is tuned unless it is selected.
enum class When { by_default, if_selected };

/// The properties of trace and machine on which the choice of numbers depends.
struct Facts {
    bool users = false;
    bool accounts = false;
    int gpus = 0; ///< of the policy's pools
};

Facts facts_of(const Policy& policy, const sim::Trace& trace)
{
    Facts facts;
    for (const sim::TraceJob& job : trace.jobs) {
        facts.users = facts.users || !job.user.empty();
        facts.accounts = facts.accounts || !job.account.empty() || !job.partition.empty();
    }
    for (const Pool& pool : policy.pools) {
        facts.gpus += pool.gpus_per_node() * static_cast<int>(pool.nodes.value.size());
    }
    return facts;
}

bool begins(const std::string& path, const std::string& prefix)
{
    return path == prefix || path.starts_with(prefix + ".");
}

/// Collects the numbers that are selected.
class Collector {
public:
    /// Every single number is checked for whether it can be replaced.
    enum class Check { no, yes };
    Collector(const Selection& selection, std::string_view text, const std::string& file,
              Check check)
        : m_selection(&selection)
        , m_text(text)
        , m_file(&file)
        , m_check(check)
    {
    }

    Numbers numbers;
    std::vector<std::string> paths; ///< all that exist, selected or not

    /// Times within the bounds, of at least `least`.
    void time(const std::string& path, int line, int column, Seconds now, Seconds least,
              When when = When::by_default)
    {
        std::vector<Seconds> values(k_times.begin(), k_times.end());
        std::erase_if(values, [&](Seconds value) {
            return value < std::max(least, now / k_factor) || value > now * k_factor;
        });
        add(path, line, column, std::move(values), now, yaml_time, when);
    }

    template <typename T>
    void time(const std::string& path, const Rule<T>& rule, Seconds least,
              When when = When::by_default)
    {
        if (rule.line > 0) {
            time(path, rule.line, rule.column, rule.value, least, when);
        }
    }

    /// Counts within the bounds, of at most `most`.
    void count(const std::string& path, const Maybe<int>& rule, int most,
               When when = When::by_default)
    {
        if (!rule || rule->line == 0) {
            return;
        }
        std::vector<int> values(k_counts.begin(), k_counts.end());
        std::erase_if(values, [&](int value) {
            return value > most || value * k_factor < rule->value || value > rule->value * k_factor;
        });
        add(
            path, rule->line, rule->column, std::move(values), rule->value,
            [](int value) { return std::to_string(value); }, when);
    }

    void weight(const std::string& path, const Rule<double>& rule)
    {
        if (rule.line > 0) {
            add(
                path, rule.line, rule.column,
                std::vector<double>(k_weights.begin(), k_weights.end()), rule.value,
                [](double value) { return fmt::format("{:g}", value); }, When::if_selected);
        }
    }

    bool is_selected(const std::string& path, When when) const
    {
        const auto in = [&](const std::vector<std::string>& list) {
            return std::any_of(list.begin(), list.end(),
                               [&](const std::string& prefix) { return begins(path, prefix); });
        };
        return (m_selection->only.empty() ? when == When::by_default : in(m_selection->only)) &&
               !in(m_selection->fixed);
    }

    bool can_be_replaced(int line, int column) const
    {
        return m_check == Check::no ||
               yaml::with_replaced(m_text, *m_file, {{line, column, "1"}}).has_value();
    }

private:
    template <typename T, typename Spell>
    void add(const std::string& path, int line, int column, std::vector<T> values, T now,
             const Spell& spell, When when)
    {
        paths.push_back(path);
        if (!is_selected(path, when) || !can_be_replaced(line, column)) {
            return;
        }
        if (std::find(values.begin(), values.end(), now) == values.end()) {
            values.push_back(now);
        }
        std::sort(values.begin(), values.end());
        Number number{path, line, column, {}, 0};
        for (const T& value : values) {
            number.now = value == now ? number.choices.size() : number.now;
            number.choices.push_back(spell(value));
        }
        if (number.choices.size() > 1) {
            numbers.all.push_back(std::move(number));
        }
    }

    const Selection* m_selection;
    std::string_view m_text;
    const std::string* m_file;
    Check m_check;
};

/// Whether a node of one pool could be one of the other.
bool are_alike(const Pool& one, const Pool& other)
{
    return one.gpus.value == other.gpus.value && one.threads_per_core == other.threads_per_core &&
           one.shares == other.shares;
}

/// Whether its nodes may move to other pools: they have no hours or use of their own, and are not
/// the property of some users.
bool may_exchange(const Policy& policy, const Pool& pool)
{
    const Queue* const owner = pool.owner ? policy.queue(pool.owner->value) : nullptr;
    const bool is_property = owner != nullptr && !owner->access.is_open();
    const bool is_used_outside = pool.lend && pool.lend->probe.has_value();
    return !pool.gpus.value.empty() && pool.when.empty() && !is_property && !is_used_outside &&
           pool.nodes.line > 0;
}

void add_sizes(Collector& collector, const std::vector<const Pool*>& alike)
{
    const auto size_of = [](const Pool* pool) { return pool->nodes.value.size(); };
    const Pool* const largest =
        *std::max_element(alike.begin(), alike.end(), [&](const Pool* one, const Pool* other) {
            return size_of(one) < size_of(other);
        });
    Exchange exchange;
    for (const Pool* pool : alike) {
        const std::string path = fmt::format("pools.{}.nodes", pool->name);
        collector.paths.push_back(path);
        if (!collector.is_selected(path, When::by_default) ||
            !collector.can_be_replaced(pool->nodes.line, pool->nodes.column)) {
            continue;
        }
        exchange.members.push_back(
            {pool->name, pool->nodes.line, pool->nodes.column, pool->nodes.value, 0});
    }
    const auto rest =
        std::find_if(exchange.members.begin(), exchange.members.end(),
                     [&](const auto& member) { return member.pool == largest->name; });
    if (rest == exchange.members.end() || exchange.members.size() < 2) {
        return;
    }
    std::rotate(rest, rest + 1, exchange.members.end());
    const std::size_t spare = exchange.members.back().nodes.size() - 1;
    for (std::size_t i = 0; i + 1 < exchange.members.size(); ++i) {
        Exchange::Member& member = exchange.members[i];
        const std::size_t now = member.nodes.size();
        const std::size_t least = (now + k_factor - 1) / k_factor;
        const std::size_t most = std::min(now + spare, now * k_factor);
        Number number{fmt::format("pools.{}.nodes", member.pool),
                      member.line,
                      member.column,
                      {},
                      now - least};
        for (std::size_t size = least; size <= most; ++size) {
            number.choices.push_back(std::to_string(size));
        }
        member.number = collector.numbers.all.size();
        collector.numbers.all.push_back(std::move(number));
    }
    collector.numbers.exchanges.push_back(std::move(exchange));
}

void add_pools(Collector& collector, const Policy& policy)
{
    std::vector<const Pool*> left;
    for (const Pool& pool : policy.pools) {
        if (may_exchange(policy, pool)) {
            left.push_back(&pool);
        }
        if (pool.lend && !pool.lend->only_sweeps) {
            const std::string lend = fmt::format("pools.{}.lend.", pool.name);
            collector.time(lend + "grace", pool.lend->grace, 30s, When::if_selected);
            collector.time(lend + "min_run", pool.lend->min_run, 0s);
        }
    }
    while (!left.empty()) {
        std::vector<const Pool*> alike;
        for (const Pool* pool : left) {
            if (are_alike(*left.front(), *pool)) {
                alike.push_back(pool);
            }
        }
        add_sizes(collector, alike);
        std::erase_if(left, [&](const Pool* pool) {
            return std::find(alike.begin(), alike.end(), pool) != alike.end();
        });
    }
}

void add_share(Collector& collector, const std::string& path, const policy::Share& share,
               const Facts& facts)
{
    constexpr int k_most_jobs = 1'000'000;
    collector.count(path + ".gpus", share.gpus, facts.gpus);
    collector.count(path + ".soft_gpus", share.soft_gpus, facts.gpus);
    collector.count(path + ".jobs", share.jobs, k_most_jobs);
    // `queued` of accounts and of all is not simulated.
    if (path.ends_with(".user")) {
        collector.count(path + ".queued", share.queued, k_most_jobs);
    }
}

void add_queue(Collector& collector, const Queue& queue, const Facts& facts)
{
    constexpr Seconds k_least = 1min; // of a time limit
    const std::string path = "queues." + queue.name;
    collector.time(path + ".time", queue.max_time, k_least);
    collector.time(path + ".default_time", queue.default_time, k_least);
    if (queue.chain && queue.chain->link) {
        collector.time(path + ".chain.link", *queue.chain->link, k_least);
    }
    const policy::Limits& limits = queue.limits;
    if (facts.users) {
        add_share(collector, path + ".limits.user", limits.user, facts);
    }
    if (facts.accounts) {
        policy::Share account = limits.account;
        account.jobs.reset(); // not simulated
        add_share(collector, path + ".limits.account", account, facts);
    }
    add_share(collector, path + ".limits.all", limits.all, facts);
    collector.count(path + ".limits.job.gpus", limits.job.gpus, facts.gpus);
    collector.count(path + ".limits.job.nodes", limits.job.nodes, facts.gpus);
}

void add_fair_share(Collector& collector, const Policy& policy)
{
    constexpr int k_most_shares = 1'000'000;
    collector.time("fair_share.half_life", policy.fair_share.half_life, 1h);
    for (const policy::FairShare::Part& part : policy.fair_share.shares) {
        collector.count("fair_share.shares." + part.account, part.shares, k_most_shares,
                        When::if_selected);
    }
    for (const policy::GpuModel& model : policy.gpus) {
        collector.weight(fmt::format("gpus.{}.weight", model.name), model.weight);
    }
}

Result<void> check_paths(const std::vector<std::string>& paths, const Selection& selection)
{
    for (const auto* list : {&selection.only, &selection.fixed}) {
        for (const std::string& prefix : *list) {
            if (std::none_of(paths.begin(), paths.end(),
                             [&](const std::string& path) { return begins(path, prefix); })) {
                return fail(
                    Error::Kind::usage,
                    fmt::format("'{}' is no number that the simulation takes into account{}; "
                                "there are: {}",
                                prefix, did_you_mean(prefix, paths), fmt::join(paths, ", ")));
            }
        }
    }
    return {};
}

bool can_be_replaced(const Numbers& numbers, std::string_view text, const std::string& file)
{
    std::vector<yaml::Replacement> all;
    for (const Number& number : numbers.all) {
        all.push_back({number.line, number.column, "1"});
    }
    for (const Exchange& exchange : numbers.exchanges) {
        const Exchange::Member& rest = exchange.members.back();
        all.push_back({rest.line, rest.column, "1"});
    }
    return yaml::with_replaced(text, file, std::move(all)).has_value();
}

/// The nodes of each pool of an exchange when they have these sizes. A pool that grows takes the
/// first nodes of the rest, one that shrinks gives its last nodes.
std::optional<std::vector<std::vector<std::string>>> divided(const Exchange& exchange,
                                                             const std::vector<std::size_t>& sizes)
{
    std::vector<std::vector<std::string>> nodes;
    std::vector<std::string> given;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        nodes.push_back(exchange.members[i].nodes);
        while (nodes[i].size() > sizes[i]) {
            given.insert(given.begin(), nodes[i].back());
            nodes[i].pop_back();
        }
    }
    std::vector<std::string> rest = exchange.members.back().nodes;
    rest.insert(rest.begin(), given.begin(), given.end());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        while (nodes[i].size() < sizes[i]) {
            if (rest.size() < 2) {
                return std::nullopt;
            }
            nodes[i].push_back(rest.front());
            rest.erase(rest.begin());
        }
    }
    nodes.push_back(std::move(rest));
    return nodes;
}

bool is_size(const Numbers& numbers, std::size_t number)
{
    return std::any_of(
        numbers.exchanges.begin(), numbers.exchanges.end(), [&](const Exchange& exchange) {
            return std::any_of(exchange.members.begin(), exchange.members.end() - 1,
                               [&](const auto& member) { return member.number == number; });
        });
}

} // namespace

Space Numbers::space() const
{
    Space space;
    for (const Number& number : all) {
        space.sizes.push_back(number.choices.size());
        space.start.push_back(number.now);
    }
    return space;
}

Result<Numbers> numbers_of(const Policy& policy, std::string_view text, const sim::Trace& trace,
                           const Selection& selection)
{
    const Facts facts = facts_of(policy, trace);
    const auto collected = [&](Collector::Check check) {
        Collector collector(selection, text, policy.file, check);
        add_pools(collector, policy);
        for (const Queue& queue : policy.queues) {
            if (!queue.is_implied) {
                add_queue(collector, queue, facts);
            }
        }
        if (facts.accounts || facts.users) {
            add_fair_share(collector, policy);
        }
        return collector;
    };
    Collector collector = collected(Collector::Check::no);
    TRY(check_paths(collector.paths, selection));
    if (!can_be_replaced(collector.numbers, text, policy.file)) {
        collector = collected(Collector::Check::yes); // one by one takes longer
    }
    return std::move(collector.numbers);
}

std::optional<Changes> changes_of(const Numbers& numbers, const Point& point)
{
    Changes changes;
    const auto add = [&](const std::string& path, int line, int column, const std::string& from,
                         const std::string& to) {
        if (from != to) {
            changes.list.push_back({path, line, from, to});
            changes.replacements.push_back({line, column, to});
        }
    };
    for (std::size_t i = 0; i < point.size(); ++i) {
        const Number& number = numbers.all[i];
        if (!is_size(numbers, i)) {
            add(number.path, number.line, number.column, number.choices[number.now],
                number.choices[point[i]]);
        }
    }
    for (const Exchange& exchange : numbers.exchanges) {
        std::vector<std::size_t> sizes;
        for (std::size_t i = 0; i + 1 < exchange.members.size(); ++i) {
            const std::size_t number = exchange.members[i].number;
            const std::size_t first = exchange.members[i].nodes.size() - numbers.all[number].now;
            sizes.push_back(first + point[number]);
        }
        const auto nodes = divided(exchange, sizes);
        if (!nodes) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < exchange.members.size(); ++i) {
            const Exchange::Member& member = exchange.members[i];
            add(fmt::format("pools.{}.nodes", member.pool), member.line, member.column,
                host_list(member.nodes), host_list((*nodes)[i]));
        }
    }
    std::stable_sort(changes.list.begin(), changes.list.end(),
                     [](const Change& one, const Change& other) { return one.line < other.line; });
    return changes;
}

} // namespace gpuq::tune
