// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/obstacles.h"

#include "core/lower_case.h"
#include "govern/conf.h"
#include "govern/plan.h"
#include "govern/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::govern {
namespace {

using Kind = SlurmObject::Kind;
using Sentences = std::vector<std::string>;

void require_setting(const SlurmObject& need, const SlurmState& actual,
                     const std::string& slurm_conf_path, Sentences& list)
{
    const SlurmObject* const setting = find(actual.objects, Kind::setting, need.name);
    const std::string value = setting != nullptr ? setting->fields.at("value") : "";
    const std::string now = value.empty() ? "not set" : value;
    if (const auto is = need.fields.find("is"); is != need.fields.end()) {
        if (lower_case(value) != is->second) {
            list.push_back(fmt::format("{}: {} must be {} (it is now: {}); then restart slurmctld",
                                       slurm_conf_path, need.name, is->second, now));
        }
        return;
    }
    if (need.fields.contains("unset")) {
        if (!value.empty()) {
            list.push_back(fmt::format("{}: {} must not be set (it is now: {}): remove it, then "
                                       "scontrol reconfigure",
                                       slurm_conf_path, need.name, now));
        }
        return;
    }
    if (const auto set = need.fields.find("set"); set != need.fields.end()) {
        if (value.empty() || value == "(null)" || value.starts_with("0 ") || value == "0") {
            list.push_back(
                fmt::format("{}: {} must be set, for example to {} (line {} of the policy has "
                            "a probe: man gpuq-policy(5)); then scontrol reconfigure",
                            slurm_conf_path, need.name, set->second, need.line));
        }
        return;
    }
    std::set<std::string> has = as_set(lower_case(value));
    if (const auto without = need.fields.find("without"); without != need.fields.end()) {
        if (has.contains(lower_case(without->second))) {
            list.push_back(fmt::format("{}: {} must not contain {} (it is now: {}); then restart "
                                       "slurmctld",
                                       slurm_conf_path, need.name, without->second, now));
        }
        return;
    }
    std::set<std::string> lacks;
    for (const std::string& word : as_set(need.fields.at("contains"))) {
        if (!has.contains(lower_case(word))) {
            lacks.insert(word);
        }
    }
    if (!lacks.empty()) {
        list.push_back(fmt::format("{}: {} needs {} too (it is now: {}); then restart slurmctld",
                                   slurm_conf_path, need.name, joined(lacks), now));
    }
}

void require_include(const Texts& texts, Sentences& list)
{
    if (!texts.include_is_read) {
        list.push_back(fmt::format("{} does not include the policy's file: create one ({}) that "
                                   "contains a comment, and add the line `include {}` at the end",
                                   texts.slurm_conf_path, texts.include_path, texts.include_path));
    }
}

/// Whether the line defines the same object.
bool is_double(const ConfLine& line, const SlurmObject& object)
{
    if (object.kind == Kind::partition) {
        const auto names = partitions_in(line);
        return std::find(names.begin(), names.end(), object.name) != names.end();
    }
    return object.kind == Kind::setting && lower_case(object.name) == line.key;
}

void refuse_doubles(const std::vector<SlurmObject>& desired, const Texts& texts, Sentences& list)
{
    for (const auto& [path, text] : texts.site) {
        for (const ConfLine& line : lines_of(text)) {
            for (const SlurmObject& object : desired) {
                if (is_double(line, object)) {
                    list.push_back(fmt::format("{}:{}: {} {} is defined by the policy: remove it",
                                               path, line.number, word(object.kind), object.name));
                }
            }
        }
    }
}

/// True if only root can use the partition, or if it starts no jobs.
bool is_shut(const SlurmObject& partition)
{
    const auto has = [&](const std::string& field, std::initializer_list<std::string_view> values) {
        const auto found = partition.fields.find(field);
        return found != partition.fields.end() &&
               std::find(values.begin(), values.end(), found->second) != values.end();
    };
    return has("State", {"DOWN", "DRAIN", "INACTIVE"}) || has("RootOnly", {"YES"}) ||
           has("AllowGroups", {"root"}) || has("AllowAccounts", {"root"});
}

struct SitesPartition {
    std::string place; ///< `/etc/slurm/slurm.conf:12`
    std::string name;
};

std::vector<SitesPartition> sites_partitions(const Texts& texts)
{
    std::vector<SitesPartition> list;
    for (const auto& [path, text] : texts.site) {
        for (const ConfLine& line : lines_of(text)) {
            for (std::string& name : partitions_in(line)) {
                list.push_back({fmt::format("{}:{}", path, line.number), std::move(name)});
            }
        }
    }
    return list;
}

/// A partition of the site itself on the policy's nodes: jobs in it bypass the policy's rules.
struct WayAround {
    SitesPartition partition;
    std::set<std::string> nodes;
    bool is_shut = false;
};

std::vector<WayAround> ways_around(const std::vector<SlurmObject>& desired,
                                   const SlurmState& actual, const Texts& texts)
{
    const auto nodes_of = [&](const SlurmObject& partition) {
        const auto nodes = partition.fields.find("Nodes");
        return nodes == partition.fields.end() ? std::set<std::string>{}
                                               : as_nodes(nodes->second, actual.nodes);
    };
    std::set<std::string> ruled;
    for (const SlurmObject& object : desired) {
        if (object.kind == Kind::partition) {
            ruled.merge(nodes_of(object));
        }
    }
    std::vector<WayAround> ways;
    for (SitesPartition& site : sites_partitions(texts)) {
        const SlurmObject* const partition = find(actual.objects, Kind::partition, site.name);
        if (partition == nullptr || find(desired, Kind::partition, site.name) != nullptr) {
            continue;
        }
        std::set<std::string> common;
        for (const std::string& node : nodes_of(*partition)) {
            if (ruled.contains(node)) {
                common.insert(node);
            }
        }
        if (!common.empty()) {
            ways.push_back({std::move(site), std::move(common), is_shut(*partition)});
        }
    }
    return ways;
}

void refuse_ways_around(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                        const Texts& texts, Sentences& list)
{
    for (const WayAround& way : ways_around(desired, actual, texts)) {
        if (!way.is_shut) {
            list.push_back(fmt::format(
                "{}: partition {} leads to nodes of the policy ({}) around its rules: remove it, "
                "or remove these nodes from it; State=DRAIN lets its jobs end first",
                way.partition.place, way.partition.name, joined(way.nodes)));
        }
    }
}

/// `ada@lab, ben@lab and 12 more`
std::string few_of(const std::vector<std::string>& names)
{
    constexpr std::size_t k_named = 3;
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), k_named));
    const std::string named = fmt::format("{}", fmt::join(names.begin(), end, ", "));
    return names.size() <= k_named ? named
                                   : fmt::format("{} and {} more", named, names.size() - k_named);
}

