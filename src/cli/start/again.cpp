// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/verbs.h"

#include "cli/base/status_sources.h"
#include "cli/queries/code_snapshot.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/run_table.h"
#include "cli/start/run.h"
#include "cli/start/run_options.h"
#include "core/layout.h"
#include "core/quote.h"
#include "runs/credentials.h"
#include "runs/notebook.h"
#include "runs/program_words.h"
#include "runs/query_status.h"
#include "runs/repeat.h"
#include "sweeps/arguments.h"
#include "sweeps/board.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq::cli {
namespace {

using Arguments = std::vector<std::string>;

/// The operands of one use.
struct Given {
    std::string run;
    std::optional<Arguments> replacement; ///< those after `--`, if it is given
};

Result<Given> operands(const Invocation& invocation)
{
    const Arguments& all = invocation.arguments;
    const std::size_t own = invocation.before_dashes.value_or(all.size());
    if (own == 0) {
        return fail(Error::Kind::usage, "which run? gpuq again [options] RUN [-- ARG...]; gpuq ls "
                                        "--all lists them");
    }
    if (own > 1) {
        return fail(Error::Kind::usage,
                    fmt::format("again: unexpected argument '{}'; arguments of the program follow "
                                "--: gpuq again RUN -- ARG...",
                                all[1]));
    }
    Given given{all.front(), std::nullopt};
    if (invocation.before_dashes) {
        given.replacement = Arguments(all.begin() + 1, all.end());
    }
    const bool needs_program = invocation.options.has("program");
    if (needs_program &&
        (!given.replacement || given.replacement->empty() || given.replacement->front().empty())) {
        return fail(Error::Kind::usage, "--program: the program is missing: gpuq again --program "
                                        "RUN -- PROGRAM [ARG...]");
    }
    return given;
}

/// One use of `gpuq again`.
class AgainVerb {
public:
    /// `snapshot`: the path of the reference to that of its code.
    AgainVerb(Invocation& invocation, Store& store, RunStatus status, std::string snapshot)
        : m_invocation(invocation)
        , m_services(invocation.services)
        , m_store(store)
        , m_status(std::move(status))
        , m_snapshot(std::move(snapshot))
    {
    }

    Result<int> run(const std::optional<Arguments>& replacement)
    {
        if (!m_status.run) {
            return fail(Error::Kind::missing, not_again("its start parameters can't be read"));
        }
        const Request& request = m_status.run->request;
        if (read_notebook(m_store, m_status.key)) {
            return fail(Error::Kind::usage, not_again("it is a notebook: use gpuq notebook"));
        }
        if (request.sweep) {
            return fail(Error::Kind::usage,
                        not_again("it is a worker of a sweep: gpuq sweep retry starts workers"));
        }
        TRY(enter_its_directory(request.work_dir));
        TRY_ASSIGN(const Arguments command, command_with(request.program, replacement));
        TRY_ASSIGN(RunOptions options, run_options(m_invocation.options, command));
        options.recorded_env = names_kept(request, options.parameters);
        options.parameters =
            repeated(std::move(options.parameters), request, m_services.clock().now());
        options.pty = options.pty || request.pty;
        repeat_credentials(options);
        const bool has_other_files =
            m_invocation.options.has("current-files") || m_invocation.options.has("chdir");
        if (!options.snapshot && !has_other_files) {
            TRY(repeat_snapshot(options));
        }
        TRY(check_terminal(options));
        return run_with(m_invocation, std::move(options), request.pty && request.pty->shell);
    }

private:
    std::string not_again(const std::string& reason) const
    {
        return fmt::format("run {} can't be started again: {}", run_title(m_status), reason);
    }

    Result<void> enter_its_directory(const std::string& recorded) const
    {
        if (const auto given = m_invocation.options.value("chdir")) {
            return enter_given_directory(m_services, given);
        }
        const auto entered = enter_directory(recorded);
        return entered ? Result<void>()
                       : fail(entered.error().kind,
                              not_again("its working directory " + entered.error().text));
    }

