// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/scenario.h"

#include "core/comment.h"
#include "policy/calendar.h"
#include "sim/hours.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace gpuq::sim {
namespace {

using policy::Policy;
using policy::QueuePartition;
using policy::Rules;
using policy::Submission;
using policy::Verdict;

constexpr Seconds k_plain_limit = std::chrono::hours{48};
constexpr Seconds k_short_run = std::chrono::hours{2};
constexpr Seconds k_gap{2};    ///< between two links; measured by tests/bench/chain
constexpr Seconds k_start{60}; ///< for a program to continue: it starts, and reads a checkpoint
constexpr Seconds k_saves = std::chrono::minutes{30}; ///< between two checkpoints
/// Hours are known for so long after the last submission.
constexpr Seconds k_after_last = std::chrono::days{366};

/// Indexes of each pool's nodes.
using PoolNodes = std::map<std::string, std::vector<int>>;

Result<PoolNodes> add_nodes(const Policy& policy, Machine& machine)
{
    if (policy.queues.empty()) {
        return fail(Error::Kind::usage, "the policy has no queues to be simulated");
    }
    PoolNodes nodes;
    for (const policy::Pool& pool : policy.pools) {
        if (pool.gpus.value.empty() || pool.nodes.value == std::vector<std::string>{"ALL"}) {
            return fail(Error::Kind::usage,
                        fmt::format("pool {} must specify its nodes and their GPUs to be simulated",
                                    pool.name));
        }
        const int per_gpu = pool.shares ? pool.shares->per_gpu.value : 0;
        if (per_gpu > GpuParts::k_most_parts ||
            (per_gpu > 0 && pool.gpus_per_node() > GpuParts::k_most_gpus)) {
            return fail(Error::Kind::usage,
                        fmt::format("pool {} has shares: it can be simulated with at most {} GPUs "
                                    "on a node and {} shares of each",
                                    pool.name, GpuParts::k_most_gpus, GpuParts::k_most_parts));
        }
        for (const std::string& name : pool.nodes.value) {
            nodes[pool.name].push_back(static_cast<int>(machine.nodes.size()));
            machine.nodes.push_back({.name = name,
                                     .model = pool.gpus.value.front().model,
                                     .gpus = pool.gpus_per_node(),
                                     .per_gpu = per_gpu});
        }
    }
    return nodes;
}

std::optional<int> number_of(const policy::Maybe<int>& rule)
{
    return rule ? std::optional(rule->value) : std::nullopt;
}

std::optional<std::int64_t> minutes_of(const policy::Maybe<int>& hours)
{
    return hours ? std::optional(std::int64_t{hours->value} * 60) : std::nullopt;
}

Qos hard_limits(const Rules::QueueRules& rules)
{
    const policy::Limits& limits = rules.queue->limits;
    Qos qos;
    qos.name = rules.qos;
    qos.gpus_per_user = number_of(limits.user.gpus);
    qos.gpus_per_account = number_of(limits.account.gpus);
    qos.gpus_per_job = number_of(limits.job.gpus);
    qos.jobs_per_user = number_of(limits.user.jobs);
    qos.jobs_per_account = number_of(limits.account.jobs);
    qos.submitted_per_user = number_of(limits.user.queued);
    qos.submitted_per_account = number_of(limits.account.queued);
    qos.group_gpus = number_of(limits.all.gpus);
    qos.group_jobs = number_of(limits.all.jobs);
    qos.group_submitted = number_of(limits.all.queued);
    qos.gpu_minutes_per_user = minutes_of(limits.user.gpu_hours_ahead);
    qos.gpu_minutes_per_account = minutes_of(limits.account.gpu_hours_ahead);
    qos.group_gpu_minutes = minutes_of(limits.all.gpu_hours_ahead);
    qos.shares_per_user = number_of(limits.user.shares);
    qos.shares_per_account = number_of(limits.account.shares);
    qos.shares_per_job = number_of(limits.job.shares);
    qos.group_shares = number_of(limits.all.shares);
    return qos;
}

/// Adds every queue's QOS, followed by its soft QOS, and its partitions.
void add_queues(const Rules& rules, const PoolNodes& nodes, Machine& machine)
{
    for (const Rules::QueueRules& queue : rules.queues()) {
        machine.qos.push_back(hard_limits(queue));
        Qos soft;
        soft.name = soft_qos_of(*queue.queue);
        soft.gpus_per_user = number_of(queue.queue->limits.user.soft_gpus);
        soft.gpus_per_account = number_of(queue.queue->limits.account.soft_gpus);
        machine.qos.push_back(soft);
        const int soft_index = static_cast<int>(machine.qos.size()) - 1;
        for (const QueuePartition& queue_partition : queue.queue_partitions) {
            Partition partition;
            partition.name = queue_partition.partition;
            partition.nodes = nodes.at(queue_partition.pool->name);
            partition.max_time = queue.queue->max_time.value;
            partition.default_time = queue.queue->default_time.value;
            partition.tier = queue_partition.tier;
            partition.closed = queue_partition.closed;
            partition.notice = queue_partition.pool->notice();
            if (queue_partition.kind == QueuePartition::Kind::own) {
                partition.qos = soft_index;
            }
            if (queue_partition.guest) {
                partition.preempt = Preempt::requeue;
                partition.grace = queue_partition.pool->lend->grace.value;
                machine.settings.preempts = true;
            }
            machine.partitions.push_back(std::move(partition));
        }
    }
}

void add_settings(const Policy& policy, Machine& machine)
{
    Settings& settings = machine.settings;
    settings.weights.age = 1000;
    settings.weights.fair_share = 10000;
    settings.weights.half_life = policy.fair_share.half_life.value;
    settings.weights.calc_period = Seconds{60};
    settings.backfill.one_reservation_per_job = true;
    for (const policy::GpuModel& model : policy.gpus) {
        settings.gpu_weights.push_back({model.name, model.weight.value});
    }
    for (const policy::FairShare::Part& part : policy.fair_share.shares) {
        machine.shares.push_back({part.account, "", "", part.shares.value});
    }
    for (const policy::Pool& pool : policy.pools) {
        if (pool.lend) {
            settings.timing.preempt_exempt =
                std::max(settings.timing.preempt_exempt, pool.lend->min_run.value);
        }
    }
}

Seconds rounded_up(Seconds duration)
{
    constexpr Seconds k_step = std::chrono::minutes{10};
    return std::max(k_step, (duration + k_step - Seconds{1}) / k_step * k_step);
}

/// The time limit that a run's user states; nullopt: none. Which of the short runs have one depends
/// on their position in the trace, so that users behave the same under every policy.
std::optional<Seconds> stated_time(const TraceJob& job, std::size_t index, Declared declared)
{
    if (job.limit) {
        return job.limit;
    }
    const bool does =
        declared == Declared::honestly || (job.duration <= k_short_run && index * 7919 % 1000 < 14);
    return does ? std::optional(rounded_up(job.duration)) : std::nullopt;
}

/// Whether a run that fits into one job can continue from a checkpoint; by its position, as above.
bool continues(const TraceJob& job, std::size_t index, const UserModel& user_model)
{
    return job.duration > k_short_run &&
           static_cast<int>(index * 6007 % 100) < user_model.checkpointed_percent;
}

int most_gpus_on_a_node(const Machine& machine)
{
    int most = 1;
    for (const Node& node : machine.nodes) {
        most = std::max(most, node.gpus);
    }
    return most;
}

/// The model that a run has requested; empty if no pool has it, as with the trace of another site,
/// or if one has it beside others, since a simulated node has one model.
std::string model_of(const TraceJob& traced, const Policy& policy)
{
    bool is_known = false;
    for (const policy::Pool& pool : policy.pools) {
        const auto& gpus = pool.gpus.value;
        const bool has = std::any_of(gpus.begin(), gpus.end(), [&](const policy::GpuCount& gpu) {
            return gpu.model == traced.model;
        });
        if (has && gpus.size() > 1) {
            return "";
        }
        is_known = is_known || has;
    }
    return is_known && traced.shares == 0 ? traced.model : "";
}

Job job_of(const TraceJob& traced, std::size_t index, const Policy& policy, int most_on_a_node)
{
    Job job;
    job.id = index + 1;
    job.submit = traced.submit;
    job.duration = traced.duration;
    job.gpus = traced.gpus;
    job.shares = traced.shares;
    job.model = model_of(traced, policy);
    job.nodes = std::max(traced.nodes, (traced.gpus + most_on_a_node - 1) / most_on_a_node);
    job.account = !traced.account.empty() ? traced.account : traced.partition;
    job.user = !traced.user.empty() ? traced.user : job.account;
    return job;
}

Submission submission_of(const Job& job, std::optional<Seconds> time)
{
    Submission submission;
    submission.user_name = job.user;
    submission.account = job.account;
    submission.comment = k_comment_prefix; // every job of a simulation is a run of gpuq
    submission.min_nodes = static_cast<std::uint32_t>(job.nodes);
    if (job.shares > 0) {
        submission.min_nodes = 1;
        submission.tres.per_node = fmt::format("gres:shard:{}", job.shares);
    } else {
        submission.tres.per_job = job.model.empty()
                                      ? fmt::format("gres:gpu:{}", job.gpus)
                                      : fmt::format("gres:gpu:{}:{}", job.model, job.gpus);
        if (job.nodes == 1) {
            submission.tres.per_node = submission.tres.per_job;
        }
    }
    if (time) {
        submission.time_limit =
            static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::minutes>(*time).count());
    }
    return submission;
}

