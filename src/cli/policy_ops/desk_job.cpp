// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/desk_job.h"

#include "cli/policy_ops/caller.h"
#include "cli/policy_ops/help_desk.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/sudo.h"
#include "core/number.h"
#include "ports/clock.h"
#include "ports/cluster.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace gpuq::cli {

Result<std::optional<RunStatus>> job_for_desk(Invocation& invocation, const std::string& verb)
{
    Services& services = invocation.services;
    const auto caller = caller_of(services);
    const auto policy = caller ? policy_as_helper(services, *caller) : std::nullopt;
    if (!policy) {
        return std::optional<RunStatus>();
    }
    const auto& arguments = invocation.arguments;
    const auto number = arguments.size() == 1 ? whole_number(arguments.front()) : std::nullopt;
    if (!number || *number == 0 || *number > std::numeric_limits<std::uint32_t>::max() ||
        invocation.options.has("compare") || invocation.options.has("html")) {
        return fail(Error::Kind::usage, "by sudo, only the number of one Slurm job");
    }
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    TRY_ASSIGN(const std::string name, cluster->name());
    TRY_ASSIGN(const Job job, cluster->job(JobId{static_cast<std::uint32_t>(*number)}));
    TRY(check_desk(*policy, *caller, job, policy::DeskRight::see));
    TRY(record_desk(services, *caller, job, verb));
    return std::optional(as_plain_job(job, name, services.clock().now()));
}

Result<int> show_by_helper(Invocation& invocation, const std::string& verb, const Error& error)
{
    const std::string& argument = invocation.arguments.front();
    const auto helper = error.kind == Error::Kind::missing && whole_number(argument)
                            ? desk_helper(invocation.services, policy::DeskRight::see)
                            : std::nullopt;
    if (!helper) {
        return error;
    }
    std::vector<std::string> arguments{verb, argument};
    if (invocation.globals.json) {
        arguments.insert(arguments.begin() + 1, "--json");
    }
    return run_as(invocation.services, *helper, arguments, "gpuq-stop(1)", SudoOutput::shown);
}

} // namespace gpuq::cli
