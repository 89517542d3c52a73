// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/simulation.h"

#include "core/number.h"
#include "core/timestamp.h"
#include "core/walltime.h"
#include "policy/calendar.h"
#include "ports/clock.h"
#include "report/ending_text.h"
#include "sim/simulate.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::cli {
namespace {

using sim::Declared;

Result<sim::UserModel> user_model_of(const Options& options)
{
    const std::string word = options.value("declared").value_or("honestly");
    if (word != "honestly" && word != "rarely") {
        return fail(Error::Kind::usage, "--declared: honestly or rarely");
    }
    const auto percent = whole_number(options.value("checkpointed").value_or("0"));
    if (!percent || *percent > 100) {
        return fail(Error::Kind::usage, "--checkpointed: a number from 0 to 100");
    }
    return sim::UserModel{word == "honestly" ? Declared::honestly : Declared::rarely,
                          static_cast<int>(*percent)};
}

/// A duration as for `-t`, or in weeks: `8w`.
Result<std::chrono::seconds> span_of(const std::string& typed)
{
    const bool in_weeks = typed.ends_with('w');
    if (typed.find_first_not_of("0123456789") == std::string::npos) {
        return fail(Error::Kind::usage, fmt::format("'{}' has no unit: 14d, 8w, 12h", typed));
    }
    TRY_ASSIGN(const std::chrono::seconds span,
               parse_duration(in_weeks ? typed.substr(0, typed.size() - 1) + "d" : typed));
    return in_weeks ? span * 7 : span;
}

/// Jobs submitted within the duration `typed` before now.
Result<Workload> of_accounting(Services& services, const std::string& typed)
{
    const auto span = span_of(typed);
    if (!span || *span <= std::chrono::seconds{0}) {
        return fail(Error::Kind::usage,
                    fmt::format("--from-accounting: {}",
                                span ? "expected a time longer than 0" : span.error().text));
    }
    const std::string last = "the last " + describe(*span);
    const auto text = services.jobs_since(services.clock().now() - *span);
    if (!text) {
        return text.error().kind != Error::Kind::unreachable
                   ? text.error()
                   : fail(Error::Kind::unreachable,
                          text.error().text + "; where sacct works, save the output of sacct -P to "
                                              "a file (man gpuq-policy) and use --trace FILE");
    }
    Workload workload{"accounting of " + last, {}};
    TRY_ASSIGN(workload.trace, sim::parse_trace(*text, workload.name));
    if (workload.trace.jobs.empty()) {
        return fail(
            Error::Kind::missing,
            fmt::format("accounting shows no job of {} that had a GPU and started ({} without "
                        "GPUs, {} not started): use a longer time, or ask a user who may see all "
                        "jobs (PrivateData in slurmdbd.conf)",
                        last, workload.trace.without_gpus, workload.trace.never_started));
    }
    return workload;
}

/// Without jobs, all targets would be met: that is not a result.
Error nothing_in(const Workload& workload)
{
    return fail(Error::Kind::usage,
                fmt::format("{}: nothing to simulate: no job in it had a GPU and ran ({} without "
                            "GPUs, {} not started)",
                            sanitised(workload.name), workload.trace.without_gpus,
                            workload.trace.never_started));
}

Result<std::optional<sim::Failures>> failures_in(const Options& options)
{
    const auto text = options.value("node-failures");
    if (!text) {
        return std::optional<sim::Failures>{};
    }
    const std::size_t comma = std::min(text->find(','), text->size());
    sim::Failures failures;
    const auto every = span_of(text->substr(0, comma));
    const auto down = comma < text->size() ? span_of(text->substr(comma + 1))
                                           : Result<std::chrono::seconds>(failures.down);
    if (!every || !down || *every < std::chrono::hours{1} || *down < std::chrono::minutes{1}) {
        return fail(Error::Kind::usage,
                    fmt::format("--node-failures: '{}': expected a time of at least 1h, as 90d, or "
                                "this and for how long a node is down, as 90d,4h",
                                *text));
    }
    failures.every = *every;
    failures.down = *down;
    return std::optional(failures);
}

/// Sets the date of a trace.
Result<void> take_begin(const Options& options, sim::Trace& trace)
{
    const auto text = options.value("begins");
    if (!text) {
        return {};
    }
    const auto begin = time_from_local(*text);
    if (!begin) {
        return fail(
            Error::Kind::usage,
            fmt::format("--begins: '{}' is not a date and time, as 2026-11-02T08:00", *text));
    }
    trace.clock = sim::TraceClock::since(*begin);
    return {};
}

Result<Simulated> simulated(Simulated one, const policy::Rules* rules, sim::Scenario scenario,
                            const Workload& workload)
{
    if (workload.failures) {
        scenario.machine.outages =
            sim::outages_of(scenario.machine, *workload.failures, workload.span());
    }
    TRY_ASSIGN(const sim::Course course, sim::simulate(scenario.machine, scenario.jobs));
    const sim::Seconds span = workload.span();
    one.measures = sim::measure(scenario.machine, scenario.jobs, course);
    one.refused = sim::refusals(scenario, course);
    one.curves = sim::curves(scenario.machine, scenario.jobs, course, span, sim::part_for(span));
    if (rules != nullptr) {
        one.broken = sim::broken_targets(*rules, scenario, course);
    }
    return one;
}

} // namespace

