// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/verbs.h"

#include "cli/base/globals.h"
#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/queries/budget.h"
#include "cli/queries/code_snapshot.h"
#include "cli/queries/site_context.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/sweep_table.h"
#include "cli/start/run.h"
#include "cli/start/run_options.h"
#include "cli/start/sweep_follow.h"
#include "cli/start/sweep_start.h"
#include "core/layout.h"
#include "core/number.h"
#include "core/quote.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "runs/preflight.h"
#include "runs/repeat.h"
#include "sweeps/arguments.h"
#include "sweeps/changes.h"
#include "sweeps/proposals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

// A sweep is started in this order: the plan for a try, which checks everything that can be checked
// here; the sweep's files; one run per worker. From then on nothing depends on this process.

namespace gpuq::cli {
namespace {

using report::Json;
using Arguments = std::vector<std::string>;
using sweeps::Sweep;
using sweeps::Try;
using sweeps::TryEnd;

constexpr std::size_t k_shown_by_dry_run = 10;

bool needs_retry(const Try& entry)
{
    return entry.state == Try::State::ended && entry.end->end != TryEnd::stopped_early &&
           !(entry.end->end == TryEnd::finished && entry.end->status == 0);
}

Result<int> follow_or_leave(Invocation& invocation, Store& store, const Sweep& sweep, bool detach,
                            const std::vector<Try>& before = {})
{
    if (!detach) {
        return follow_sweep(invocation, store, sweep, SweepFollowing::owner, before);
    }
    if (invocation.globals.json) {
        TRY(print_text(
            report::json_document({{"key", sweep.run.key.text()}, {"name", sweep.name}})));
    }
    return 0;
}

/// The first `{NAME}` in an argument that is no parameter; a variable of the shell is none either.
std::optional<std::string> unknown_placeholder(const Arguments& command, const Arguments& names)
{
    for (const std::string& word : command) {
        for (auto at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
            const std::string name = word.substr(at + 1, word.find('}', at) - at - 1);
            const bool is_other = at > 0 && (word[at - 1] == '$' || word[at - 1] == '{');
            if (!is_other && word.find('}', at) != std::string::npos &&
                sweeps::check_parameter_name(name) &&
                std::find(names.begin(), names.end(), name) == names.end()) {
                return name;
            }
        }
    }
    return std::nullopt;
}

Result<int> print_tries(const Invocation& invocation, const RunOptions& options,
                        const GivenTries& given)
{
    Json::Elements list;
    for (std::size_t i = 0; i < given.tries.size(); ++i) {
        const Arguments command =
            sweeps::arguments_of_try(options.parameters.program, given.names, given.tries[i]);
        list.push_back(Json::object({{"try", i + 1}, {"program", Json::array(command)}}));
        if (!invocation.globals.json && i < k_shown_by_dry_run) {
            Arguments shown;
            std::transform(command.begin(), command.end(), std::back_inserter(shown),
                           [](const std::string& word) { return shell_quoted(word); });
            TRY(print_line(fmt::format("{:>4}  {}", i + 1, fmt::join(shown, " "))));
        }
    }
    if (invocation.globals.json) {
        TRY(print_text(report::json_document({{"tries", Json::array(std::move(list))}})));
    } else if (given.tries.size() > k_shown_by_dry_run) {
        TRY(print_line(fmt::format("      ... {} tries in all", given.tries.size())));
    }
    return 0;
}

/// What stands for the values of the parameters in the program's words.
Arguments placeholders(const Arguments& names)
{
    Arguments all;
    for (const std::string& name : names) {
        all.push_back("{" + name + "}");
    }
    return all;
}

/// `gpuq sweep --over ... PROGRAM`.
class NewSweep {
public:
    explicit NewSweep(Invocation& invocation)
        : m_invocation(invocation)
        , m_services(invocation.services)
    {
    }

