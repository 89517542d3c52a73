// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/in_force.h"

#include "cli/base/message.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/policy_text.h"
#include "cli/queries/site_context.h"
#include "core/comment.h"
#include "core/walltime.h"
#include "govern/apply.h"
#include "policy/calendar.h"
#include "policy/queue_partitions.h"
#include "policy/sentences.h"
#include "ports/clock.h"
#include "ports/nodes.h"
#include "runs/queues/queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace gpuq::cli {

Result<std::optional<policy::Policy>> applied_policy(Admin& admin)
{
    TRY_ASSIGN(const auto text, admin.read(govern::k_applied));
    if (!text) {
        return std::optional<policy::Policy>{};
    }
    auto reading = policy::read_policy(*text, govern::k_applied);
    return reading && !has_errors(reading->findings) ? std::optional(std::move(reading->policy))
                                                     : std::nullopt;
}

namespace {

/// The policy in force with its calendar, as policy_in_force() describes.
std::optional<policy::Policy> found_policy(Services& queue_partitions)
{
    if (const auto admin = queue_partitions.admin()) {
        if (auto applied = applied_policy(**admin); applied && *applied) {
            return *std::move(applied);
        }
    }
    auto loaded = load_policy(queue_partitions, std::nullopt);
    if (!loaded && loaded.error().kind == Error::Kind::denied) {
        print_message("no policy is used: " + loaded.error().text);
    }
    return loaded && !has_errors(loaded->reading.findings)
               ? std::optional(std::move(loaded->reading.policy))
               : std::nullopt;
}

} // namespace

std::optional<policy::Policy> policy_in_force(Services& queue_partitions,
                                              std::optional<Time> moment)
{
    auto policy = found_policy(queue_partitions);
    const Time at = moment ? *moment : queue_partitions.clock().now();
    return policy ? std::optional(policy_at(*std::move(policy), policy::to_local(at)))
                  : std::nullopt;
}

std::map<std::string, ChainLimits> chains_of(const policy::Policy& policy)
{
    std::map<std::string, ChainLimits> chains;
    for (const policy::Queue& queue : policy.queues) {
        ChainLimits& limits = chains[queue.name];
        if (!queue.chain) {
            continue;
        }
        limits.allowed = true;
        if (queue.chain->link) {
            limits.link = queue.chain->link->value;
        }
        if (queue.chain->links) {
            limits.links = queue.chain->links->value;
        }
        if (queue.chain->gpu_hours) {
            limits.gpu_time = std::chrono::hours(queue.chain->gpu_hours->value);
        }
        if (queue.chain->credentials) {
            limits.when_short = when_short_from_word(queue.chain->credentials->value);
        }
    }
    return chains;
}

namespace {

bool gives(const policy::Queue& queue, const GpuRequest& gpus)
{
    const auto& whole = queue.limits.job.gpus;
    return gpus.share ? queue.limits.most_shares_of_a_job().has_value()
                      : gpus.count == 0 || !whole || whole->value > 0;
}

} // namespace

std::map<std::string, SiteContext::Entry> entry_of(const policy::Policy& policy,
                                                   const std::string& user,
                                                   const std::optional<std::string>& account,
                                                   const std::optional<GpuRequest>& gpus)
{
    using Entry = SiteContext::Entry;
    const auto names = [](const std::vector<std::string>& list, const std::string& name) {
        return std::find(list.begin(), list.end(), name) != list.end();
    };
    std::map<std::string, Entry> entry;
    for (const policy::Queue& queue : policy.queues) {
        const policy::Access& access = queue.access;
        const bool open = access.is_open() || names(access.users, user) ||
                          (account && names(access.accounts, policy::stored_account(*account)));
        if (gpus && !gives(queue, *gpus)) {
            entry[queue.name] = Entry::closed;
            continue;
        }
        entry[queue.name] = open                                 ? Entry::open
                            : account || access.accounts.empty() ? Entry::closed
                                                                 : Entry::unknown;
    }
    return entry;
}