sim::Seconds Workload::span() const
{
    return trace.jobs.empty() ? sim::Seconds{0} : trace.jobs.back().submit;
}

bool names_jobs(const Options& options)
{
    return options.has("trace") || options.has("from-accounting");
}

Result<Workload> workload_in(Invocation& invocation)
{
    const auto file = invocation.options.value("trace");
    const auto span = invocation.options.value("from-accounting");
    if (file.has_value() == span.has_value()) {
        return fail(Error::Kind::usage,
                    fmt::format("{} needs {}: --trace FILE, jobs as CSV, SWF or the output of "
                                "sacct -P, or --from-accounting SPAN, those of the last 14d",
                                invocation.arguments.front(), file ? "one of these" : "jobs"));
    }
    if (span && invocation.options.has("begins")) {
        return fail(Error::Kind::usage, "--begins is for --trace: accounting has the dates");
    }
    TRY_ASSIGN(const sim::UserModel user_model, user_model_of(invocation.options));
    Workload workload;
    if (span) {
        TRY_ASSIGN(workload, of_accounting(invocation.services, *span));
    } else {
        workload.name = *file;
        TRY_ASSIGN(workload.trace, sim::read_trace(*file));
        if (workload.trace.jobs.empty()) {
            return nothing_in(workload);
        }
    }
    TRY(take_begin(invocation.options, workload.trace));
    TRY_ASSIGN(workload.failures, failures_in(invocation.options));
    workload.user_model = user_model;
    return workload;
}

std::string assumed_date(const policy::Policy& policy, const Workload& workload)
{
    return workload.trace.clock.is_known || policy::count_windows(policy) == 0
               ? std::string()
               : fmt::format("{} has no date, and the policy has hours: its first submission is "
                             "taken as a Monday at 00:00; --begins gives the date",
                             sanitised(workload.name));
}

Result<Simulated> simulated_under(const policy::Rules& rules, const std::string& name,
                                  const Workload& workload)
{
    TRY_ASSIGN(sim::Scenario scenario,
               sim::under_policy(rules, workload.trace, workload.user_model));
    return simulated({name, {}, {}, {}, {}}, &rules, std::move(scenario), workload);
}

Result<Simulated> simulated_plain(const policy::Rules& rules, const Workload& workload)
{
    TRY_ASSIGN(sim::Scenario scenario,
               sim::as_plain_queue(rules, workload.trace, workload.user_model));
    return simulated({"plain queue", {}, {}, {}, {}}, nullptr, std::move(scenario), workload);
}

} // namespace gpuq::cli
