// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/page_output.h"
#include "cli/base/table_output.h"
#include "cli/commands/usage_targets.h"
#include "cli/queries/budget.h"
#include "cli/queries/site_context.h"
#include "cli/render/grants_text.h"
#include "cli/render/usage_text.h"
#include "ports/accounting.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "from", "TIME", "start; default: the beginning of this month"},
    Option{0, "to", "TIME", "end; default: now"},
    Option{0, "by", "LIST", "rows by user, account, lab, queue, model; default: by user"},
    Option{0, "user", "NAME", "jobs of this user; may be repeated; default: your own"},
    Option{'A', "account", "NAME", "jobs of this account, all users; may be repeated"},
    Option{'a', "all", "", "jobs of all users"},
    Option{0, "left", "", "remaining granted GPU time in each of your accounts"},
    Option{0, "budget", "", "used, reserved and remaining GPU-hours of the budget in GPUQ_BUDGET"},
    Option{0, "targets", "", "how long jobs waited, and whether the policy's targets are met"},
    Option{0, "policy", "FILE", "with --targets: this policy instead of the one in force"},
    Option{0, "prometheus", "", "with --targets: print metrics for Prometheus"},
    Option{0, "csv", "", "print comma-separated values"},
    Option{0, "html", "FILE", "write a page for a browser; -: to standard output"}};

Result<UseQuestion> question_of(const Options& options, Time now)
{
    UseQuestion question;
    question.from = begin_of_month(now);
    question.to = now;
    if (const auto from = options.value("from")) {
        TRY_ASSIGN(question.from, parse_moment(*from, now));
    }
    if (const auto to = options.value("to")) {
        TRY_ASSIGN(question.to, parse_moment(*to, now));
    }
    if (question.from >= question.to) {
        return fail(Error::Kind::usage, "--from must be before --to");
    }
    question.users = options.values("user");
    question.accounts = options.values("account");
    const bool all_users = options.has("all");
    if (all_users && (!question.users.empty() || !question.accounts.empty())) {
        return fail(Error::Kind::usage, "--all covers all users: leave out --user and --account");
    }
    if (!all_users && question.users.empty() && question.accounts.empty()) {
        question.users = {user_name()};
    }
    return question;
}

/// The number of jobs with shares of unknown size.
int unknown_sizes(const std::vector<UseRecord>& records)
{
    std::set<JobId> jobs;
    for (const UseRecord& record : records) {
        if (record.use.share && !record.use.share->per_gpu) {
            jobs.insert(record.use.id);
        }
    }
    return static_cast<int>(jobs.size());
}

/// Only slurmctld knows the nodes.
Result<void> find_share_sizes(Services& services, std::vector<UseRecord>& records, GpuUse& use)
{
    use.jobs_of_unknown_size = unknown_sizes(records);
    if (use.jobs_of_unknown_size == 0) {
        return {};
    }
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    const auto nodes = cluster->nodes();
    use.knows_nodes = nodes || nodes.error().kind != Error::Kind::unreachable;
    if (use.knows_nodes) {
        TRY(nodes);
        set_shares_per_gpu(records, *nodes);
        use.jobs_of_unknown_size = unknown_sizes(records);
    }
    return {};
}

Result<GpuUse> find_use(Invocation& invocation)
{
    const Options& options = invocation.options;
    TRY_ASSIGN(UseQuestion question, question_of(options, invocation.services.clock().now()));
    TRY_ASSIGN(auto by, parse_use_by(options.value("by").value_or("user")));
    question.with_labs = std::find(by.begin(), by.end(), UseBy::lab) != by.end();
    // Advice is for users who can follow it, and all users together have many steps.
    const bool is_own = question.accounts.empty() && question.users == std::vector{user_name()};
    TRY_ASSIGN(UseRecords* const accounting, invocation.services.use_records());
    TRY_ASSIGN(std::vector<UseRecord> records,
               accounting->use_records(question, is_own ? Steps::with : Steps::leave_out));
    GpuUse use{question.from, question.to, std::move(by), {}, {}, {}};
    TRY(find_share_sizes(invocation.services, records, use));
    use.rows = gpu_hours(records, use.by);
    for (const UseRow& sum : gpu_hours(records, {})) {
        use.total = sum;
    }
    if (is_own) {
        use.advice = advice_on(records);
    }
    return use;
}