QueueGpus gpus_of(const policy::Policy& policy)
{
    const auto memory_of = [&](const std::string& name) {
        const policy::GpuModel* model = policy.model(name);
        return model != nullptr && model->memory_mib ? std::optional(model->memory_mib->value)
                                                     : memory_of_model(name);
    };
    QueueGpus gpus;
    for (const policy::Queue& queue : policy.queues) {
        bool known = true;
        std::map<std::string, int> most;
        for (const policy::QueuePartition& queue_partition : partitions_of(policy, queue)) {
            known = known && queue_partition.pool->has_models();
            for (const policy::GpuCount& count : queue_partition.pool->gpus.value) {
                most[count.model] = std::max(most[count.model], count.count);
            }
        }
        for (const auto& [model, count] : most) {
            const bool given = !queue.models || std::count(queue.models->value.begin(),
                                                           queue.models->value.end(), model) > 0;
            if (known && given) {
                gpus[queue.name].push_back({model, count, memory_of(model)});
            }
        }
    }
    return gpus;
}

IdleRules idle_of(const policy::Policy& policy)
{
    IdleRules rules;
    for (const policy::Queue& queue : policy.queues) {
        if (!queue.idle) {
            continue;
        }
        for (const policy::QueuePartition& queue_partition : partitions_of(policy, queue)) {
            rules[queue_partition.partition] = {queue.idle->after.value, queue.idle->warn.value,
                                                queue.idle->start.value,
                                                queue.idle->max_per_hour.value};
        }
    }
    return rules;
}

std::vector<NotebookIdle> notebook_idle_of(const policy::Policy& policy)
{
    std::vector<NotebookIdle> rules;
    for (const policy::Queue& queue : policy.queues) {
        if (const auto& rule = queue.notebook_idle) {
            rules.push_back(
                {queue.name, rule->value,
                 policy::duration_text(rule->value) + policy::place_of(policy, rule->line)});
        }
    }
    return rules;
}

UnusedRules take_policy(SiteContext& here, Services& queue_partitions,
                        const std::vector<Partition>& partitions,
                        const std::optional<std::string>& account,
                        const std::optional<GpuRequest>& gpus)
{
    const auto ruled = [](const Partition& queue) { return queue.ruled; };
    const auto policy = std::any_of(partitions.begin(), partitions.end(), ruled)
                            ? policy_in_force(queue_partitions)
                            : std::nullopt;
    if (!policy) {
        return {};
    }
    here.chains = chains_of(*policy);
    here.gpus = gpus_of(*policy);
    here.entry = entry_of(*policy, user_name(), account, gpus);
    return {idle_of(*policy), notebook_idle_of(*policy)};
}

namespace {

/// A queue of the policy of a moment that takes such a run, or null.
const policy::Queue* queue_that_takes(const policy::Policy& policy,
                                      const std::optional<std::string>& account,
                                      const GpuRequest& gpus, std::chrono::minutes walltime)
{
    const auto entry = entry_of(policy, user_name(), account, gpus);
    const auto takes = [&](const policy::Queue& queue) {
        const auto partitions = partitions_of(policy, queue);
        return queue.max_time.value >= walltime &&
               entry.at(queue.name) == SiteContext::Entry::open &&
               std::any_of(partitions.begin(), partitions.end(),
                           [](const auto& partition) { return !partition.closed; });
    };
    const auto found = std::find_if(policy.queues.begin(), policy.queues.end(), takes);
    return found == policy.queues.end() ? nullptr : &*found;
}

} // namespace

std::string allowed_later(Services& services, const std::optional<std::string>& account,
                          const GpuRequest& gpus, std::chrono::minutes walltime)
{
    const auto policy = found_policy(services);
    const Time now = services.clock().now();
    for (std::optional moment(now); policy && moment && *moment - now < std::chrono::days{7};
         moment = next_change(*policy, *moment)) {
        const policy::LocalMinutes local = policy::to_local(*moment);
        const policy::Policy then = policy_at(*policy, local);
        if (const auto* queue = queue_that_takes(then, account, gpus, walltime)) {
            return *moment == now ? "" // refused for another reason
                                  : fmt::format("from {} on, queue {} takes {}",
                                                policy::weekday_and_time(local), queue->name,
                                                to_text(queue->max_time.value));
        }
    }
    return "";
}