    Result<int> run()
    {
        const Options& given_options = m_invocation.options;
        if (m_invocation.arguments.empty()) {
            return fail(Error::Kind::usage, "missing program: gpuq sweep --over NAME=VALUES "
                                            "PROGRAM [ARG...]; see gpuq help sweep");
        }
        TRY_ASSIGN(RunOptions options, run_options(given_options, m_invocation.arguments));
        TRY_ASSIGN(const GivenTries given,
                   given_tries(m_services, m_invocation.globals, given_options));
        TRY_ASSIGN(const auto workers, given_workers(given_options));
        TRY_ASSIGN(Sweep sweep, settings(given));
        sweep.gpu_time = std::exchange(options.parameters.chain.gpu_time, std::nullopt);
        TRY(check_program(options.parameters.program, given.names));
        options.parameters.placeholders = placeholders(given.names);
        TRY(check_proposer(sweep, options.parameters));
        if (options.dry_run) {
            note_unused(options.parameters.program, given.names);
            return print_tries(m_invocation, options, given);
        }
        const bool detach = options.detach;
        options.detach = true;
        options.parameters.chain.from_scratch = true;
        TRY_ASSIGN(const Plan plan, plan_run(m_invocation, options));
        TRY_ASSIGN(Store* const store, m_services.store());
        TRY(describe(sweep, plan));
        note_unused(plan.request.program, given.names);
        TRY(charge(*store, sweep));
        const auto code = snapshot_of(*store, sweep, options);
        const auto written = code ? sweeps::write_sweep(*store, sweep, given.tries, *code)
                                  : Result<void>(code.error());
        if (!written) {
            forget(*store, sweep);
            return written.error();
        }
        if (const auto started = start_workers(m_invocation, *store, sweep, options, workers);
            !started) {
            forget(*store, sweep);
            return started.error();
        }
        if (detach && !m_invocation.globals.quiet) {
            print_message(fmt::format("its state: gpuq show {}", shell_quoted(sweep.name)));
        }
        return follow_or_leave(m_invocation, *store, sweep, detach);
    }

private:
    /// A sweep without --gpu-hours gets the remaining hours of its budget, if there is one.
    Result<void> charge(Store& store, Sweep& sweep)
    {
        using std::chrono::minutes;
        TRY_ASSIGN(m_budget, budget_of(m_services));
        if (m_budget && !sweep.gpu_time) {
            TRY_ASSIGN(const BudgetUse use, budget_use(m_services, store, *m_budget));
            sweep.gpu_time = std::chrono::floor<minutes>(use.left());
            if (*sweep.gpu_time < minutes{1}) {
                return fail(Error::Kind::denied,
                            fmt::format("budget {} has no GPU-hours left; gpuq usage --budget",
                                        m_budget->name));
            }
            print_note(m_invocation.globals.quiet,
                       fmt::format("it can use the {} GPU-hours that budget {} has left",
                                   hours_text(*sweep.gpu_time), m_budget->name));
        }
        return m_budget ? charge_budget(m_services, store, sweep.run.key, *sweep.gpu_time)
                        : Result<void>();
    }

    void forget(Store& store, const Sweep& sweep)
    {
        if (m_budget) {
            discharge(store, *m_budget, sweep.run.key);
        }
        sweeps::forget_sweep(store, sweep.run.key);
    }

    Result<Sweep> settings(const GivenTries& given)
    {
        const Time now = m_services.clock().now();
        Sweep sweep{{}, given.names, {}, 1, given.seed, {RunKey::make(now, m_services.random())}};
        sweep.propose = given.propose;
        sweep.run.submitted_at = now;
        if (const auto text = m_invocation.options.value("metric")) {
            TRY_ASSIGN(sweep.metric, sweeps::parse_metric(*text));
        }
        if (const auto text = m_invocation.options.value("stop-early")) {
            TRY_ASSIGN(sweep.stop_early, sweeps::parse_stop_rule(*text));
            if (!m_invocation.options.has("metric")) {
                return fail(Error::Kind::usage, "--stop-early: requires --metric NAME:min or "
                                                "NAME:max, such as loss:min");
            }
        }
        constexpr std::size_t k_most_per_gpu = 64;
        if (const auto text = m_invocation.options.value("per-gpu")) {
            const auto number = whole_number(*text);
            if (!number || *number == 0 || *number > k_most_per_gpu) {
                return fail(Error::Kind::usage,
                            fmt::format("--per-gpu: '{}' is not a number from 1 to {}", *text,
                                        k_most_per_gpu));
            }
            sweep.per_gpu = static_cast<int>(*number);
        }
        return sweep;
    }

    /// It is started by a worker, which has a GPU by then.
    Result<void> check_proposer(const Sweep& sweep, const RunParameters& parameters)
    {
        if (!sweep.propose) {
            return {};
        }
        TRY_ASSIGN(const SiteContext here, site_context(m_services));
        TRY_ASSIGN(const std::string warning,
                   check_command("--propose", sweep.propose->command, parameters, here));
        print_note(m_invocation.globals.quiet || warning.empty(), warning);
        return {};
    }