    /// The recorded program with other arguments, or another program.
    Result<Arguments> command_with(const Arguments& recorded,
                                   const std::optional<Arguments>& replacement) const
    {
        if (!replacement) {
            return recorded;
        }
        if (m_invocation.options.has("program")) {
            return *replacement;
        }
        const auto size = size_of_program(recorded);
        if (!size) {
            return fail(
                Error::Kind::usage,
                not_again(fmt::format("none of the words after {} is known to be its "
                                      "program; give all of them: gpuq again --program {} "
                                      "-- {} ...",
                                      recorded.front(), run_id(m_status), recorded.front())));
        }
        Arguments command(recorded.begin(), recorded.begin() + static_cast<std::ptrdiff_t>(*size));
        command.insert(command.end(), replacement->begin(), replacement->end());
        return command;
    }

    /// The recorded variables that keep their values.
    static Arguments names_kept(const Request& request, const RunParameters& given)
    {
        Arguments names;
        for (const auto& [name, value] : request.setup.env) {
            const auto is_same = [name = &name](const auto& pair) { return pair.first == *name; };
            if (std::none_of(given.env.begin(), given.env.end(), is_same)) {
                names.push_back(name);
            }
        }
        return names;
    }

    Result<void> repeat_snapshot(RunOptions& options)
    {
        const auto code = find_snapshot(m_store, m_snapshot);
        if (!code) {
            return fail(code.error().kind,
                        not_again(fmt::format("{}; --current-files runs the files as they are now",
                                              code.error().text)));
        }
        if (*code) {
            options.earlier_snapshot = snapshot_id(m_store, m_snapshot);
        }
        return {};
    }

    /// A run that had no ticket has no such record.
    void repeat_credentials(RunOptions& options)
    {
        const auto text = m_store.read(credential_plan_json(m_status.key));
        const auto plan =
            text ? credential_plan_from_json(*text) : Result<CredentialPlan>(text.error());
        if (!plan) {
            return;
        }
        if (!options.parameters.chain.when_short) {
            options.parameters.chain.when_short = plan->when_short;
        }
        if (!options.keytab && !plan->keytab.empty()) {
            options.keytab = plan->keytab;
        }
    }

    Invocation& m_invocation;
    Services& m_services;
    Store& m_store;
    RunStatus m_status;
    std::string m_snapshot;
};

/// A try as a run of its own.
Result<RunStatus> status_of_try(Store& store, const sweeps::Sweep& sweep, std::size_t number)
{
    sweeps::Board board(store, sweep.run.key);
    TRY(board.refresh());
    const sweeps::Values& values = board.tries().at(number - 1).values;
    const auto filled_in = [&](const Arguments& arguments) {
        return sweeps::arguments_of_try(arguments, sweep.parameters, values);
    };
    RunStatus status{sweep.run.key};
    status.run = sweep.run;
    Request& request = status.run->request;
    request.name = fmt::format("{}-{}", sweep.name, number);
    request.program = filled_in(request.program);
    if (request.chain) {
        request.chain->checkpoint = filled_in({request.chain->checkpoint}).front();
    }
    for (auto& variable : sweeps::variables_of_try(number, sweep.parameters, values)) {
        request.setup.env.push_back(std::move(variable));
    }
    return status;
}

Result<int> try_again(Invocation& invocation, Store& store, const Given& given,
                      const SweepTarget& target)
{
    const std::string& name = target.sweep.name;
    if (!target.number) {
        return fail(Error::Kind::usage,
                    fmt::format("{0} is a sweep: gpuq again {1}/1 starts a try again, gpuq sweep "
                                "retry {1} all that failed",
                                name, shell_quoted(name)));
    }
    TRY_ASSIGN(RunStatus status, status_of_try(store, target.sweep, *target.number));
    return AgainVerb(invocation, store, std::move(status),
                     layout::sweep_snapshot(target.sweep.run.key))
        .run(given.replacement);
}

Result<int> again(Invocation& invocation)
{
    TRY_ASSIGN(const Given given, operands(invocation));
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const auto sweep, find_sweep_target(*store, given.run));
    if (sweep) {
        return try_again(invocation, *store, given, *sweep);
    }
    TRY_ASSIGN(const RunKey key,
               find_supervised(invocation.services, *store, given.run, "again",
                               "sbatch submits its script again; gpuq run starts a program"));
    RunStatus status =
        query_run(status_sources(invocation.services, *store), key, SlurmQuery::never);
    return AgainVerb(invocation, *store, std::move(status), layout::snapshot(key))
        .run(given.replacement);
}

} // namespace

const Verb k_again_verb{"again", "gpuq again [options] RUN [-- ARG...]",
                        "start a run again, optionally with other arguments", again,
                        again_option_table()};

} // namespace gpuq::cli
