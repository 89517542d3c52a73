// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/check.h"

#include "core/nearest.h"
#include "core/walltime.h"
#include "policy/calendar.h"
#include "policy/course_times.h"
#include "policy/queue_partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace gpuq::policy {
namespace {

/// For idle GPUs: a shorter period can't be distinguished from a pause between two steps of a
/// program.
constexpr seconds k_shortest_idle{30};
constexpr minutes k_hasty_idle{10};
constexpr seconds k_least_warning{10};

using Names = std::vector<std::string>;
using Weight = Finding::Weight;

/// A position in the file; for a whole section, only its line.
struct Place {
    Place(int of_part)
        : line(of_part)
    {
    }
    template <typename T>
    Place(const Rule<T>& rule)
        : line(rule.line)
        , column(rule.column)
    {
    }
    int line = 0, column = 0;
};

/// Collects the findings about one policy.
class Checker {
public:
    explicit Checker(const Policy& policy)
        : m_policy(policy)
    {
        for (const Pool& pool : policy.pools) {
            m_pools.push_back(pool.name);
        }
        for (const Queue& queue : policy.queues) {
            m_queues.push_back(queue.name);
        }
    }

    std::vector<Finding> run()
    {
        if (m_policy.site && m_queues.empty()) {
            check_no_rules();
            return std::move(m_findings);
        }
        if (m_pools.empty() || m_queues.empty()) {
            error(0, "missing", "a policy needs at least one pool and one queue");
            return std::move(m_findings);
        }
        check_models();
        check_pools();
        for (const Queue& queue : m_policy.queues) {
            check_queue(queue);
        }
        check_partitions();
        check_site();
        check_shadows();
        check_rest();
        return std::move(m_findings);
    }

private:
    void add(Weight weight, Place place, std::string code, std::string text)
    {
        m_findings.push_back({weight, place.line, place.column, std::move(code), std::move(text)});
    }
    void error(Place place, std::string code, std::string text)
    {
        add(Weight::error, place, std::move(code), std::move(text));
    }
    void warn(Place place, std::string code, std::string text)
    {
        add(Weight::warning, place, std::move(code), std::move(text));
    }

    void expect_known(const std::string& name, const Names& known, std::string_view what,
                      Place place)
    {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            error(place, "unknown-name",
                  fmt::format("there is no {} '{}'{}", what, name, did_you_mean(name, known)));
        }
    }

    /// A policy that only describes the site's own objects can have none of the rules of queues.
    void check_no_rules()
    {
        const auto need_queues = [&](bool any, std::string_view what) {
            if (any) {
                error(m_policy.site->line, "missing", fmt::format("{} need a queue", what));
            }
        };
        need_queues(m_policy.default_queue.has_value() || !m_policy.fair_share.shares.empty() ||
                        m_policy.fair_share.half_life.line > 0,
                    "default_queue and fair_share");
        need_queues(!m_policy.courses.empty(), "courses");
        need_queues(m_policy.reserve.has_value(), "rules of reserve");
        need_queues(!m_policy.tests.empty(), "tests");
    }

    /// A partition is either the site's or one of a queue.
    void check_site()
    {
        std::map<std::string, const Queue*> of;
        for (const Queue& queue : m_policy.queues) {
            for (const QueuePartition& queue_partition : partitions_of(m_policy, queue)) {
                of.emplace(queue_partition.partition, &queue);
            }
        }
        for (const SlurmObject& object :
             m_policy.site ? m_policy.site->objects : std::vector<SlurmObject>{}) {
            const auto found =
                object.kind == SlurmObject::Kind::partition ? of.find(object.name) : of.end();
            if (found != of.end()) {
                error(object.line, "twice",
                      fmt::format("partition {} belongs to queue {} (line {}): remove it from site",
                                  object.name, found->second->name, found->second->line));
            }
        }
    }

