// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/sections.h"

#include "core/strings.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::policy {
namespace {

using yaml::Node;
using Need = Reader::Need;

constexpr seconds k_idle_warning = std::chrono::minutes(5);

Share share_in(Reader& reader, std::string_view what, const Node& node)
{
    Share share;
    const auto into = [&reader](Maybe<int>& limit, int least) {
        return [&reader, &limit, least](const Node& value) { limit = reader.number(value, least); };
    };
    reader.map(node, what,
               {
                   {"gpus", into(share.gpus, 1)},
                   {"soft_gpus", into(share.soft_gpus, 1)},
                   {"jobs", into(share.jobs, 1)},
                   {"queued", into(share.queued, 1)},
                   {"gpu_hours_ahead", into(share.gpu_hours_ahead, 1)},
                   {"shares", into(share.shares, 1)},
               });
    return share;
}

Limits limits_in(Reader& reader, const Node& node)
{
    Limits limits;
    const auto into = [&reader](Share& share, std::string_view what) {
        return
            [&reader, &share, what](const Node& value) { share = share_in(reader, what, value); };
    };
    const auto job = [&](const Node& value) {
        reader.map(
            value, "the limits of a job",
            {
                {"gpus", [&](const Node& gpus) { limits.job.gpus = reader.number(gpus, 0); }},
                {"nodes", [&](const Node& nodes) { limits.job.nodes = reader.number(nodes, 1); }},
                {"shares",
                 [&](const Node& shares) { limits.job.shares = reader.number(shares, 1); }},
            });
    };
    reader.map(node, "limits",
               {
                   {"user", into(limits.user, "the limits of a user")},
                   {"account", into(limits.account, "the limits of an account")},
                   {"all", into(limits.all, "the limits of all together")},
                   {"job", job},
               });
    return limits;
}

Access access_in(Reader& reader, const Node& node)
{
    Access access;
    access.line = node.line;
    reader.map(
        node, "allow",
        {
            {"users", [&](const Node& value) { access.users = reader.user_names(value).value; }},
            {"accounts",
             [&](const Node& value) { access.accounts = reader.user_names(value).value; }},
            {"ask", [&](const Node& value) { access.ask = reader.text(value); }},
        });
    if (access.is_open()) {
        reader.note(node, "missing",
                    "allow needs 'users' or 'accounts'; without allow, the queue is open to all "
                    "users");
    }
    return access;
}

WaitTarget wait_in(Reader& reader, const Node& node)
{
    WaitTarget wait;
    reader.map(node, "wait",
               {
                   {"p50", [&](const Node& value) { wait.p50 = reader.walltime(value); }},
                   {"p95", [&](const Node& value) { wait.p95 = reader.walltime(value); }},
                   {"max", [&](const Node& value) { wait.max = reader.walltime(value); }},
               });
    return wait;
}

ChainRule chain_in(Reader& reader, const Node& node)
{
    ChainRule chain;
    chain.line = node.line;
    reader.map(
        node, "chain",
        {
            {"link", [&](const Node& value) { chain.link = reader.walltime(value); }},
            {"links", [&](const Node& value) { chain.links = reader.number(value, 1); }},
            {"gpu_hours", [&](const Node& value) { chain.gpu_hours = reader.number(value, 1); }},
            {"credentials",
             [&](const Node& value) {
                 chain.credentials = reader.word(value, {"hold", "run", "fail"});
             }},
        });
    return chain;
}

IdleRule idle_in(Reader& reader, const Node& node)
{
    IdleRule idle;
    idle.line = node.line;
    reader.map(
        node, "idle",
        {
            {"after", [&](const Node& value) { idle.after = reader.duration(value); }, Need::yes},
            {"warn", [&](const Node& value) { idle.warn = reader.duration(value); }},
            {"start", [&](const Node& value) { idle.start = reader.duration(value); }},
            {"max_per_hour",
             [&](const Node& value) { idle.max_per_hour = reader.number(value, 1); }},
        });
    if (idle.warn.line == 0) {
        idle.warn.value = std::min<seconds>(k_idle_warning, idle.after.value / 2);
    }
    return idle;
}

/// `nobody_waits | save_known`, or one of them.
Maybe<ExtendConditions> conditions_in(Reader& reader, const Node& node)
{
    Rule<ExtendConditions> conditions{{}, node.line, node.column};
    for (const std::string_view part : split(node.text, "|")) {
        const std::string_view name = trimmed(part);
        Node one = node;
        one.text = name;
        one.column += static_cast<int>((name.empty() ? part : name).data() - node.text.data());
        const std::string word = reader.word(one, {"nobody_waits", "save_known"}).value;
        conditions.value.unless_others_wait =
            conditions.value.unless_others_wait || word == "nobody_waits";
        conditions.value.save_known = conditions.value.save_known || word == "save_known";
    }
    return conditions;
}

ExtendRule extend_in(Reader& reader, const Node& node)
{
    ExtendRule extend;
    extend.line = node.line;
    reader.map(
        node, "extend",
        {
            {"by", [&](const Node& value) { extend.by = reader.walltime(value); }, Need::yes},
            {"times", [&](const Node& value) { extend.times = reader.number(value, 1); }},
            {"if", [&](const Node& value) { extend.only_if = conditions_in(reader, value); }},
        });
    return extend;
}

void per_gpu_in(Reader& reader, Queue& queue, const Node& node)
{
    reader.map(
        node, "per_gpu",
        {
            {"cpus",
             [&](const Node& value) { queue.cpus_per_gpu = reader.number(value, 1, 4096); }},
            {"memory", [&](const Node& value) { queue.memory_per_gpu_mib = reader.memory(value); }},
        });
}

CalendarEntry entry_in(Reader& reader, const Node& node)
{
    CalendarEntry entry;
    entry.line = node.line;
    reader.map(
        node, "an entry of the calendar",
        {
            {"when", [&](const Node& value) { entry.when = when_in(reader, value); }, Need::yes},
            {"time", [&](const Node& value) { entry.max_time = reader.walltime(value); }},
            {"default_time",
             [&](const Node& value) { entry.default_time = reader.walltime(value); }},
            {"limits", [&](const Node& value) { entry.limits = limits_in(reader, value); }},
        });
    if (!entry.max_time && !entry.default_time && entry.limits == Limits{}) {
        reader.note(node, "missing",
                    "an entry of the calendar needs one of 'time', 'default_time' and 'limits'");
    }
    return entry;
}

void calendar_in(Reader& reader, Queue& queue, const Node& node)
{
    if (node.kind != Node::Kind::list) {
        reader.note(node, "not-a-list",
                    "calendar must be a list: `- {when: {days: sat, from: \"08:00\"}, time: 24h}`");
        return;
    }
    for (const Node& item : node.items) {
        queue.calendar.push_back(entry_in(reader, item));
    }
}

} // namespace