Result<GrantsLeft> find_left(Invocation& invocation)
{
    const Options& options = invocation.options;
    for (const char* other : {"from", "to", "by", "account", "all"}) {
        if (options.has(other)) {
            return fail(
                Error::Kind::usage,
                fmt::format("--left shows the current state of one user: leave out --{}", other));
        }
    }
    const auto users = options.values("user");
    if (users.size() > 1) {
        return fail(Error::Kind::usage, "--left takes one user: give --user once");
    }
    GrantsLeft left{users.empty() ? user_name() : users.front(), {}};
    TRY_ASSIGN(Accounting* const accounting, invocation.services.accounting());
    TRY_ASSIGN(left.accounts, accounting->grants(left.user));
    return left;
}

Result<int> usage_left(Invocation& invocation)
{
    TRY_ASSIGN(const GrantsLeft left, find_left(invocation));
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(grants_document(left))));
    } else if (invocation.options.has("csv")) {
        TRY(print_text(grants_csv(left)));
    } else {
        TRY(print_table(grants_table(left), invocation.globals, invocation.services));
    }
    return 0;
}

Result<int> usage_budget(Invocation& invocation)
{
    TRY_ASSIGN(const auto budget, budget_of(invocation.services));
    if (!budget) {
        return fail(Error::Kind::usage, "--budget: GPUQ_BUDGET=NAME:HOURS is not set");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const BudgetUse use, budget_use(invocation.services, *store, *budget));
    if (invocation.globals.json) {
        const auto hours = [](std::chrono::seconds time) {
            return std::chrono::duration<double, std::ratio<3600>>(time).count();
        };
        TRY(print_text(report::json_document({{"budget", budget->name},
                                              {"gpu_hours_limit", hours(use.limit)},
                                              {"gpu_hours_used", hours(use.used)},
                                              {"gpu_hours_reserved", hours(use.reserved)},
                                              {"gpu_hours_left", hours(use.left())}})));
        return 0;
    }
    TRY(print_line(fmt::format("budget {}: of {} GPU-hours, {} are used and {} reserved by active "
                               "runs; {} are left",
                               budget->name, hours_text(use.limit), hours_text(use.used),
                               hours_text(use.reserved), hours_text(use.left()))));
    return 0;
}

Result<void> print_use(const GpuUse& use, Invocation& invocation)
{
    if (const std::string text = unknown_sizes_text(use); !text.empty()) {
        print_message(text);
    }
    if (invocation.options.has("csv")) {
        return print_text(usage_csv(use));
    }
    TRY(print_table(usage_table(use), invocation.globals, invocation.services));
    for (const UseAdvice& advice : use.advice) {
        print_note(invocation.globals.quiet, advice.text);
    }
    return {};
}

Result<int> usage(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("usage: unexpected argument '{}'", invocation.arguments.front()));
    }
    if (invocation.options.has("targets")) {
        return usage_targets(invocation);
    }
    for (const char* other : {"policy", "prometheus"}) {
        if (invocation.options.has(other)) {
            return fail(Error::Kind::usage, fmt::format("--{} goes with --targets", other));
        }
    }
    if (invocation.options.has("budget")) {
        return usage_budget(invocation);
    }
    if (invocation.options.has("left") && invocation.options.has("html")) {
        return fail(Error::Kind::usage, "--html: leave out --left");
    }
    if (invocation.options.has("left")) {
        return usage_left(invocation);
    }
    TRY_ASSIGN(const PageOutput output, PageOutput::of(invocation));
    TRY_ASSIGN(const GpuUse use, find_use(invocation));
    return output.write({.page = [&] { return usage_page(use); },
                         .document = [&] { return usage_document(use); },
                         .print_text = [&] { return print_use(use, invocation); }});
}

} // namespace

const Verb k_usage_verb{"usage", "gpuq usage [options]",
                        "GPU-hours by user, account, lab, queue or model, from Slurm's accounting",
                        usage, k_options};

} // namespace gpuq::cli