    void check_models()
    {
        Names models;
        for (const GpuModel& model : m_policy.gpus) {
            models.push_back(model.name);
        }
        for (const Pool& pool : m_policy.pools) {
            for (const GpuCount& gpu : pool.gpus.value) {
                if (!models.empty() && !gpu.model.empty()) {
                    expect_known(gpu.model, models, "model of GPU", pool.gpus);
                }
            }
        }
        for (const GpuModel& model : m_policy.gpus) {
            const bool used =
                std::any_of(m_policy.pools.begin(), m_policy.pools.end(),
                            [&](const Pool& pool) { return pool.has_model(model.name); });
            if (!used) {
                warn(model.line, "unused", fmt::format("no pool has a {}", model.name));
            }
        }
    }

    void check_pools()
    {
        std::map<std::string, const Pool*> owner_of;
        for (const Pool& pool : m_policy.pools) {
            if (pool.nodes.value == Names{"ALL"} && m_policy.pools.size() > 1) {
                error(pool.nodes, "all-nodes",
                      "ALL is possible for the only pool; name the nodes of each");
            }
            for (const std::string& node : pool.nodes.value) {
                const auto [place, first] = owner_of.emplace(node, &pool);
                if (!first) {
                    error(pool.nodes, "twice",
                          fmt::format("node {} is in pool {} as well (line {})", node,
                                      place->second->name, place->second->nodes.line));
                    break;
                }
            }
            check_owner(pool);
            // Slurm 22.05 gives a GPU without a type to a job as a whole while others share it.
            if (pool.shares && !pool.has_models()) {
                error(pool.shares->line, "missing",
                      fmt::format("pool {} has shares, and must specify its GPUs with their model "
                                  "(gpus: a10:4)",
                                  pool.name));
            }
        }
    }

    bool is_used(const Queue& queue, const Pool& pool) const
    {
        const auto in = [&](const Names& names) {
            return std::find(names.begin(), names.end(), pool.name) != names.end();
        };
        return in(queue.pools.value) || in(queue.overflow.value);
    }

    void check_owner(const Pool& pool)
    {
        int users = 0;
        bool owner_uses = false;
        for (const Queue& queue : m_policy.queues) {
            const bool uses = is_used(queue, pool);
            users += uses ? 1 : 0;
            owner_uses = owner_uses || (uses && pool.owner && pool.owner->value == queue.name);
        }
        if (users == 0) {
            warn(pool.line, "unused", fmt::format("no queue uses pool {}", pool.name));
        }
        if (pool.owner) {
            expect_known(pool.owner->value, m_queues, "queue", *pool.owner);
            if (!owner_uses && m_policy.queue(pool.owner->value) != nullptr) {
                error(*pool.owner, "owner",
                      fmt::format("queue {} owns pool {} and does not use it: add it to its pools",
                                  pool.owner->value, pool.name));
            }
        }
        check_hours(pool);
        if (pool.lend && users <= (owner_uses ? 1 : 0)) {
            warn(pool.lend->line, "unused",
                 fmt::format("pool {} is lent, but no other queue uses it", pool.name));
        }
    }

    /// From the notice time before their end on, no job starts.
    void check_hours(const Pool& pool)
    {
        const auto check = [&](const Hours& hours, int line) {
            if (!hours.empty() && !ever_opens(hours, pool.notice())) {
                error(line, "no-effect",
                      fmt::format("pool {}: no hours of 'when' are longer than the notice time, "
                                  "{} min (grace): no job would start",
                                  pool.name, std::chrono::ceil<minutes>(pool.notice()).count()));
            }
        };
        check(pool.when, pool.line);
        if (pool.lend) {
            check(pool.lend->when, pool.lend->line);
        }
    }