Chain chain_of(Seconds limit, Seconds asked, std::vector<int> partitions)
{
    return {limit, asked, std::move(partitions), k_gap, k_start, k_saves};
}

/// Routes runs on a machine that has the partitions and QOS of a policy.
class Router {
public:
    Router(const Rules& rules, const Machine& machine)
        : m_rules(rules)
    {
        for (std::size_t i = 0; i < machine.partitions.size(); ++i) {
            m_partitions[machine.partitions[i].name] = static_cast<int>(i);
        }
        for (std::size_t i = 0; i < machine.qos.size(); ++i) {
            m_qos[machine.qos[i].name] = static_cast<int>(i);
        }
        for (const Rules::QueueRules& queue : rules.queues()) {
            if (queue.queue->chain) {
                m_chains.push_back({&queue, link_of(*queue.queue)});
            }
        }
        std::stable_sort(m_chains.begin(), m_chains.end(), [](const Chained& a, const Chained& b) {
            return a.queue->queue->max_time.value > b.queue->queue->max_time.value;
        });
    }

    /// Returns the policy's message if it refuses the run, else nullopt. A run that no queue
    /// accepts as a whole is submitted as its first link, if a queue has chains. With `continues`,
    /// it is a chain even if it fits into one link.
    std::optional<std::string> route(Job& job, std::optional<Seconds> time, bool continues) const
    {
        const Verdict whole = decide(m_rules, submission_of(job, time), {});
        if (whole.outcome == Verdict::Outcome::accept) {
            submit_as(job, whole);
            job.limit = time ? *time : Seconds{std::chrono::minutes{whole.time_limit.value_or(1)}};
            if (job.duration > job.limit) {
                job.chain = further_links(job, time.value_or(Seconds{0}));
            } else if (continues) {
                const policy::Queue& queue = *m_rules.of_partition(whole.partitions.front())->queue;
                job.chain =
                    chain_of(queue.max_time.value, time.value_or(Seconds{0}), job.partitions);
            }
            return std::nullopt;
        }
        if (const auto first = time ? link_for(job, *time) : std::nullopt) {
            submit_as(job, first->verdict);
            job.limit = std::min(*time, first->length);
            job.chain = chain_of(first->length, *time, job.partitions);
            return std::nullopt;
        }
        return fmt::format("{}", fmt::join(refusal_messages(whole, job, time), "; "));
    }

private:
    /// A queue in which runs continue beyond its time limit.
    struct Chained {
        const Rules::QueueRules* queue;
        Seconds link;
    };
    struct Link {
        Verdict verdict;
        Seconds length;
    };

