// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/reserve.h"

#include "core/number.h"
#include "core/walltime.h"
#include "policy/queue_partitions.h"
#include "policy/sentences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq::policy {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_allowed(const ReserveRule& rule, const ReserveRequest& request)
{
    return contains(rule.users, request.user) ||
           std::any_of(request.accounts.begin(), request.accounts.end(),
                       [&](const std::string& name) { return contains(rule.accounts, name); });
}

std::string for_whom(const ReserveRule& rule)
{
    std::vector<std::string> whom;
    if (!rule.users.empty()) {
        whom.push_back(fmt::format("users {}", fmt::join(rule.users, ", ")));
    }
    if (!rule.accounts.empty()) {
        whom.push_back(fmt::format("accounts {}", fmt::join(rule.accounts, ", ")));
    }
    return fmt::format("{}", fmt::join(whom, " and "));
}

/// The most GPUs of others that are reserved at one time during the request. The number rises only
/// when one of them begins.
int most_reserved(const ReserveRequest& request, const std::vector<MadeReservation>& others)
{
    const Time end = request.start + request.duration;
    int most = 0;
    const auto reserved_at = [&](Time at) {
        int gpus = 0;
        for (const MadeReservation& one : others) {
            gpus += one.start <= at && at < one.end ? one.gpus : 0;
        }
        return gpus;
    };
    most = reserved_at(request.start);
    for (const MadeReservation& one : others) {
        if (request.start < one.start && one.start < end) {
            most = std::max(most, reserved_at(one.start));
        }
    }
    return most;
}

std::string gpus_text(int gpus)
{
    return counted(static_cast<std::uint64_t>(gpus), "GPU");
}

} // namespace

std::optional<std::string> refusal_of(const Policy& policy, const ReserveRequest& request,
                                      const std::vector<MadeReservation>& others, Time now)
{
    if (!policy.reserve) {
        return "the policy in force has no rules for reservations (reserve, man gpuq-policy)" +
               place_of(policy, 0);
    }
    const ReserveRule& rule = *policy.reserve;
    const auto at = [&](int line) { return place_of(policy, line > 0 ? line : rule.line); };
    if (!is_allowed(rule, request)) {
        return fmt::format("only {} may reserve GPUs{}", for_whom(rule), at(rule.line));
    }
    if (request.duration > rule.longest.value) {
        return fmt::format("a reservation lasts at most {}{}", to_text(rule.longest.value),
                           at(rule.longest.line));
    }
    if (request.start > now + rule.ahead.value) {
        return fmt::format("a reservation begins at most {} ahead{}", to_text(rule.ahead.value),
                           at(rule.ahead.line));
    }
    const int reserved = most_reserved(request, others);
    if (rule.most && request.gpus + reserved > rule.most->value) {
        return fmt::format("at most {} may be reserved at the same time{}: this is {}{}",
                           gpus_text(rule.most->value), at(rule.most->line),
                           gpus_text(request.gpus),
                           reserved > 0 ? fmt::format(", and others have {}", reserved) : "");
    }
    return std::nullopt;
}

bool depends_on_accounts(const Policy& policy, const std::string& user)
{
    return policy.reserve && !contains(policy.reserve->users, user) &&
           !policy.reserve->accounts.empty();
}

std::vector<const Pool*> reservable_pools(const Policy& policy, const std::string& model)
{
    std::vector<const Pool*> pools;
    const auto add = [&](const Pool& pool) {
        if ((model.empty() || pool.has_model(model)) && !partition_of(policy, pool).empty()) {
            pools.push_back(&pool);
        }
    };
    if (policy.reserve && policy.reserve->pools) {
        for (const std::string& name : policy.reserve->pools->value) {
            add(*policy.pool(name)); // it exists: policy/check.cpp
        }
    } else {
        std::for_each(policy.pools.begin(), policy.pools.end(), add);
    }
    return pools;
}

std::string partition_of(const Policy& policy, const Pool& pool)
{
    for (const Queue& queue : policy.queues) {
        for (const QueuePartition& one : partitions_of(policy, queue)) {
            if (one.pool->name == pool.name) {
                return one.partition;
            }
        }
    }
    return "";
}

} // namespace gpuq::policy