/// Notes the limits that a policy leaves unchanged (plan.h, gpu_limits).
void note_limits(const std::vector<SlurmObject>& desired, const SlurmState& actual, Sentences& list)
{
    SlurmState gpus = actual;
    std::map<std::string, std::vector<std::string>> limited;
    for (const AssociationLimit& one : actual.limits) {
        gpus.limits = {one};
        if (!rules_all_gpus(desired, actual) || gpu_limits(gpus).empty()) {
            limited[one.limit].push_back(one.who);
        }
    }
    for (const auto& [limit, names] : limited) {
        list.push_back(fmt::format("in addition to the policy, Slurm's accounting limits {} by {} "
                                   "(sacctmgr show assoc)",
                                   few_of(names), limit));
    }
}

void require_users(const SlurmObject& object, const SlurmState& actual, Sentences& list)
{
    const auto known = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto field = [&](const std::string& name) {
        const auto found = object.fields.find(name);
        return found == object.fields.end() ? std::set<std::string>{} : as_set(found->second);
    };
    std::set<std::string> accounts = field(object.kind == Kind::access ? "accounts" : "Accounts");
    if (object.kind == Kind::share) {
        accounts.insert(object.name);
    }
    for (const std::string& name : accounts) {
        if (!known(actual.accounts, name)) {
            list.push_back(fmt::format("Slurm's accounting knows no account {0} (line {1} of the "
                                       "policy): sacctmgr add account {0}",
                                       name, object.line));
        }
    }
    for (const std::string& name : field(object.kind == Kind::access ? "users" : "Users")) {
        if (!known(actual.users, name)) {
            list.push_back(fmt::format("Slurm's accounting knows no user {0} (line {1} of the "
                                       "policy): sacctmgr add user {0} account=...",
                                       name, object.line));
        }
    }
}