    static Seconds link_of(const policy::Queue& queue)
    {
        return queue.chain->link ? std::min(queue.chain->link->value, queue.max_time.value)
                                 : queue.max_time.value;
    }

    void submit_as(Job& job, const Verdict& verdict) const
    {
        job.partitions = indexes(verdict);
        job.qos = m_qos.at(verdict.qos);
    }

    std::vector<int> indexes(const Verdict& verdict) const
    {
        std::vector<int> partitions;
        for (const std::string& name : verdict.partitions) {
            partitions.push_back(m_partitions.at(name));
        }
        return partitions;
    }

    /// A link of at most `most` in the longest queue that has chains and accepts this user's run,
    /// as chosen by `gpuq run`; nullopt if there is none.
    std::optional<Link> link_for(const Job& job, Seconds most) const
    {
        for (const Chained& chained : m_chains) {
            Submission submission = submission_of(job, std::min(most, chained.link));
            submission.partition = chained.queue->queue_partitions.front().partition;
            Verdict verdict = decide(m_rules, submission, {});
            if (verdict.outcome == Verdict::Outcome::accept) {
                return Link{std::move(verdict), chained.link};
            }
        }
        return std::nullopt;
    }

    /// The further links of a run that is not done when its first link ends.
    std::optional<Chain> further_links(const Job& job, Seconds asked) const
    {
        const auto link = link_for(job, Seconds::max());
        return link ? std::optional(chain_of(link->length, asked, indexes(link->verdict)))
                    : std::nullopt;
    }

