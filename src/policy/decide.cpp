// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/decide.h"

#include "policy/doors.h"
#include "policy/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gpuq::policy {
namespace {

using Words = std::vector<std::string>;

bool contains(const Words& words, const std::string& word)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

Words split(std::string_view text)
{
    Words parts;
    std::size_t begin = 0;
    while (true) {
        const std::size_t end = text.find(',', begin);
        parts.emplace_back(text.substr(begin, end - begin));
        if (end == std::string_view::npos) {
            return parts;
        }
        begin = end + 1;
    }
}

bool may_use(const Queue& queue, const Submission& job)
{
    return queue.access.is_open() || contains(queue.access.users, job.user_name) ||
           contains(queue.access.accounts, job.account);
}

/// What a door is too small for, or has not.
bool has_models(const Door& door, const GpusAsked& asked)
{
    return std::all_of(asked.models.begin(), asked.models.end(),
                       [&](const std::string& model) { return door.pool->has_model(model); });
}

bool has_room(const Door& door, const GpusAsked& asked)
{
    return door.pool->gpus.value.empty() ||
           asked.per_node <= static_cast<std::uint64_t>(door.pool->gpus_per_node());
}

/// The first model that the queue does not give, or null.
const std::string* missing_model(const Policy& policy, const Queue& queue, const GpusAsked& asked)
{
    const auto doors = doors_of(policy, queue);
    for (const std::string& model : asked.models) {
        const bool named = !queue.models || contains(queue.models->value, model);
        const bool there = std::any_of(doors.begin(), doors.end(), [&](const Door& door) {
            return has_models(door, {0, 0, {model}});
        });
        if (!named || !there) {
            return &model;
        }
    }
    return nullptr;
}

/// One queue's answer: the partitions, or why not.
struct Answer {
    Words partitions;
    std::string why;
};

Answer ask(const Policy& policy, const Queue& queue, const Submission& job, const GpusAsked& asked)
{
    const Sentences say = sentences_of(policy, queue);
    const auto refused = [](std::string why) { return Answer{{}, std::move(why)}; };
    const JobLimits& limits = queue.limits.job;
    if (!may_use(queue, job)) {
        return refused(say.access);
    }
    if (const std::string* model = missing_model(policy, queue, asked)) {
        return refused(*model + say.model);
    }
    if (job.time_limit &&
        *job.time_limit > static_cast<std::uint64_t>(queue.max_time.value.count())) {
        return refused(say.time);
    }
    if (limits.gpus && asked.total > static_cast<std::uint64_t>(limits.gpus->value)) {
        return refused(say.gpus);
    }
    if (limits.nodes &&
        job.min_nodes.value_or(1) > static_cast<std::uint32_t>(limits.nodes->value)) {
        return refused(say.nodes);
    }
    if (job.qos && *job.qos != qos_of(queue)) {
        return refused(say.qos);
    }
    Answer answer;
    for (const Door& door : doors_of(policy, queue)) {
        if (has_models(door, asked) && has_room(door, asked)) {
            answer.partitions.push_back(door.partition);
        }
    }
    if (answer.partitions.empty()) {
        answer.why = fmt::format("{}{}", asked.per_node, say.fit);
    }
    return answer;
}

Words on_nodes_of(const Policy& policy, const Queue& queue, const Course& course,
                  const Words& partitions)
{
    Words there;
    for (const Door& door : doors_of(policy, queue)) {
        if (contains(partitions, door.partition) && door.pool->has_some_of(course)) {
            there.push_back(door.partition);
        }
    }
    return there;
}

bool is_of(const Course& course, const Submission& job)
{
    return contains(course.users, job.user_name) || contains(course.accounts, job.account);
}

Verdict accepted(const Policy& policy, const Queue& queue, const Submission& job, Words partitions)
{
    Verdict verdict;
    verdict.outcome = Verdict::Outcome::accept;
    verdict.queue = queue.name;
    verdict.partitions = std::move(partitions);
    verdict.qos = qos_of(queue);
    if (!job.time_limit) {
        verdict.time_limit = static_cast<std::uint32_t>(queue.default_time.value.count());
        verdict.words.push_back(sentences_of(policy, queue).undeclared);
    }
    return verdict;
}

Verdict refused(Words words)
{
    Verdict verdict;
    verdict.outcome = Verdict::Outcome::refuse;
    verdict.words = std::move(words);
    return verdict;
}

/// In a course's nodes, when one is on and takes the job.
std::optional<Verdict> in_course(const Policy& policy, const std::vector<const Queue*>& candidates,
                                 const Submission& job, const GpusAsked& asked,
                                 const Words& courses_on)
{
    for (const Course& course : policy.courses) {
        if (job.reservation || !contains(courses_on, course.name) || !is_of(course, job)) {
            continue;
        }
        for (const Queue* queue : candidates) {
            const Answer answer = ask(policy, *queue, job, asked);
            Words there = on_nodes_of(policy, *queue, course, answer.partitions);
            if (!there.empty()) {
                Verdict verdict = accepted(policy, *queue, job, std::move(there));
                verdict.reservation = course.name;
                return verdict;
            }
        }
    }
    return std::nullopt;
}

Verdict judge(const Policy& policy, const std::vector<const Queue*>& candidates,
              const Submission& job, const Words& courses_on)
{
    const GpusAsked asked = gpus_asked(job);
    if (auto verdict = in_course(policy, candidates, job, asked, courses_on)) {
        return *std::move(verdict);
    }
    Words reasons;
    for (const Queue* queue : candidates) {
        Answer answer = ask(policy, *queue, job, asked);
        if (!answer.partitions.empty()) {
            return accepted(policy, *queue, job, std::move(answer.partitions));
        }
        reasons.push_back(std::move(answer.why));
    }
    if (candidates.size() > 1) {
        reasons.insert(reasons.begin(), nowhere(policy));
    }
    return refused(std::move(reasons));
}

/// The queues that a list of partitions speaks of; `mixed` when some are not the policy's.
struct Asked {
    std::vector<const Queue*> queues;
    bool mixed = false;
};

Asked queues_in(const Policy& policy, const std::string& partitions)
{
    Asked asked;
    bool others = false;
    for (const std::string& name : split(partitions)) {
        const Queue* queue = queue_of_partition(policy, name);
        others = others || queue == nullptr;
        const bool known =
            std::find(asked.queues.begin(), asked.queues.end(), queue) != asked.queues.end();
        if (queue != nullptr && !known) {
            asked.queues.push_back(queue);
        }
    }
    asked.mixed = others && !asked.queues.empty();
    return asked;
}

std::vector<const Queue*> queues_for_anybody(const Policy& policy, const Submission& job)
{
    std::vector<const Queue*> queues;
    if (gpus_asked(job).total > 0) {
        for (const Queue& queue : policy.queues) {
            queues.push_back(&queue);
        }
    } else if (policy.default_queue) {
        if (const Queue* queue = policy.queue(policy.default_queue->value)) {
            queues.push_back(queue);
        }
    }
    return queues;
}

} // namespace