namespace {

/// Whether a pool of these queues is open in the policy of a moment; true if none is in it.
bool is_one_open(const policy::Policy& policy, const std::string& queues)
{
    bool is_known = false;
    for (const policy::Queue& queue : policy.queues) {
        for (const policy::QueuePartition& one : partitions_of(policy, queue)) {
            if (names_queue(queues, queue.name) || names_queue(queues, one.partition)) {
                is_known = true;
                if (!one.closed) {
                    return true;
                }
            }
        }
    }
    return !is_known;
}

/// When all pools of these queues are closed next, within a week and before `last`.
std::optional<Time> closes_at(const policy::Policy& policy, const std::string& queues, Time now,
                              Time last)
{
    constexpr std::chrono::days k_enough{8};
    last = std::min<Time>(last, now + k_enough);
    for (auto moment = next_change(policy, now); moment && *moment < last;
         moment = next_change(policy, *moment)) {
        if (!is_one_open(policy_at(policy, policy::to_local(*moment)), queues)) {
            return moment;
        }
    }
    return std::nullopt;
}

} // namespace

StartForecast within_hours(Services& services, const std::string& queues, StartForecast forecast)
{
    const auto policy = forecast.p50 ? found_policy(services) : std::nullopt;
    const Time now = services.clock().now();
    const auto end =
        policy ? closes_at(*policy, queues, now, forecast.p90.value_or(Time::max())) : std::nullopt;
    if (!end) {
        return forecast;
    }
    forecast.p90.reset();
    forecast.unknown = fmt::format("the hours of its pools end on {}",
                                   policy::weekday_and_time(policy::to_local(*end)));
    if (*forecast.p50 >= *end) {
        forecast.p50.reset();
        forecast.unknown += ", before it would start";
    }
    return forecast;
}

std::optional<PolicyAnswer> policy_answer(Services& queue_partitions, const Request& request,
                                          const std::string& user)
{
    auto policy = policy_in_force(queue_partitions);
    if (!policy) {
        return std::nullopt;
    }
    const bool by_account =
        std::any_of(policy->queues.begin(), policy->queues.end(),
                    [](const policy::Queue& queue) { return !queue.access.accounts.empty(); });
    const policy::Rules rules(*std::move(policy));
    Explanation explanation;
    explanation.job = submission_of(request, user);
    explanation.verdict = decide(rules, explanation.job, {});
    const bool refused = explanation.verdict.outcome == policy::Verdict::Outcome::refuse;
    if (refused) {
        explanation.remedies = policy_remedies(rules, explanation.job);
    }
    PolicyAnswer answer{refused && (request.account || !by_account), {}};
    std::istringstream text(explain_text(rules, explanation));
    for (std::string line; std::getline(text, line);) {
        answer.lines.push_back(line);
    }
    return answer;
}

policy::Submission submission_of(const Request& request, const std::string& user)
{
    policy::Submission job;
    job.user_name = user;
    job.account = request.account.value_or("");
    job.partition = request.queue;
    job.time_limit = static_cast<std::uint32_t>(job_spec(request).walltime.count());
    job.min_nodes = static_cast<std::uint32_t>(request.nodes);
    job.comment = fmt::format("{}{}", k_comment_prefix, request.sweep ? k_worker_suffix : "");
    const JobSpec spec = job_spec(request);
    ask_for(job, spec.cpus_per_node, spec.memory_mib_per_node);
    const std::string gres = gres_text(request.gpus);
    job.tres.per_node = gres.empty() ? "" : "gres:" + gres;
    return job;
}

} // namespace gpuq::cli
