// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/check.h"

#include "core/walltime.h"
#include "policy/calendar.h"
#include "policy/check_effect.h"
#include "policy/check_queue.h"
#include "policy/course_times.h"
#include "policy/finding_list.h"
#include "policy/queue_partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gpuq::policy {
namespace {

using Names = std::vector<std::string>;

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
            return m_findings.take();
        }
        if (m_pools.empty() || m_queues.empty()) {
            m_findings.error(0, "missing", "a policy needs at least one pool and one queue");
            return m_findings.take();
        }
        check_models();
        check_pools();
        for (const Queue& queue : m_policy.queues) {
            check_queue(m_policy, queue, m_findings);
        }
        check_partitions();
        check_qos();
        check_site();
        check_rest();
        return m_findings.take();
    }

private:
    /// A policy that only describes the site's own objects can have none of the rules of queues.
    void check_no_rules()
    {
        const auto need_queues = [&](bool any, std::string_view what) {
            if (any) {
                m_findings.error(m_policy.site->line, "missing",
                                 fmt::format("{} need a queue", what));
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
                m_findings.error(
                    object.line, "twice",
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
                    m_findings.expect_known(gpu.model, models, "model of GPU", pool.gpus);
                }
            }
        }
        for (const GpuModel& model : m_policy.gpus) {
            const bool used =
                std::any_of(m_policy.pools.begin(), m_policy.pools.end(),
                            [&](const Pool& pool) { return pool.has_model(model.name); });
            if (!used) {
                m_findings.warn(model.line, "unused", fmt::format("no pool has a {}", model.name));
            }
        }
    }

    void check_pools()
    {
        std::map<std::string, const Pool*> owner_of;
        for (const Pool& pool : m_policy.pools) {
            if (pool.nodes.value == Names{"ALL"} && m_policy.pools.size() > 1) {
                m_findings.error(pool.nodes, "all-nodes",
                                 "ALL is possible for the only pool; name the nodes of each");
            }
            for (const std::string& node : pool.nodes.value) {
                const auto [place, first] = owner_of.emplace(node, &pool);
                if (!first) {
                    m_findings.error(pool.nodes, "twice",
                                     fmt::format("node {} is in pool {} as well (line {})", node,
                                                 place->second->name, place->second->nodes.line));
                    break;
                }
            }
            check_owner(pool);
            // Slurm 22.05 gives a GPU without a type to a job as a whole while others share it.
            if (pool.shares && !pool.has_models()) {
                m_findings.error(
                    pool.shares->line, "missing",
                    fmt::format("pool {} has shares, and must specify its GPUs with their model "
                                "(gpus: a10:4)",
                                pool.name));
            }
        }
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
            m_findings.warn(pool.line, "unused", fmt::format("no queue uses pool {}", pool.name));
        }
        if (pool.owner) {
            m_findings.expect_known(pool.owner->value, m_queues, "queue", *pool.owner);
            if (!owner_uses && m_policy.queue(pool.owner->value) != nullptr) {
                m_findings.error(
                    *pool.owner, "owner",
                    fmt::format("queue {} owns pool {} and does not use it: add it to its pools",
                                pool.owner->value, pool.name));
            }
        }
        check_hours(pool);
        if (pool.lend && users <= (owner_uses ? 1 : 0)) {
            m_findings.warn(pool.lend->line, "unused",
                            fmt::format("pool {} is lent, but no other queue uses it", pool.name));
        }
    }

    /// From the notice time before their end on, no job starts.
    void check_hours(const Pool& pool)
    {
        const auto check = [&](const Hours& hours, int line) {
            if (!hours.empty() && !ever_opens(hours, pool.notice())) {
                m_findings.error(
                    line, "no-effect",
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

    /// sacctmgr converts names of QOS to lower case; slurm.conf(5) reserves DEFAULT.
    void check_name(const Queue& queue)
    {
        for (const std::string& account : queue.access.accounts) {
            if (!is_small(account)) {
                m_findings.error(
                    queue.access.line, "not-a-name",
                    fmt::format("account {}: Slurm stores its name in lower case", account));
            }
        }
        const bool small = is_small(queue.name);
        if (!small || queue.name == "default") {
            m_findings.error(queue.line, "not-a-name",
                             fmt::format("queue {}: {}", queue.name,
                                         small ? "Slurm reserves the name 'default'"
                                               : "Slurm accepts only lower-case names of queues"));
        }
    }

    /// slurmctld exits if two partitions have one name.
    void check_partitions()
    {
        std::map<std::string, std::pair<const Queue*, const Pool*>> of;
        for (const Queue& queue : m_policy.queues) {
            check_name(queue);
            for (const QueuePartition& one : partitions_of(m_policy, queue)) {
                const auto [place, is_new] = of.emplace(one.partition, std::pair(&queue, one.pool));
                const auto [owner, pool] = place->second;
                if (!is_new && owner != &queue) {
                    m_findings.error(
                        queue.line, "twice",
                        fmt::format("queues {} and {} would both make a partition {}: rename one",
                                    owner->name, queue.name, one.partition));
                } else if (!is_new && pool != one.pool) {
                    m_findings.error(
                        queue.line, "twice",
                        fmt::format("queue {} would make two partitions {}, for its pools {} and "
                                    "{}: rename a pool",
                                    queue.name, one.partition, pool->name, one.pool->name));
                }
            }
        }
    }

    void check_qos()
    {
        std::map<std::string, const Queue*> of;
        for (const Queue& queue : m_policy.queues) {
            of.emplace(qos_of(queue), &queue);
        }
        for (const Queue& queue : m_policy.queues) {
            const auto found = queue.limits.has_soft() ? of.find(soft_qos_of(queue)) : of.end();
            if (found != of.end()) {
                m_findings.error(
                    queue.line, "twice",
                    fmt::format("queues {} and {} would both make a QOS {}: rename one",
                                found->second->name, queue.name, found->first));
            }
        }
    }

    void check_rest()
    {
        constexpr std::chrono::hours k_short{1};
        if (m_policy.fair_share.half_life.value < k_short) {
            m_findings.warn(
                m_policy.fair_share.half_life, "no-effect",
                "a half_life of less than an hour forgets past use too soon to affect waiting "
                "jobs; usual values are 1d to 14d");
        }
        if (m_policy.default_queue) {
            m_findings.expect_known(m_policy.default_queue->value, m_queues, "queue",
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
        if (m_policy.help_desk) {
            check_help_desk(*m_policy.help_desk);
        }
        for (const Case& test : m_policy.tests) {
            for (const auto& name : {test.queue, test.in}) {
                if (name) {
                    m_findings.expect_known(*name, m_queues, "queue", test.line);
                }
            }
            if (test.course) {
                m_findings.expect_known(*test.course, courses, "course", test.line);
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
                    m_findings.error(
                        courses[i].start, "overlap",
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
            m_findings.expect_known(pool, m_pools, "pool", *rule.pools);
        }
        for (const std::string& account : rule.accounts) {
            if (!is_small(account)) {
                m_findings.error(
                    rule.line, "not-a-name",
                    fmt::format("account {}: Slurm stores its name in lower case", account));
            }
        }
    }

    void check_help_desk(const HelpDesk& desk)
    {
        if (!m_policy.helper) {
            m_findings.error(desk.line, "missing",
                             "the help desk acts by an account that is an operator of Slurm: name "
                             "it (helper, gpuq-stop(1))");
        }
        const auto extends = [](const Queue& queue) { return queue.extend.has_value(); };
        if (desk.extend && std::none_of(m_policy.queues.begin(), m_policy.queues.end(), extends)) {
            m_findings.error(desk.line, "missing",
                             "the help desk may extend jobs, but no queue has a rule for that "
                             "(extend)");
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
            m_findings.error(
                course.duration, "above",
                fmt::format("course {} would begin again before it is over: {} is more than {}",
                            course.name, to_text(course.duration.value), to_text(most)));
        }
        for (const std::string& node : course.nodes.value) {
            const bool there = std::any_of(m_policy.pools.begin(), m_policy.pools.end(),
                                           [&](const Pool& pool) { return pool.has_node(node); });
            if (!there) {
                m_findings.error(course.nodes, "unknown-name",
                                 fmt::format("node {} is in no pool", node));
            }
        }
    }

    const Policy& m_policy;
    Names m_pools;
    Names m_queues;
    FindingList m_findings;
};

/// The policy of a time at which the calendar changes.
struct Moment {
    LocalMinutes from;
    Policy policy;
};

std::vector<Moment> moments_of(const Policy& policy)
{
    std::vector<Moment> moments;
    std::set<std::string> known{""};
    for (const LocalMinutes time : changes_in_a_week(policy)) {
        if (known.insert(open_hours(policy, time).value_or("")).second) {
            moments.push_back({time, policy_at(policy, time)});
        }
    }
    return moments;
}

/// Reports the rules that have an effect neither outside of the calendar nor at any of its times.
void check_effects(const Policy& policy, const std::vector<Moment>& moments,
                   std::vector<Finding>& findings)
{
    std::vector<Policy> states{policy};
    for (const Moment& moment : moments) {
        states.push_back(moment.policy);
    }
    FindingList found;
    check_effects(states, found);
    for (Finding& finding : found.take()) {
        findings.push_back(std::move(finding));
    }
}

/// Checks the policy of each moment as the file is checked without its calendar.
void check_times(const std::vector<Moment>& moments, std::vector<Finding>& findings)
{
    for (const Moment& moment : moments) {
        for (Finding& finding : Checker(moment.policy).run()) {
            const bool known =
                std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
                    return other.line == finding.line && other.code == finding.code &&
                           other.text.starts_with(finding.text);
                });
            if (!known) {
                finding.text += fmt::format(" (from {} on)", weekday_and_time(moment.from));
                findings.push_back(std::move(finding));
            }
        }
    }
}

} // namespace

std::vector<Finding> check(const Policy& policy)
{
    std::vector<Finding> findings = Checker(policy).run();
    std::vector<Moment> moments;
    if (count_windows(policy) > k_most_windows) {
        findings.push_back(
            {Finding::Weight::error, 0, 0, "too-many",
             fmt::format("more than {} hours ('when') in a policy", k_most_windows)});
    } else {
        moments = moments_of(policy);
    }
    if (!policy.pools.empty()) {
        check_effects(policy, moments, findings);
    }
    if (!has_errors(findings)) {
        check_times(moments, findings);
    }
    return findings;
}

} // namespace gpuq::policy