    void check_queue(const Queue& queue)
    {
        for (const auto* pools : {&queue.pools, &queue.overflow}) {
            for (const std::string& name : pools->value) {
                expect_known(name, m_pools, "pool", *pools);
            }
            if (pools->value.size() > k_most_pools) {
                error(*pools, "too-many",
                      fmt::format("more than {} pools in one list", k_most_pools));
            }
        }
        for (const std::string& name : queue.overflow.value) {
            const auto& own = queue.pools.value;
            if (std::find(own.begin(), own.end(), name) != own.end()) {
                error(queue.overflow, "twice",
                      fmt::format("pool {} is among the pools of queue {} already (line {})", name,
                                  queue.name, queue.pools.line));
            }
        }
        if (queue.default_time.value > queue.max_time.value) {
            error(queue.default_time, "above",
                  fmt::format("default_time {} is beyond the time {} of line {}",
                              to_text(queue.default_time.value), to_text(queue.max_time.value),
                              queue.max_time.line));
        }
        if (queue.chain && queue.chain->link && queue.chain->link->value > queue.max_time.value) {
            error(*queue.chain->link, "above",
                  fmt::format("a link of {} is beyond the queue's time {}",
                              to_text(queue.chain->link->value), to_text(queue.max_time.value)));
        }
        if (queue.idle) {
            check_idle(queue, *queue.idle);
        }
        check_calendar(queue);
        if (queue.extend && !m_policy.helper) {
            error(queue.extend->line, "missing",
                  fmt::format("queue {} extends running jobs, which Slurm permits only its "
                              "operators: name the account that does it (helper, "
                              "gpuq-extend(1))",
                              queue.name));
        }
        check_queue_models(queue);
        check_limits(queue);
        check_shares(queue);
        check_sizes(queue);
        check_wait(queue.wait);
    }

    /// Soft limits have partitions of their own, which must not come and go with their jobs.
    void check_calendar(const Queue& queue)
    {
        for (const CalendarEntry& entry : queue.calendar) {
            if (entry.limits.has_soft() && !queue.limits.has_soft()) {
                const auto& user = entry.limits.user.soft_gpus;
                error(user ? *user : *entry.limits.account.soft_gpus, "missing",
                      fmt::format("queue {} has no soft_gpus outside of this time: give it one, "
                                  "which may be larger",
                                  queue.name));
            }
        }
    }

    void check_idle(const Queue& queue, const IdleRule& idle)
    {
        const seconds after = idle.after.value;
        if (after < k_shortest_idle) {
            error(idle.after.line, "below",
                  fmt::format("idle GPUs can't be distinguished from busy ones in less than {} s",
                              k_shortest_idle.count()));
        } else if (after < k_hasty_idle) {
            warn(idle.after.line, "hasty",
                 fmt::format("after less than {} min GPUs are taken from users who read a result "
                             "or load their data",
                             k_hasty_idle.count()));
        } else if (after >= queue.max_time.value) {
            warn(idle.after.line, "no-effect",
                 fmt::format("no run of queue {} lasts that long: its time is {}", queue.name,
                             to_text(queue.max_time.value)));
        }
        if (idle.warn.line > 0 && (idle.warn.value >= after || idle.warn.value < k_least_warning)) {
            error(idle.warn.line, idle.warn.value >= after ? "above" : "below",
                  fmt::format("a warning comes at least {} s before the end, and less than "
                              "'after' (line {})",
                              k_least_warning.count(), idle.after.line));
        }
    }

    void check_queue_models(const Queue& queue)
    {
        for (const std::string& model : queue.models ? queue.models->value : Names{}) {
            const auto queue_partitions = partitions_of(m_policy, queue);
            const bool there = std::any_of(queue_partitions.begin(), queue_partitions.end(),
                                           [&](const QueuePartition& queue_partition) {
                                               return queue_partition.pool->has_model(model);
                                           });
            if (!there) {
                error(*queue.models, "unknown-name",
                      fmt::format("no pool of queue {} has a {}", queue.name, model));
            }
        }
    }

    void check_limits(const Queue& queue)
    {
        const Limits& limits = queue.limits;
        if (limits.all.soft_gpus) {
            error(*limits.all.soft_gpus, "no-effect",
                  "a soft limit of all together has no effect: no user is left to wait for");
        }
        for (const Share* share : {&limits.user, &limits.account}) {
            if (share->soft_gpus && share->gpus && share->soft_gpus->value >= share->gpus->value) {
                error(*share->soft_gpus, "no-effect",
                      fmt::format("soft_gpus {} never binds: gpus {} (line {}) does first",
                                  share->soft_gpus->value, share->gpus->value, share->gpus->line));
            }
            if (share->jobs && share->queued && share->jobs->value > share->queued->value) {
                error(*share->jobs, "no-effect",
                      fmt::format("jobs {} never binds: queued {} (line {}) does first",
                                  share->jobs->value, share->queued->value, share->queued->line));
            }
            if (share->gpus && limits.job.gpus && limits.job.gpus->value > share->gpus->value) {
                error(
                    *limits.job.gpus, "no-effect",
                    fmt::format("a job may have {} GPUs, but the user or account only {} (line {})",
                                limits.job.gpus->value, share->gpus->value, share->gpus->line));
            }
        }
    }

