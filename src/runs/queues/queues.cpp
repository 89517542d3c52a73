// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/queues.h"

#include "core/layout.h"
#include "core/strings.h"
#include "ports/cluster.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace gpuq {
namespace {

using nlohmann::json;

constexpr int k_version = 2;

json minutes_of(const std::optional<std::chrono::minutes>& time)
{
    return time ? json(time->count()) : json();
}

std::optional<std::chrono::minutes> minutes_in(const json& value)
{
    return value.is_null() ? std::nullopt
                           : std::optional(std::chrono::minutes(value.get<std::int64_t>()));
}

json to_json(const Partition& partition)
{
    return {{"name", partition.name},
            {"max_minutes", minutes_of(partition.max_time)},
            {"default_minutes", minutes_of(partition.default_time)},
            {"default", partition.is_default},
            {"up", partition.up},
            {"accepts", partition.accepts},
            {"ruled", partition.ruled},
            {"nodes", partition.nodes},
            {"most_nodes", partition.most_nodes ? json(*partition.most_nodes) : json()},
            {"has_gpus", partition.has_gpus ? json(*partition.has_gpus) : json()},
            {"least_nodes", partition.least_nodes},
            {"restricted", partition.restricted},
            {"accounts", partition.accounts},
            {"denied_accounts", partition.denied_accounts}};
}

Partition partition_in(const json& value)
{
    Partition partition;
    partition.name = value.at("name").get<std::string>();
    partition.max_time = minutes_in(value.at("max_minutes"));
    partition.default_time = minutes_in(value.at("default_minutes"));
    partition.is_default = value.at("default").get<bool>();
    partition.up = value.at("up").get<bool>();
    partition.accepts = value.value("accepts", partition.up);
    partition.ruled = value.value("ruled", false);
    partition.nodes = value.at("nodes").get<std::string>();
    if (const json& most = value.at("most_nodes"); !most.is_null()) {
        partition.most_nodes = most.get<int>();
    }
    if (const auto gpus = value.find("has_gpus"); gpus != value.end() && !gpus->is_null()) {
        partition.has_gpus = gpus->get<bool>();
    }
    partition.least_nodes = value.value("least_nodes", 1);
    partition.restricted = value.value("restricted", false);
    partition.accounts = value.value("accounts", partition.accounts);
    partition.denied_accounts = value.value("denied_accounts", partition.denied_accounts);
    return partition;
}

/// Seconds since the epoch.
std::int64_t seconds_of(Time time)
{
    return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

/// An invalid cache file counts as missing.
std::optional<Queues> kept(Store& store, const std::string& cluster, Time now)
{
    const auto text = store.read(layout::queues(cluster));
    if (!text) {
        return std::nullopt;
    }
    try {
        const json document = json::parse(*text);
        const std::int64_t age = seconds_of(now) - document.at("at").get<std::int64_t>();
        if (document.at("v") != k_version || age < 0 || age > k_queues_are_fresh.count()) {
            return std::nullopt;
        }
        Queues queues{{}, true};
        for (const json& value : document.at("queues")) {
            queues.partitions.push_back(partition_in(value));
        }
        return queues;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

} // namespace

bool names_queue(const std::string& queues, const std::string& queue)
{
    return ("," + queues + ",").find("," + queue + ",") != std::string::npos;
}

bool share_a_queue(std::string_view one, std::string_view other)
{
    const auto names = split(one, ",");
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
        return !name.empty() && names_queue(std::string(other), std::string(name));
    });
}

std::string queue_of(const std::string& queues, const std::string& partition)
{
    std::string name = partition;
    while (!name.empty() && !names_queue(queues, name)) {
        const std::size_t end = name.rfind('-');
        name.erase(end == std::string::npos ? 0 : end);
    }
    return name;
}

Result<Queues> find_queues(Store& store, Cluster& cluster, Clock& clock)
{
    TRY_ASSIGN(const std::string name, cluster.name());
    if (auto queues = kept(store, name, clock.now())) {
        return *std::move(queues);
    }
    return query_queues(cluster);
}

Result<Queues> query_queues(Cluster& cluster)
{
    TRY_ASSIGN(auto partitions, cluster.partitions());
    return Queues{std::move(partitions), false};
}

void keep_queues(Store& store, const std::string& cluster, const Queues& queues, Time now)
{
    if (queues.from_disk) {
        return;
    }
    json list = json::array();
    for (const Partition& partition : queues.partitions) {
        list.push_back(to_json(partition));
    }
    const json document{{"v", k_version}, {"at", seconds_of(now)}, {"queues", std::move(list)}};
    (void)store.write(layout::queues(cluster),
                      document.dump(1, ' ', true, json::error_handler_t::replace) + "\n");
}

} // namespace gpuq
