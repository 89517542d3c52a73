// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/help_desk.h"

#include "cli/policy_ops/in_force.h"
#include "cli/queries/site_context.h"
#include "log/audit.h"
#include "ports/store.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::cli {

std::optional<std::string> desk_helper(Services& services, policy::DeskRight right)
{
    const auto policy = policy_in_force(services);
    return policy && policy->helper && policy::has_right(*policy, user_name(), right)
               ? std::optional(policy->helper->value)
               : std::nullopt;
}

std::optional<policy::Policy> policy_as_helper(Services& services, const Caller& caller)
{
    auto policy = caller.by_sudo ? policy_in_force(services) : std::nullopt;
    return policy && policy->helper && policy->helper->value == user_name() ? std::move(policy)
                                                                            : std::nullopt;
}

Result<void> check_desk(const policy::Policy& policy, const Caller& caller, const Job& job,
                        policy::DeskRight right)
{
    const auto refusal =
        job.uid == caller.uid ? std::nullopt : policy::refusal_of(policy, caller.name, right);
    return refusal ? Result<void>(fail(Error::Kind::denied, fmt::format("job {} is not yours: {}",
                                                                        job.id.value, *refusal)))
                   : Result<void>();
}

Result<void> record_desk(Services& services, const Caller& caller, const Job& job,
                         const std::string& action)
{
    if (job.uid == caller.uid) {
        return {};
    }
    TRY_ASSIGN(Store* const store, services.store());
    return log::audit(store->root() + "/audit.log",
                      fmt::format("for {} of the help desk: {} job {} ({}) of uid {}", caller.name,
                                  action, job.id.value, job.name, job.uid));
}

} // namespace gpuq::cli