    /// Limits on shares make a queue accept them, so that its pools must have some.
    void check_shares(const Queue& queue)
    {
        int most = 0;
        for (const QueuePartition& one : partitions_of(m_policy, queue)) {
            most = std::max(most, one.pool->shares ? one.pool->shares->per_gpu.value : 0);
        }
        const Limits& limits = queue.limits;
        for (const auto* limit : {&limits.job.shares, &limits.user.shares, &limits.account.shares,
                                  &limits.all.shares}) {
            if (*limit && most == 0) {
                error(**limit, "no-effect",
                      fmt::format("no pool of queue {} has shares (shares: {{per_gpu: 4}})",
                                  queue.name));
            }
        }
        if (limits.job.shares && most > 0 && limits.job.shares->value > most) {
            warn(*limits.job.shares, "no-effect",
                 fmt::format("{} shares never bind: a GPU of queue {} has {}, and a job gets those "
                             "of one GPU",
                             limits.job.shares->value, queue.name, most));
        }
    }

    /// The GPUs of all pools of a queue; nullopt if one of the pools does not specify its GPUs or
    /// nodes.
    std::optional<int> gpus_of(const Queue& queue) const
    {
        int gpus = 0;
        for (const Pool& pool : m_policy.pools) {
            if (is_used(queue, pool)) {
                if (pool.gpus.value.empty() || pool.nodes.value == Names{"ALL"}) {
                    return std::nullopt;
                }
                gpus += static_cast<int>(pool.nodes.value.size()) * pool.gpus_per_node();
            }
        }
        return gpus;
    }

    void check_sizes(const Queue& queue)
    {
        const auto there = gpus_of(queue);
        const Limits& limits = queue.limits;
        for (const auto* limit :
             {&limits.job.gpus, &limits.user.gpus, &limits.account.gpus, &limits.all.gpus,
              &limits.user.soft_gpus, &limits.account.soft_gpus}) {
            if (there && *limit && (*limit)->value > *there) {
                warn(**limit, "no-effect",
                     fmt::format("{} GPUs never bind: the pools of queue {} have {}",
                                 (*limit)->value, queue.name, *there));
            }
        }
    }

    void check_wait(const WaitTarget& wait)
    {
        const auto order = [&](const Maybe<minutes>& less, const Maybe<minutes>& more) {
            if (less && more && less->value > more->value) {
                error(*less, "above",
                      fmt::format("a wait of {} is longer than the one of line {}",
                                  to_text(less->value), more->line));
            }
        };
        order(wait.p50, wait.p95);
        order(wait.p95, wait.max);
        order(wait.p50, wait.max);
    }

    /// sacctmgr converts names of QOS to lower case; slurm.conf(5) reserves DEFAULT.
    void check_name(const Queue& queue)
    {
        for (const std::string& account : queue.access.accounts) {
            if (!is_small(account)) {
                error(queue.access.line, "not-a-name",
                      fmt::format("account {}: Slurm stores its name in lower case", account));
            }
        }
        const bool small = is_small(queue.name);
        if (!small || queue.name == "default") {
            error(queue.line, "not-a-name",
                  fmt::format("queue {}: {}", queue.name,
                              small ? "Slurm reserves the name 'default'"
                                    : "Slurm accepts only lower-case names of queues"));
        }
    }

    void check_partitions()
    {
        std::map<std::string, const Queue*> of;
        for (const Queue& queue : m_policy.queues) {
            check_name(queue);
            for (const QueuePartition& queue_partition : partitions_of(m_policy, queue)) {
                const auto [place, first] = of.emplace(queue_partition.partition, &queue);
                if (!first && place->second != &queue) {
                    error(queue.line, "twice",
                          fmt::format("queues {} and {} would both make a partition {}: rename one",
                                      place->second->name, queue.name, queue_partition.partition));
                }
            }
        }
    }

