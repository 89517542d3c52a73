// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/usage_targets.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/in_force.h"
#include "cli/render/targets_text.h"
#include "cli/render/usage_text.h"
#include "core/number.h"
#include "ports/clock.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

/// Enough jobs for a p95 on all but the quietest queues.
constexpr std::chrono::hours k_span{24 * 7};

Result<policy::Policy> policy_of(Invocation& invocation)
{
    if (const auto path = invocation.options.value("policy")) {
        TRY_ASSIGN(LoadedPolicy loaded, load_valid_policy(invocation.services, *path));
        return std::move(loaded.reading.policy);
    }
    auto in_force = policy_in_force(invocation.services);
    return in_force ? Result<policy::Policy>(*std::move(in_force))
                    : fail(Error::Kind::missing, "no policy with wait targets is in force: name a "
                                                 "file with --policy FILE (man gpuq-policy.5)");
}

Result<TargetResults> find_targets(Invocation& invocation)
{
    TargetResults results;
    results.to = invocation.services.clock().now();
    results.since = results.to - k_span;
    if (const auto from = invocation.options.value("from")) {
        TRY_ASSIGN(results.since, parse_moment(*from, results.to));
    }
    if (results.since >= results.to) {
        return fail(Error::Kind::usage, "--from must be before now");
    }
    TRY_ASSIGN(const policy::Rules rules, policy_of(invocation));
    results.policy = rules.policy().file;
    TRY_ASSIGN(const std::string text, invocation.services.jobs_since(results.since));
    TRY_ASSIGN(const auto found, sim::parse_waits(text, "sacct", results.to));
    results.queues = sim::waits_by_queue(rules, found.waits);
    results.withdrawn = found.withdrawn;
    return results;
}

void report_provisional(const TargetResults& results)
{
    std::size_t waiting = 0;
    for (const sim::QueueWaits& queue : results.queues) {
        waiting += queue.all.waiting;
    }
    if (waiting > 0) {
        print_message(
            fmt::format("{} still wait{} and count{} with that so far: values with >= may grow",
                        counted(waiting, "job"), waiting == 1 ? "s" : "", waiting == 1 ? "s" : ""));
    }
}

} // namespace

Result<int> usage_targets(Invocation& invocation)
{
    const Options& options = invocation.options;
    for (const char* other : {"to", "by", "user", "account", "all", "left", "html"}) {
        if (options.has(other)) {
            return fail(Error::Kind::usage,
                        fmt::format("--targets covers all users until now: leave out --{}", other));
        }
    }
    if (options.has("prometheus") && (options.has("csv") || invocation.globals.json)) {
        return fail(Error::Kind::usage, "--prometheus, --csv and --json: one of them");
    }
    TRY_ASSIGN(const TargetResults results, find_targets(invocation));
    if (options.has("prometheus")) {
        TRY(print_text(targets_metrics(results)));
    } else if (invocation.globals.json) {
        TRY(print_text(report::json_document(targets_document(results))));
    } else if (options.has("csv")) {
        TRY(print_text(targets_csv(results)));
    } else {
        TRY(print_table(targets_table(results), invocation.globals, invocation.services));
        if (!invocation.globals.quiet) {
            report_provisional(results);
        }
    }
    return missed(results) > 0 ? 1 : 0;
}

} // namespace gpuq::cli