    /// The reasons for a refusal; for a run that would continue as a chain, those for refusing a
    /// link of it.
    std::vector<std::string> refusal_messages(const Verdict& whole, const Job& job,
                                              std::optional<Seconds> time) const
    {
        if (time && !m_chains.empty() && *time > m_chains.front().link) {
            Verdict link = decide(m_rules, submission_of(job, m_chains.front().link), {});
            if (link.outcome == Verdict::Outcome::refuse) {
                return std::move(link.messages);
            }
        }
        return whole.messages;
    }

    const Rules& m_rules;
    std::map<std::string, int> m_partitions;
    std::map<std::string, int> m_qos;
    std::vector<Chained> m_chains; ///< longest first
};

/// In a trace without users, it is unknown which jobs a limit per user would affect.
void lift_user_limits(std::vector<Qos>& all)
{
    for (Qos& qos : all) {
        qos.gpus_per_user.reset();
        qos.jobs_per_user.reset();
        qos.submitted_per_user.reset();
        qos.gpu_minutes_per_user.reset();
        qos.shares_per_user.reset();
    }
}

/// The rules of a policy at each of its hours, and the machine that they make.
class Calendar {
public:
    /// Of a policy that has hours.
    Calendar(const Policy& policy, const std::vector<HoursChange>& changes)
    {
        std::map<std::string, std::size_t> known;
        for (const HoursChange& change : changes) {
            const auto [found, is_new] = known.try_emplace(change.open, m_rules.size());
            if (is_new) {
                m_rules.emplace_back(policy_at(policy, change.wall));
            }
            m_changes.push_back({change.time, found->second});
        }
    }
    /// Of a policy that has none.
    explicit Calendar(const Policy& policy)
    {
        m_rules.emplace_back(policy);
        m_changes.push_back({Seconds{0}, 0});
    }