    /// Whether every command that may submit jobs to `queue` may submit them to `first`.
    bool covers_submitters(const Queue& first, const Queue& queue) const
    {
        const bool is_same =
            first.through && queue.through && first.through->value == queue.through->value;
        return is_same || (!first.through && !is_for_sweeps(queue));
    }

    /// Whether `first` accepts every job that `queue` accepts.
    bool covers(const Queue& first, const Queue& queue) const
    {
        const auto holds = [](const Names& all, const Names& some) {
            return std::all_of(some.begin(), some.end(), [&](const std::string& name) {
                return std::find(all.begin(), all.end(), name) != all.end();
            });
        };
        const auto at_least = [](const auto& one, const auto& other) {
            return !one || (other && one->value >= other->value);
        };
        const bool user_count =
            first.access.is_open() ||
            (!queue.access.is_open() && holds(first.access.users, queue.access.users) &&
             holds(first.access.accounts, queue.access.accounts));
        return user_count && covers_submitters(first, queue) &&
               first.max_time.value >= queue.max_time.value &&
               at_least(first.limits.job.gpus, queue.limits.job.gpus) &&
               at_least(first.limits.job.nodes, queue.limits.job.nodes) &&
               at_least(first.cpus_per_gpu, queue.cpus_per_gpu) &&
               at_least(first.memory_per_gpu_mib, queue.memory_per_gpu_mib) &&
               covers_shares(first, queue) && covers_models(first, queue);
    }

    /// The pools are not compared: a queue that might take other shares is not reported.
    static bool covers_shares(const Queue& first, const Queue& queue)
    {
        return !queue.limits.most_shares_of_a_job() ||
               (first.limits.most_shares_of_a_job() && first.pools == queue.pools &&
                first.limits.most_shares_of_a_job()->value >=
                    queue.limits.most_shares_of_a_job()->value);
    }

    /// Whether every job for `queue` fits `first` by its models and its GPUs on one node.
    bool covers_models(const Queue& first, const Queue& queue) const
    {
        const auto has = [&](const Queue& one, const std::string& model, int on_node) {
            const bool named =
                !one.models || std::find(one.models->value.begin(), one.models->value.end(),
                                         model) != one.models->value.end();
            const auto queue_partitions = partitions_of(m_policy, one);
            return named &&
                   std::any_of(queue_partitions.begin(), queue_partitions.end(),
                               [&](const QueuePartition& queue_partition) {
                                   const bool known = !queue_partition.pool->gpus.value.empty();
                                   return queue_partition.pool->has_model(model) &&
                                          (!known ||
                                           queue_partition.pool->gpus_per_node() >= on_node);
                               });
        };
        for (const QueuePartition& queue_partition : partitions_of(m_policy, queue)) {
            for (const GpuCount& gpu : queue_partition.pool->gpus.value) {
                const bool gives = has(queue, gpu.model, gpu.count);
                if (gives && !has(first, gpu.model, queue_partition.pool->gpus_per_node())) {
                    return false;
                }
            }
        }
        return true;
    }

