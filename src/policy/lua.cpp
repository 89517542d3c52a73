// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/lua.h"

#include "core/fnv.h"
#include "policy/ambiguous_gpus.h"
#include "policy/extend.h"
#include "policy/queue_partitions.h"
#include "policy/sentences.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace gpuq::policy {
namespace {

constexpr std::string_view k_engine =
#include "policy/job_submit.lua.inc"
    ;

constexpr std::string_view k_version = "local P = { version = \"";

/// A text as it is, between brackets that do not occur in it; Lua skips the first line break, and
/// reads each CR LF as LF.
std::string long_literal(const std::string& text)
{
    std::string level;
    while (text.find("]" + level + "]") != std::string::npos || text.ends_with("]" + level)) {
        level += '=';
    }
    return fmt::format("[{0}[\n{1}]{0}]", level, text);
}

/// `{ ["a"] = true, ["b"] = true }`
std::string set_of(const std::vector<std::string>& names)
{
    std::string text = "{";
    for (const std::string& name : names) {
        text += fmt::format(" [{}] = true,", lua_literal(name));
    }
    return text + " }";
}

template <typename T>
std::string or_nil(const Maybe<T>& rule)
{
    return rule ? fmt::format("{}", rule->value) : "nil";
}

std::string partition_text(const Policy& policy, const QueuePartition& queue_partition)
{
    std::vector<std::string> models;
    for (const GpuCount& gpu : queue_partition.pool->gpus.value) {
        models.push_back(gpu.model);
    }
    std::vector<std::string> courses;
    for (const Course& course : policy.courses) {
        if (queue_partition.pool->has_some_of(course)) {
            courses.push_back(course.name);
        }
    }
    return fmt::format(
        "            {{ partition = {}, pool = {}, models = {}, per_node = {}, "
        "threads = {}, courses = {}, shares = {} }},\n",
        lua_literal(queue_partition.partition), lua_literal(queue_partition.pool->name),
        queue_partition.pool->has_models() ? set_of(models) : "nil",
        !models.empty() ? std::to_string(queue_partition.pool->gpus_per_node()) : "nil",
        queue_partition.pool->threads(), set_of(courses),
        queue_partition.pool->shares ? std::to_string(queue_partition.pool->shares->per_gpu.value)
                                     : "nil");
}

std::string sentences_text(const Sentences& sentences)
{
    return fmt::format(
        "        say = {{\n"
        "            access = {}, model = {},\n"
        "            time = {}, gpus = {},\n"
        "            nodes = {}, fit = {}, mix = {},\n"
        "            gpuless = {}, share = {},\n"
        "            cores = {},\n"
        "            spread = {},\n"
        "            uneven = {},\n"
        "            whole = {},\n"
        "            qos = {}, undeclared = {},\n"
        "            through = {}, sweep = {}, shares = {},\n"
        "            share_count = {}, share_fit = {},\n"
        "        }},\n",
        lua_literal(sentences.access), lua_literal(sentences.model), lua_literal(sentences.time),
        lua_literal(sentences.gpus), lua_literal(sentences.nodes), lua_literal(sentences.fit),
        lua_literal(sentences.mix), lua_literal(sentences.gpuless), lua_literal(sentences.share),
        lua_literal(sentences.cores), lua_literal(sentences.spread), lua_literal(sentences.uneven),
        lua_literal(sentences.whole), lua_literal(sentences.qos), lua_literal(sentences.undeclared),
        lua_literal(sentences.through), lua_literal(sentences.sweep), lua_literal(sentences.shares),
        lua_literal(sentences.share_count), lua_literal(sentences.share_fit));
}

std::string queue_text(const Policy& policy, const Queue& queue)
{
    std::string text = fmt::format(
        "    {{\n"
        "        name = {}, qos = {}, max_time = {}, default_time = {},\n"
        "        job_gpus = {}, job_nodes = {}, job_shares = {}, models = {},\n"
        "        cpus = {}, memory = {}, extended = {},\n"
        "        open = {}, users = {}, accounts = {}, through = {},\n",
        lua_literal(queue.name), lua_literal(qos_of(queue)), queue.max_time.value.count(),
        queue.default_time.value.count(), or_nil(queue.limits.most_gpus_of_a_job()),
        or_nil(queue.limits.job.nodes), or_nil(queue.limits.most_shares_of_a_job()),
        queue.models ? set_of(queue.models->value) : "nil", or_nil(queue.cpus_per_gpu),
        or_nil(queue.memory_per_gpu_mib),
        queue.extend ? std::to_string(longest_extended(queue).count()) : "nil",
        queue.access.is_open(), set_of(queue.access.users), set_of(queue.access.accounts),
        queue.through ? lua_literal(queue.through->value) : "nil");
    text += sentences_text(sentences_of(policy, queue)) + "        doors = {\n";
    for (const QueuePartition& queue_partition : partitions_of(policy, queue)) {
        text += partition_text(policy, queue_partition);
    }
    return text + "        },\n    },\n";
}

std::string default_queue_text(const Policy& policy)
{
    for (std::size_t i = 0; i < policy.queues.size(); ++i) {
        if (policy.default_queue && policy.queues[i].name == policy.default_queue->value) {
            return std::to_string(i + 1);
        }
    }
    return "nil";
}

/// Everything but the version, which is computed from it.
std::string body(const Policy& policy)
{
    std::string text = "P.queues = {\n";
    std::string queue_of = "P.queue_of = {\n";
    for (std::size_t i = 0; i < policy.queues.size(); ++i) {
        text += queue_text(policy, policy.queues[i]);
        for (const QueuePartition& queue_partition : partitions_of(policy, policy.queues[i])) {
            queue_of +=
                fmt::format("    [{}] = {},\n", lua_literal(queue_partition.partition), i + 1);
        }
    }
    text += "}\n" + queue_of + "}\nP.courses = {\n";
    for (const Course& course : policy.courses) {
        text +=
            fmt::format("    {{ name = {}, users = {}, accounts = {} }},\n",
                        lua_literal(course.name), set_of(course.users), set_of(course.accounts));
    }
    text += fmt::format(
        "}}\nP.default_queue = {}\nP.nowhere = {}\nP.mixed = {}\nP.parts = {}\nP.foreign = {}\n"
        "P.ambiguous = {}\nP.bound = {}\n",
        default_queue_text(policy), lua_literal(nowhere(policy)), lua_literal(mixed_partitions()),
        lua_literal(no_parts()), lua_literal(no_foreign_gpus()), lua_literal(no_ambiguous_gpus()),
        lua_literal(no_bound_gpus()));
    return text + std::string(k_engine);
}

} // namespace

std::string lua_literal(const std::string& text)
{
    std::string literal = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            literal += {'\\', c};
        } else if (byte < ' ' || byte >= 0x7f) {
            literal += fmt::format("\\{:03}", byte);
        } else {
            literal += c;
        }
    }
    return literal + "\"";
}

std::string script_version(const std::string& text)
{
    return fmt::format("{:016x}", fnv1a(text));
}

CombinedScript with_site_script(const std::string& script, const std::string& site)
{
    const std::size_t version = script.find(k_version) + k_version.size();
    const std::size_t next = script.find('\n', version) + 1;
    CombinedScript combined{script, script_version(script + site)};
    combined.text.insert(next, fmt::format("P.site = {}\n", long_literal(site)));
    combined.text.replace(version, combined.version.size(), combined.version);
    return combined;
}

std::string job_submit_lua(const Policy& policy)
{
    const std::string text = body(policy);
    return fmt::format("-- Made by `gpuq policy apply`; a change by hand is found by `gpuq policy "
                       "drift`.\n{}{}\" }}\n",
                       k_version, script_version(text)) +
           text;
}

std::string lua_version(const Policy& policy)
{
    return script_version(body(policy));
}

} // namespace gpuq::policy