void require_nodes(const SlurmObject& object, const SlurmState& actual, Sentences& list)
{
    for (const std::string& node : as_nodes(object.fields.at("Nodes"), actual.nodes)) {
        if (std::find(actual.nodes.begin(), actual.nodes.end(), node) == actual.nodes.end()) {
            list.push_back(fmt::format("Slurm has no node {} ({} {}, line {} of the policy)", node,
                                       word(object.kind), object.name, object.line));
        }
    }
}

/// The nodes of the pool, by number of threads per core.
std::map<int, std::set<std::string>> by_threads(const SlurmObject& pool, const SlurmState& actual)
{
    std::map<int, std::set<std::string>> nodes;
    for (const std::string& node : as_nodes(pool.fields.at("Nodes"), actual.nodes)) {
        const auto found = actual.threads_per_core.find(node);
        if (found != actual.threads_per_core.end()) {
            nodes[found->second].insert(node);
        }
    }
    return nodes;
}

/// With more threads than the policy assumes, a job would get more CPUs than its share.
void require_threads(const SlurmObject& pool, const SlurmState& actual, Sentences& list)
{
    const auto most = as_number(pool.fields.at("ThreadsPerCore")).value_or(1);
    for (const auto& [threads, nodes] : by_threads(pool, actual)) {
        if (threads > most) {
            list.push_back(fmt::format("pool {}, line {} of the policy: nodes {} have {} threads "
                                       "per core: add threads_per_core: {}",
                                       pool.name, pool.line, joined(nodes), threads, threads));
        }
    }
}

/// With fewer, a job that restricts its threads is limited more than necessary.
void note_threads(const SlurmObject& pool, const SlurmState& actual, Sentences& list)
{
    const auto nodes = by_threads(pool, actual);
    if (pool.fields.at("stated") == "NO" && nodes.size() == 1 && nodes.begin()->first == 1) {
        list.push_back(fmt::format("pool {}, line {} of the policy: its nodes have one thread per "
                                   "core; threads_per_core: 1 lets jobs with --threads-per-core "
                                   "or --hint use all CPUs that come with their GPUs",
                                   pool.name, pool.line));
    }
}

} // namespace

bool is_ours(std::string_view script)
{
    return script.empty() || script.starts_with(k_generated) || script.starts_with(k_yields);
}

std::vector<std::string> missing_settings(const std::vector<SlurmObject>& desired,
                                          const SlurmState& actual,
                                          const std::string& slurm_conf_path)
{
    Sentences list;
    for (const SlurmObject& object : desired) {
        if (object.kind == Kind::requirement) {
            require_setting(object, actual, slurm_conf_path, list);
        }
    }
    return list;
}

std::vector<std::string> notes(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                               const Texts& texts)
{
    Sentences list;
    if (desired.empty()) {
        return list;
    }
    for (const WayAround& way : ways_around(desired, actual, texts)) {
        if (way.is_shut) {
            list.push_back(
                fmt::format("{}: partition {} is shut: opened, it would lead to nodes of "
                            "the policy ({}) around its rules",
                            way.partition.place, way.partition.name, joined(way.nodes)));
        }
    }
    note_limits(desired, actual, list);
    return list;
}

void add_hardware_notes(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                        std::vector<std::string>& list)
{
    for (const SlurmObject& object : desired) {
        if (object.kind == Kind::hardware) {
            note_threads(object, actual, list);
        }
    }
}

std::vector<std::string> obstacles(const std::vector<SlurmObject>& desired,
                                   const SlurmState& actual, const Texts& texts)
{
    Sentences list;
    if (desired.empty()) {
        return list;
    }
    require_include(texts, list);
    for (const SlurmObject& object : desired) {
        switch (object.kind) {
        case Kind::requirement:
            require_setting(object, actual, texts.slurm_conf_path, list);
            break;
        case Kind::hardware:
            require_threads(object, actual, list);
            break;
        case Kind::access:
        case Kind::share:
            require_users(object, actual, list);
            break;
        case Kind::reservation:
            require_users(object, actual, list);
            [[fallthrough]];
        case Kind::partition:
            require_nodes(object, actual, list);
            break;
        default:
            break;
        }
    }
    refuse_doubles(desired, texts, list);
    refuse_ways_around(desired, actual, texts, list);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
}

} // namespace gpuq::govern