    void check_shadows()
    {
        for (std::size_t i = 0; i < m_policy.queues.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const Queue& queue = m_policy.queues[i];
                const Queue& first = m_policy.queues[j];
                if (covers(first, queue)) {
                    error(queue.line, "shadowed",
                          fmt::format("queue {} is never chosen by default: queue {} (line {}) "
                                      "accepts every job that it accepts; put it first, or allow "
                                      "jobs that the other refuses",
                                      queue.name, first.name, first.line));
                    break;
                }
            }
        }
    }

    void check_rest()
    {
        constexpr std::chrono::hours k_short{1};
        if (m_policy.fair_share.half_life.value < k_short) {
            warn(m_policy.fair_share.half_life, "no-effect",
                 "a half_life of less than an hour forgets past use too soon to affect waiting "
                 "jobs; usual values are 1d to 14d");
        }
        if (m_policy.default_queue) {
            expect_known(m_policy.default_queue->value, m_queues, "queue",
                         m_policy.default_queue->line);
        }
        Names courses;
        for (const Course& course : m_policy.courses) {
            courses.push_back(course.name);
            check_course(course);
        }
        check_overlaps();
        if (m_policy.reserve) {
            check_reserve(*m_policy.reserve);
        }
        for (const Case& test : m_policy.tests) {
            for (const auto& name : {test.queue, test.in}) {
                if (name) {
                    expect_known(*name, m_queues, "queue", test.line);
                }
            }
            if (test.course) {
                expect_known(*test.course, courses, "course", test.line);
            }
        }
    }

    /// Slurm refuses a reservation of nodes that are in another one at the same time.
    void check_overlaps()
    {
        const auto& courses = m_policy.courses;
        for (std::size_t i = 0; i < courses.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const std::string* node = common_node(courses[j], courses[i]);
                const auto when = node ? both_on(courses[j], courses[i]) : std::nullopt;
                if (when) {
                    error(courses[i].start, "overlap",
                          fmt::format("course {} has node {} on {}, and so has course {} (line "
                                      "{}): Slurm gives a node to one at a time",
                                      courses[i].name, *node, as_written(*when), courses[j].name,
                                      courses[j].start.line));
                }
            }
        }
    }

    /// Slurm stores the names of accounts in lower case. A reservation names a queue's partition,
    /// by which it is found to be one of the pool.
    void check_reserve(const ReserveRule& rule)
    {
        for (const std::string& pool : rule.pools ? rule.pools->value : Names{}) {
            expect_known(pool, m_pools, "pool", *rule.pools);
        }
        for (const std::string& account : rule.accounts) {
            if (!is_small(account)) {
                error(rule.line, "not-a-name",
                      fmt::format("account {}: Slurm stores its name in lower case", account));
            }
        }
    }

    static bool is_small(const std::string& name)
    {
        return std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    }

    static const std::string* common_node(const Course& one, const Course& other)
    {
        const auto& nodes = other.nodes.value;
        const auto found = std::find_if(
            one.nodes.value.begin(), one.nodes.value.end(), [&](const std::string& node) {
                return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
            });
        return found == one.nodes.value.end() ? nullptr : &*found;
    }

    void check_course(const Course& course)
    {
        using Repeat = Course::Repeat;
        constexpr minutes k_day{24 * 60};
        constexpr minutes k_week = 7 * k_day;
        const Repeat repeat = course.repeat.value;
        const bool daily = repeat == Repeat::daily || repeat == Repeat::weekdays;
        const minutes most = daily ? k_day : k_week;
        if (repeat != Repeat::once && course.duration.value > most) {
            error(course.duration, "above",
                  fmt::format("course {} would begin again before it is over: {} is more than {}",
                              course.name, to_text(course.duration.value), to_text(most)));
        }
        for (const std::string& node : course.nodes.value) {
            const bool there = std::any_of(m_policy.pools.begin(), m_policy.pools.end(),
                                           [&](const Pool& pool) { return pool.has_node(node); });
            if (!there) {
                error(course.nodes, "unknown-name", fmt::format("node {} is in no pool", node));
            }
        }
    }

    const Policy& m_policy;
    Names m_pools;
    Names m_queues;
    std::vector<Finding> m_findings;
};

/// Checks the policy of each time at which the calendar changes, as it checks the file without it.
void check_times(const Policy& policy, std::vector<Finding>& findings)
{
    std::set<std::string> checked{""};
    for (const LocalMinutes time : changes_in_a_week(policy)) {
        if (!checked.insert(open_hours(policy, time).value_or("")).second) {
            continue;
        }
        for (Finding& finding : Checker(policy_at(policy, time)).run()) {
            const bool known =
                std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
                    return other.line == finding.line && other.code == finding.code &&
                           other.text.starts_with(finding.text);
                });
            if (!known) {
                finding.text += fmt::format(" (from {} on)", weekday_and_time(time));
                findings.push_back(std::move(finding));
            }
        }
    }
}

} // namespace

std::vector<Finding> check(const Policy& policy)
{
    std::vector<Finding> findings = Checker(policy).run();
    if (count_windows(policy) > k_most_windows) {
        findings.push_back(
            {Weight::error, 0, 0, "too-many",
             fmt::format("more than {} hours ('when') in a policy", k_most_windows)});
    }
    if (!has_errors(findings)) {
        check_times(policy, findings);
    }
    return findings;
}

} // namespace gpuq::policy