    /// Adds the queues at time zero, and at all hours.
    void add_to(Machine& machine, const PoolNodes& nodes, bool has_users)
    {
        for (const Rules& rules : m_rules) {
            Machine made;
            add_queues(rules, nodes, made);
            if (!has_users) {
                lift_user_limits(made.qos);
            }
            machine.settings.preempts = machine.settings.preempts || made.settings.preempts;
            machine.hours.push_back({std::move(made.partitions), std::move(made.qos)});
        }
        machine.partitions = machine.hours.front().partitions;
        machine.qos = machine.hours.front().qos;
        machine.changes.assign(m_changes.begin() + 1, m_changes.end());
        if (m_changes.size() == 1) {
            machine.hours.clear();
        }
        for (const Rules& rules : m_rules) {
            m_routers.emplace_back(rules, machine);
        }
    }

    const Router& router_at(Seconds time) const
    {
        const auto next =
            std::partition_point(m_changes.begin(), m_changes.end(),
                                 [&](const HoursFrom& change) { return change.time <= time; });
        return m_routers[std::prev(next)->hours];
    }

private:
    std::deque<Rules> m_rules;
    std::deque<Router> m_routers;     ///< likewise
    std::vector<HoursFrom> m_changes; ///< indexes into both; the first one is at time zero
};

Calendar calendar_of(const Policy& policy, const Trace& trace)
{
    const Seconds end = trace.jobs.empty() ? Seconds{0} : trace.jobs.back().submit;
    const auto changes = changes_of_hours(policy, trace.clock, end + k_after_last);
    return changes.empty() ? Calendar(policy) : Calendar(policy, changes);
}

} // namespace

Result<Scenario> under_policy(const Rules& rules, const Trace& trace, const UserModel& user_model)
{
    Scenario scenario;
    TRY_ASSIGN(const PoolNodes nodes, add_nodes(rules.policy(), scenario.machine));
    const bool has_users = std::any_of(trace.jobs.begin(), trace.jobs.end(),
                                       [](const TraceJob& job) { return !job.user.empty(); });
    Calendar calendar = calendar_of(rules.policy(), trace);
    calendar.add_to(scenario.machine, nodes, has_users);
    add_settings(rules.policy(), scenario.machine);
    const int most = most_gpus_on_a_node(scenario.machine);
    scenario.jobs.reserve(trace.jobs.size());
    scenario.of_trace.reserve(trace.jobs.size());
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        Job job = job_of(trace.jobs[i], i, rules.policy(), most);
        auto refused = calendar.router_at(job.submit)
                           .route(job, stated_time(trace.jobs[i], i, user_model.declared),
                                  continues(trace.jobs[i], i, user_model));
        if (refused) {
            scenario.refused.emplace(i, *std::move(refused));
            continue;
        }
        scenario.jobs.push_back(std::move(job));
        scenario.of_trace.push_back(i);
    }
    return scenario;
}

Result<Scenario> as_plain_queue(const Rules& rules, const Trace& trace, const UserModel& user_model)
{
    Scenario scenario;
    TRY(add_nodes(rules.policy(), scenario.machine));
    Partition partition;
    partition.name = "plain";
    partition.max_time = k_plain_limit;
    partition.default_time = k_plain_limit;
    for (std::size_t i = 0; i < scenario.machine.nodes.size(); ++i) {
        partition.nodes.push_back(static_cast<int>(i));
    }
    scenario.machine.partitions.push_back(std::move(partition));
    const int most = most_gpus_on_a_node(scenario.machine);
    scenario.jobs.reserve(trace.jobs.size());
    scenario.of_trace.reserve(trace.jobs.size());
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
        Job job = job_of(trace.jobs[i], i, rules.policy(), most);
        const auto time = stated_time(trace.jobs[i], i, user_model.declared);
        job.partitions = {0};
        job.limit = std::min(time.value_or(k_plain_limit), k_plain_limit);
        if (job.duration > job.limit) {
            job.chain = chain_of(k_plain_limit, time.value_or(Seconds{0}), {0});
        }
        scenario.jobs.push_back(std::move(job));
        scenario.of_trace.push_back(i);
    }
    return scenario;
}

} // namespace gpuq::sim