Verdict decide(const Policy& policy, const Submission& job, const Words& courses_on)
{
    Asked asked;
    if (job.partition) {
        asked = queues_in(policy, *job.partition);
    } else {
        asked.queues = queues_for_anybody(policy, job);
    }
    if (asked.mixed) {
        return refused({mixed_partitions()});
    }
    return asked.queues.empty() ? Verdict{} : judge(policy, asked.queues, job, courses_on);
}

Verdict decide_change(const Policy& policy, const Submission& before, const Submission& after,
                      bool partition_changed)
{
    const Asked was = queues_in(policy, before.partition.value_or(""));
    const Asked is = partition_changed ? queues_in(policy, after.partition.value_or("")) : was;
    if (is.mixed || (!was.queues.empty() && is.queues.empty())) {
        return refused({mixed_partitions()});
    }
    if (is.queues.empty()) {
        return {};
    }
    Submission job = after;
    if (partition_changed && after.qos == before.qos) {
        job.qos.reset(); // it came with the queue that the job leaves
    }
    Verdict verdict = judge(policy, is.queues, job, {});
    if (!partition_changed) {
        verdict.partitions.clear();
        verdict.qos.clear();
    }
    return verdict;
}

Submission submission_of(const Case& test)
{
    Submission job;
    job.user_name = test.user;
    job.account = test.account;
    job.partition = test.queue;
    job.min_nodes = static_cast<std::uint32_t>(test.nodes);
    if (test.time) {
        job.time_limit = static_cast<std::uint32_t>(test.time->count());
    }
    const auto gpus = parse_gpu_counts(test.gpus);
    for (const GpuCount& gpu : gpus ? *gpus : std::vector<GpuCount>{}) {
        job.tres_per_node += fmt::format("{}gres:gpu{}:{}", job.tres_per_node.empty() ? "" : ",",
                                         gpu.model.empty() ? "" : ":" + gpu.model, gpu.count);
    }
    return job;
}

} // namespace gpuq::policy