    /// The program itself is looked up once, for all tries. Its arguments contain no placeholder
    /// of a parameter that does not exist.
    static Result<void> check_program(const Arguments& program, const Arguments& names)
    {
        if (sweeps::unused_parameters({program.front()}, names).size() < names.size()) {
            return fail(Error::Kind::usage,
                        fmt::format("{}: the program can't depend on a parameter; begin with one "
                                    "that is the same for all tries, such as sh or python3",
                                    program.front()));
        }
        if (const auto unknown = unknown_placeholder(program, names)) {
            return fail(Error::Kind::usage,
                        fmt::format("{{{0}}} in the program's arguments: no parameter '{0}', but "
                                    "{1}; {{{{{0}}}}} gives {{{0}}}",
                                    *unknown, fmt::join(names, ", ")));
        }
        return {};
    }

    Result<void> describe(Sweep& sweep, const Plan& plan)
    {
        TRY_ASSIGN(Cluster* const cluster, m_services.cluster());
        TRY_ASSIGN(sweep.run.cluster, cluster->name());
        sweep.run.user = user_name();
        sweep.run.host = host_name();
        sweep.run.version = GPUQ_VERSION;
        sweep.run.request = plan.request;
        sweep.name = plan.request.name;
        return {};
    }

    /// All tries run the code of this moment, also those that are added later. Returns the
    /// reference to it; empty: none.
    Result<std::string> snapshot_of(Store& store, const Sweep& sweep, const RunOptions& options)
    {
        TRY_ASSIGN(const Settings configured, m_services.settings());
        const auto policy =
            options.snapshot.value_or(configured.snapshot.value_or(SnapshotPolicy::automatic));
        if (policy == SnapshotPolicy::never) {
            return std::string();
        }
        const Request& request = sweep.run.request;
        TRY_ASSIGN(CodeSnapshot code,
                   take_snapshot(store, {request.work_dir, request.program,
                                         options.snapshot == SnapshotPolicy::always}));
        print_note(m_invocation.globals.quiet || code.problem.empty(), code.problem);
        return std::move(code.reference);
    }

    void note_unused(const Arguments& command, const Arguments& names) const
    {
        if (m_invocation.globals.quiet) {
            return;
        }
        if (const auto unused = sweeps::unused_parameters(command, names); !unused.empty()) {
            const std::string& first = unused.front();
            print_message(fmt::format("no {{{}}} in the program's arguments: it gets {} only as "
                                      "variable GPUQ_PARAM_{}",
                                      fmt::join(unused, "}, {"), unused.size() == 1 ? "it" : "them",
                                      unused.size() == 1 ? first : "NAME"));
        }
    }