Queue queue_in(Reader& reader, const std::string& name, const Node& place, const Node& node)
{
    Queue queue;
    queue.name = name;
    queue.line = place.line;
    reader.map(node, fmt::format("queue {}", name),
               {
                   {"time", [&](const Node& value) { queue.max_time = reader.walltime(value); },
                    Need::yes},
                   {"default_time",
                    [&](const Node& value) { queue.default_time = reader.walltime(value); }},
                   {"pools", [&](const Node& value) { queue.pools = reader.some_names(value); },
                    Need::yes},
                   {"overflow",
                    [&](const Node& value) {
                        queue.overflow = reader.some_names(value, Reader::Empty::accepted);
                    }},
                   {"models", [&](const Node& value) { queue.models = reader.some_names(value); }},
                   {"per_gpu", [&](const Node& value) { per_gpu_in(reader, queue, value); }},
                   {"limits", [&](const Node& value) { queue.limits = limits_in(reader, value); }},
                   {"allow", [&](const Node& value) { queue.access = access_in(reader, value); }},
                   {"wait", [&](const Node& value) { queue.wait = wait_in(reader, value); }},
                   {"chain", [&](const Node& value) { queue.chain = chain_in(reader, value); }},
                   {"idle", [&](const Node& value) { queue.idle = idle_in(reader, value); }},
                   {"notebook_idle",
                    [&](const Node& value) { queue.notebook_idle = reader.duration(value); }},
                   {"extend", [&](const Node& value) { queue.extend = extend_in(reader, value); }},
                   {"through",
                    [&](const Node& value) {
                        queue.through = reader.word(value, {"gpuq", "sweep"});
                    }},
                   {"calendar", [&](const Node& value) { calendar_in(reader, queue, value); }},
               });
    if (queue.default_time.line == 0) {
        queue.default_time.value = queue.max_time.value;
    }
    return queue;
}

} // namespace gpuq::policy