    Invocation& m_invocation;
    Services& m_services;
    std::optional<Budget> m_budget;
};

/// The sweep that the first operand after `retry`, `add` or `export` names.
Result<Sweep> named_sweep(Store& store, const Parsed& parsed, std::string_view command)
{
    if (parsed.operands.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("which sweep? gpuq sweep {} SWEEP; gpuq ls lists them", command));
    }
    return sweeps::find_sweep(store, parsed.operands.front());
}

/// Checks whether a sweep can get workers again, before anything is changed.
Result<void> check_again(Invocation& invocation, Store& store, const Sweep& sweep,
                         const sweeps::Board& board, const Options& options)
{
    TRY(given_workers(options));
    if (sweeps::is_spent(board.tries(), sweep, invocation.services.clock().now())) {
        return fail(
            Error::Kind::denied,
            fmt::format("sweep {} has used its GPU-hours (--gpu-hours): its other tries need "
                        "a new sweep",
                        sweep.name));
    }
    TRY(enter_directory(sweep.run.request.work_dir));
    TRY_ASSIGN(const auto budget, budget_of(invocation.services));
    if (budget && !sweep.gpu_time) {
        return fail(Error::Kind::denied,
                    fmt::format("sweep {} was started without --gpu-hours, so it can't continue "
                                "under budget {}: start a new one",
                                sweep.name, budget->name));
    }
    return budget ? charge_budget(invocation.services, store, sweep.run.key, *sweep.gpu_time)
                  : Result<void>();
}

/// Starts the workers that a changed sweep needs, with the options of its start.
Result<int> work_again(Invocation& invocation, Store& store, const Sweep& sweep,
                       const sweeps::Board& before, const Options& options)
{
    TRY_ASSIGN(const auto workers, given_workers(options));
    TRY(sweeps::continue_sweep(store, sweep.run.key));
    RunOptions run;
    run.parameters.program = sweep.run.request.program;
    run.parameters =
        repeated(std::move(run.parameters), sweep.run.request, invocation.services.clock().now());
    run.parameters.placeholders = placeholders(sweep.parameters);
    run.parameters.chain.from_scratch = true;
    for (const auto& [name, value] : sweep.run.request.setup.env) {
        run.recorded_env.push_back(name);
    }
    TRY(start_workers(invocation, store, sweep, run, workers, &before));
    return follow_or_leave(invocation, store, sweep, options.has("detach"), before.tries());
}

/// The attempts that do not count any more: those of the tries named, else all that failed.
Result<std::vector<sweeps::Retry>> chosen_retries(const Sweep& sweep, const std::vector<Try>& tries,
                                                  const Arguments& numbers)
{
    std::vector<sweeps::Retry> retries;
    for (std::size_t i = 0; i < tries.size() && numbers.empty(); ++i) {
        if (needs_retry(tries[i])) {
            retries.push_back({i + 1, tries[i].attempt});
        }
    }
    for (const std::string& word : numbers) {
        const auto number = whole_number(word);
        if (!number || *number == 0 || *number > tries.size()) {
            return fail(Error::Kind::usage, fmt::format("sweep {} has no try '{}', but 1 to {}",
                                                        sweep.name, word, tries.size()));
        }
        const Try& entry = tries[*number - 1];
        if (entry.state == Try::State::running) {
            return fail(Error::Kind::busy, fmt::format("try {} is running: gpuq stop {}/{}",
                                                       *number, shell_quoted(sweep.name), *number));
        }
        if (entry.state == Try::State::ended) {
            retries.push_back({*number, entry.attempt});
        }
    }
    return retries;
}

/// The sweep, or the try, that the first operand of `retry` names.
Result<SweepTarget> retried(Store& store, const Arguments& operands)
{
    if (operands.empty()) {
        return fail(Error::Kind::usage, "which sweep? gpuq sweep retry SWEEP; gpuq ls lists them");
    }
    TRY_ASSIGN(auto target, find_sweep_target(store, operands.front()));
    if (target) {
        return *std::move(target);
    }
    TRY_ASSIGN(Sweep sweep, sweeps::find_sweep(store, operands.front()));
    return SweepTarget{std::move(sweep), std::nullopt};
}

/// `gpuq sweep retry SWEEP [TRY...]`, `gpuq sweep retry SWEEP/TRY`.
Result<int> retry(Invocation& invocation, Store& store, const Parsed& parsed)
{
    TRY_ASSIGN(const SweepTarget target, retried(store, parsed.operands));
    const Sweep& sweep = target.sweep;
    sweeps::Board board(store, sweep.run.key);
    TRY(board.refresh());
    Arguments numbers(parsed.operands.begin() + 1, parsed.operands.end());
    if (target.number) {
        numbers.push_back(std::to_string(*target.number));
    }
    TRY_ASSIGN(const auto retries, chosen_retries(sweep, board.tries(), numbers));
    const auto tally = sweeps::tally_of(board.tries());
    const bool is_complete = !sweep.propose || (board.is_closed() && board.failure().empty());
    if (retries.empty() && is_complete && tally.waiting + tally.running == 0) {
        return fail(
            Error::Kind::usage,
            fmt::format("all tries of sweep {} have {}; name those to repeat: gpuq sweep retry "
                        "{} TRY...",
                        sweep.name,
                        tally.stopped_early > 0 ? "succeeded or were stopped early" : "succeeded",
                        shell_quoted(sweep.name)));
    }
    TRY(check_again(invocation, store, sweep, board, parsed.options));
    if (!retries.empty()) {
        TRY(sweeps::retry(store, sweep.run.key, retries));
    }
    return work_again(invocation, store, sweep, board, parsed.options);
}

/// `gpuq sweep add SWEEP --over NAME=VALUES...`.
Result<int> add(Invocation& invocation, Store& store, const Parsed& parsed)
{
    TRY_ASSIGN(const Sweep sweep, named_sweep(store, parsed, "add"));
    if (parsed.operands.size() > 1) {
        return fail(Error::Kind::usage,
                    fmt::format("add: unexpected argument '{}': the program stays the same",
                                parsed.operands[1]));
    }
    TRY_ASSIGN(const GivenTries given,
               given_tries(invocation.services, invocation.globals, parsed.options));
    if (given.propose) {
        return fail(Error::Kind::usage, "add: --propose belongs to the start of a sweep");
    }
    const auto tries = sweeps::ordered({given.names, given.tries}, sweep.parameters);
    if (!tries) {
        return fail(Error::Kind::usage,
                    fmt::format("sweep {}: {}", sweep.name, tries.error().text));
    }
    sweeps::Board board(store, sweep.run.key);
    TRY(board.refresh());
    TRY(check_again(invocation, store, sweep, board, parsed.options));
    TRY(sweeps::add_tries(store, sweep.run.key, *tries));
    return work_again(invocation, store, sweep, board, parsed.options);
}

/// `gpuq sweep export SWEEP`.
Result<int> export_sweep(Invocation& invocation, Store& store, const Parsed& parsed)
{
    if (parsed.operands.size() > 1) {
        return fail(Error::Kind::usage,
                    fmt::format("export: unexpected argument '{}'", parsed.operands[1]));
    }
    TRY_ASSIGN(Sweep sweep, named_sweep(store, parsed, "export"));
    TRY_ASSIGN(const SweepStatus status, query_sweep(invocation.services, store, std::move(sweep)));
    if (!invocation.globals.json) {
        TRY(print_text(sweep_csv(status)));
        return 0;
    }
    const auto code = code_facts(store, layout::sweep_snapshot(status.sweep.run.key));
    TRY(print_text(report::json_document(
        sweep_document(status, {}, code, invocation.services.clock().now()))));
    return 0;
}

struct Subcommand {
    std::string_view name;
    Result<int> (*run)(Invocation&, Store&, const Parsed&);
    std::string_view options; ///< that it has, besides the global ones
};
constexpr std::array k_subcommands = {
    Subcommand{"retry", retry, " workers detach "},
    Subcommand{"add", add, " over random seed from propose tries workers detach "},
    Subcommand{"export", export_sweep, ""}};

/// All others describe the program or the sweep as a whole.
Result<void> check_options(const Subcommand& subcommand, const Options& before,
                           const Options& after)
{
    for (const Option& row : sweep_option_table()) {
        if (before.has(row.name)) {
            return fail(Error::Kind::usage,
                        fmt::format("{}: --{} belongs after it: gpuq sweep {} SWEEP --{}",
                                    subcommand.name, row.name, subcommand.name, row.name));
        }
        const bool is_known =
            subcommand.options.find(fmt::format(" {} ", row.name)) != std::string_view::npos;
        if (after.has(row.name) && !is_known) {
            return fail(Error::Kind::usage, fmt::format("{}: --{} belongs to the start of a sweep",
                                                        subcommand.name, row.name));
        }
    }
    return {};
}

Result<int> sweep(Invocation& invocation)
{
    const bool is_new = invocation.options.has("over") || invocation.options.has("from");
    const std::string first = invocation.arguments.empty() ? "" : invocation.arguments.front();
    for (const Subcommand& subcommand : k_subcommands) {
        if (is_new || subcommand.name != first) {
            continue;
        }
        TRY_ASSIGN(Parsed parsed,
                   parse_options(all_options(k_sweep_verb), Order::mixed,
                                 {invocation.arguments.begin() + 1, invocation.arguments.end()}));
        if (parsed.options.has("host") || parsed.options.has("cluster")) {
            return fail(Error::Kind::usage,
                        fmt::format("--host and --cluster belong before {}: gpuq --host NAME sweep "
                                    "{} SWEEP",
                                    first, first));
        }
        TRY(check_options(subcommand, invocation.options, parsed.options));
        TRY(take_globals(parsed.options, invocation.globals));
        TRY_ASSIGN(Store* const store, invocation.services.store());
        return subcommand.run(invocation, *store, parsed);
    }
    return NewSweep(invocation).run();
}

} // namespace

const Verb k_sweep_verb{
    "sweep",
    "gpuq sweep [options] --over NAME=VALUES...|--from FILE [--] PROGRAM [ARG...]",
    "run a program with many settings and compare them; sweep retry|add|export SWEEP",
    sweep,
    sweep_option_table(),
    Order::options_first};

} // namespace gpuq::cli
