// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/caller.h"
#include "cli/policy_ops/help_desk.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/queries/sudo.h"
#include "cli/render/run_table.h"
#include "cli/start/show_sweep.h"
#include "core/layout.h"
#include "core/number.h"
#include "ports/cluster.h"
#include "report/ending_text.h"
#include "report/json.h"
#include "runs/evidence.h"
#include "runs/find.h"
#include "runs/insight/plain_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpuq::cli {
namespace {

using report::Json;

constexpr std::array k_options = {
    Option{0, "checkpoint", "", "let the program save first; gpuq resume continues the run"}};

/// One use of `gpuq stop`.
class StopVerb {
public:
    StopVerb(Invocation& invocation, Store& store)
        : m_invocation(invocation)
        , m_store(store)
        , m_services(status_sources(invocation.services, store))
        , m_save(invocation.options.has("checkpoint"))
    {
    }

    Result<int> run()
    {
        const auto status = stop_all();
        if (m_invocation.globals.json) {
            TRY(print_text(report::json_document({{"runs", Json::array(std::move(m_done))},
                                                  {"sweeps", Json::array(std::move(m_sweeps))},
                                                  {"errors", Json::array(std::move(m_errors))}})));
        }
        return status;
    }

private:
    Result<int> stop_all()
    {
        if (m_invocation.arguments.empty()) {
            TRY_ASSIGN(const RunKey only, only_active());
            return stop(only);
        }
        int worst = 0;
        for (const std::string& word : m_invocation.arguments) {
            const auto done = stop_meant(word);
            if (!done) {
                // With several runs, one that is not found does not prevent the others from being
                // stopped.
                if (m_invocation.arguments.size() == 1 && !m_invocation.globals.json) {
                    return done.error();
                }
                complain(word, done.error().text);
            }
            const int status = done ? *done : static_cast<int>(exit_status_of(done.error().kind));
            worst = std::max(worst, status);
        }
        return worst;
    }

    std::vector<RunStatus> still_active(const std::vector<RunKey>& keys)
    {
        auto runs = query_status(m_services, keys).runs;
        std::erase_if(runs, [](const RunStatus& run) { return run.state == RunState::ended; });
        return runs;
    }

    static Error which(const std::vector<RunStatus>& runs)
    {
        std::vector<std::string> titles;
        for (const RunStatus& run : runs) {
            titles.push_back(run_title(run));
        }
        return fail(Error::Kind::usage, fmt::format("which of {} runs? Name one: {}", runs.size(),
                                                    fmt::join(titles, ", ")));
    }

    Result<RunKey> only_active()
    {
        TRY_ASSIGN(const auto keys, active_runs(m_store));
        const auto runs = still_active(keys);
        if (runs.empty()) {
            return fail(Error::Kind::missing, "no run is active");
        }
        if (runs.size() > 1) {
            return which(runs);
        }
        return runs.front().key;
    }

    /// Runs that have not ended take precedence. The job id of an ended run may have been reused by
    /// Slurm.
    Result<int> stop_meant(const std::string& word)
    {
        TRY_ASSIGN(auto sweep, find_sweep_target(m_store, word));
        if (sweep) {
            TRY_ASSIGN(const bool stops, stop_sweep(m_invocation, m_store, *sweep));
            m_sweeps.push_back(sweep_outcome(*sweep, stops ? "stopping" : "ended_before"));
            return 0;
        }
        const auto matches = find_runs(m_store, word);
        if (matches && (!matches->unfinished.empty() || !spells_a_job(word))) {
            TRY_ASSIGN(const RunKey key, meant_by(*matches));
            return stop(key);
        }
        if (!matches && (matches.error().kind != Error::Kind::missing || word == "last")) {
            return matches.error();
        }
        const auto plain = plain_jobs_meant(m_invocation.services, m_store, word);
        const auto alive = still_present(plain);
        if (!alive.empty() || (plain && !matches)) {
            return stop_plain(word, alive.empty() ? *plain : alive);
        }
        if (!matches && plain.error().kind == Error::Kind::missing && whole_number(word) &&
            !m_save) {
            if (const auto helper = desk_helper(m_invocation.services, policy::DeskRight::stop)) {
                return stop_for_another(*helper, word);
            }
        }
        if (!matches) {
            return plain.error().kind == Error::Kind::missing && !spells_a_job(word)
                       ? matches.error()
                       : plain.error();
        }
        TRY_ASSIGN(const RunKey key, meant_by(*matches));
        return stop(key);
    }

    /// The help desk's use. The helper reports the result, on stderr.
    Result<int> stop_for_another(const std::string& helper, const std::string& number)
    {
        std::vector<std::string> arguments{"stop", number};
        if (m_invocation.globals.quiet || m_invocation.globals.json) {
            arguments.insert(arguments.begin() + 1, "--quiet");
        }
        TRY_ASSIGN(const int status,
                   run_as(m_invocation.services, helper, arguments, "gpuq-stop(1)"));
        if (status == 0) {
            m_done.push_back(Json::object({{"kind", "plain"},
                                           {"key", Json()},
                                           {"job", whole_number(number)},
                                           {"name", Json()},
                                           {"outcome", "stopping"}}));
        }
        return status;
    }

    static Json sweep_outcome(const SweepTarget& target, std::string_view outcome)
    {
        return Json::object({{"key", target.sweep.run.key.text()},
                             {"name", target.sweep.name},
                             {"try", target.number ? Json(*target.number) : Json()},
                             {"outcome", outcome}});
    }

    static std::vector<RunStatus> still_present(const Result<std::vector<RunStatus>>& plain)
    {
        auto jobs = plain ? *plain : std::vector<RunStatus>{};
        std::erase_if(jobs, [](const RunStatus& job) { return job.state == RunState::ended; });
        return jobs;
    }

    /// A job id has the meaning it has in Slurm: a whole array, a part of it, or one job.
    Result<int> stop_plain(const std::string& word, const std::vector<RunStatus>& jobs)
    {
        const bool is_id = spells_a_job(word);
        if (jobs.size() > 1 && !is_id) {
            return which_of(jobs);
        }
        const RunStatus& job = jobs.front();
        if (m_save) {
            return fail(Error::Kind::usage,
                        fmt::format("job {} is a plain Slurm job, which gpuq can't ask to save: "
                                    "scancel --batch --signal=USR1 {} signals its script, gpuq "
                                    "stop {} ends it",
                                    run_title(job), run_id(job), run_id(job)));
        }
        if (job.state == RunState::ended) {
            return reported(job, "ended_before",
                            fmt::format("job {} {}", run_title(job), how_it_ended(job)));
        }
        TRY_ASSIGN(Cluster* const cluster, m_invocation.services.cluster());
        TRY(cluster->cancel_called(is_id ? word : run_id(job)));
        const std::string what = jobs.size() == 1
                                     ? fmt::format("job {}", run_title(job))
                                     : fmt::format("job {}: {} parts", word, jobs.size());
        for (const RunStatus& part : jobs) {
            note(part, part.state == RunState::waiting ? "withdrawn" : "stopping");
        }
        if (!m_invocation.globals.quiet && !m_invocation.globals.json) {
            const bool all_wait = std::all_of(jobs.begin(), jobs.end(), [](const RunStatus& one) {
                return one.state == RunState::waiting;
            });
            print_message(all_wait ? fmt::format("{} is withdrawn", what)
                                   : fmt::format("stopping {}", what));
        }
        return 0;
    }

    Result<RunKey> meant_by(const RunMatches& matches)
    {
        if (matches.unfinished.size() < 2) {
            return matches.unfinished.empty() ? *matches.finished : matches.unfinished.front();
        }
        const auto runs = still_active(matches.unfinished);
        if (runs.size() > 1) {
            return which(runs);
        }
        return runs.empty() ? matches.unfinished.front() : runs.front().key;
    }

    /// The request is written to disk before waiting for Slurm: a Ctrl-C in between loses nothing.
    Result<int> stop(const RunKey& key)
    {
        RunStatus run = query_run(m_services, key, SlurmQuery::never);
        keep_from_growing(run);
        if (run.state == RunState::running && m_save) {
            return save_and_stop(run);
        }
        if (run.state != RunState::ended) {
            leave_request(run);
            const RunStatuses statuses = query_status(m_services, {key});
            run = statuses.runs.front();
            if (!statuses.slurm_silent.empty()) {
                return not_cancelled(run, fail(Error::Kind::unreachable, statuses.slurm_silent));
            }
        }
        if (run.state == RunState::ended) {
            return reported(run, "ended_before",
                            fmt::format("run {} {}", run_title(run), how_it_ended(run)));
        }
        return run.job ? cancel(run) : stop_without_job(run);
    }

    /// The other workers of a sweep would replace this one (sweeps/growth.h).
    void keep_from_growing(const RunStatus& run)
    {
        if (run.state != RunState::ended && run.run && run.run->request.sweep) {
            (void)m_store.remove(layout::sweep_grows(run.run->request.sweep->sweep));
        }
    }

    /// The supervisor does the rest: it checks its inbox every second.
    Result<int> save_and_stop(const RunStatus& run)
    {
        const StopRequest request{fmt::format("{}@{}", user_name(), host_name()),
                                  m_invocation.services.clock().now()};
        const auto written = m_store.write_once(
            layout::inbox(run.key) + "/" + layout::k_save_and_stop_request, to_json(request));
        if (!written && written.error().kind != Error::Kind::busy) {
            return written.error();
        }
        return reported(
            run, "saving",
            fmt::format("run {} is asked to save and exit; gpuq stop {} ends it without waiting",
                        run_title(run), run_id(run)));
    }

    Result<int> cancel(const RunStatus& run)
    {
        const auto cluster = m_invocation.services.cluster();
        if (cluster && run.next_job) {
            (void)(*cluster)->cancel(*run.next_job); // otherwise it would start, examine its
                                                     // predecessor and leave
        }
        const auto done =
            cluster ? (*cluster)->cancel(run.job->job) : Result<void>(cluster.error());
        if (!done) {
            return not_cancelled(run, done.error());
        }
        const bool withdrawn = run.state == RunState::waiting &&
                               query_run(m_services, run.key).state == RunState::ended;
        return withdrawn
                   ? reported(run, "withdrawn", fmt::format("run {} is withdrawn", run_title(run)))
                   : reported(run, "stopping", fmt::format("stopping run {}", run_title(run)));
    }

    static std::string how_it_ended(const RunStatus& run)
    {
        return run.ending && run.run
                   ? "has ended already: it " + ending_text(*run.ending, run.run->request)
                   : "has ended already";
    }

    /// Written to disk first: if Slurm does not respond, the supervisor finds it and ends the run.
    void leave_request(const RunStatus& run)
    {
        const StopRequest request{fmt::format("{}@{}", user_name(), host_name()),
                                  m_invocation.services.clock().now()};
        const auto written = m_store.write_once(
            layout::inbox(run.key) + "/" + layout::k_stop_request, to_json(request));
        m_request_left = written || written.error().kind == Error::Kind::busy;
        if (!m_request_left) {
            print_message(written.error().text);
        }
    }

    /// Not submitted yet: the process that submits or adopts it finds the request.
    Result<int> stop_without_job(const RunStatus& run)
    {
        if (!m_request_left) {
            return fail(Error::Kind::io,
                        fmt::format("run {} can't be stopped before it has a job", run_title(run)));
        }
        return reported(run, "noted",
                        fmt::format("run {} is stopped as soon as Slurm has it", run_title(run)));
    }

    Result<int> not_cancelled(const RunStatus& run, const Error& error)
    {
        if (error.kind != Error::Kind::unreachable || !m_request_left) {
            return error;
        }
        // Running according to its heartbeat, not to Slurm: it checks its inbox every second.
        if (run.state == RunState::running) {
            return reported(run, "stopping",
                            fmt::format("stopping run {} ({}; the run itself has been notified)",
                                        run_title(run), error.text));
        }
        const std::string text = fmt::format(
            "{}; run {} will be stopped when it starts or when Slurm answers the next gpuq ls",
            error.text, run_title(run));
        if (!m_invocation.globals.json) {
            print_message(text);
        }
        note(run, "noted");
        return static_cast<int>(ExitStatus::unreachable);
    }

    /// Reports the outcome: a keyword for scripts, a text for users.
    int reported(const RunStatus& run, const char* outcome, const std::string& text)
    {
        note(run, outcome);
        if (!m_invocation.globals.quiet && !m_invocation.globals.json) {
            print_message(text);
        }
        return 0;
    }

    void note(const RunStatus& run, const char* outcome)
    {
        m_done.push_back(Json::object({{"kind", run.plain ? "plain" : "run"},
                                       {"key", run.plain ? Json() : Json(run.key.text())},
                                       {"job", run.job ? Json(run.job->job) : Json()},
                                       {"name", run.run ? Json(run.run->request.name) : Json()},
                                       {"outcome", outcome}}));
    }

    void complain(const std::string& word, const std::string& text)
    {
        if (m_invocation.globals.json) {
            m_errors.push_back(Json::object({{"run", word}, {"text", text}}));
        } else {
            print_message(text);
        }
    }

    Invocation& m_invocation;
    Store& m_store;
    StatusSources m_services;
    bool m_save;
    bool m_request_left = false;
    Json::Elements m_done, m_sweeps, m_errors;
};

/// As the policy's helper: for the user who called sudo.
Result<int> stop_for(Invocation& invocation, const policy::Policy& policy, const Caller& caller)
{
    const auto& arguments = invocation.arguments;
    const auto number = arguments.size() == 1 ? whole_number(arguments.front()) : std::nullopt;
    if (!number || *number == 0 || *number > std::numeric_limits<std::uint32_t>::max() ||
        invocation.options.has("checkpoint")) {
        return fail(Error::Kind::usage, "by sudo, stop takes the number of one Slurm job");
    }
    TRY_ASSIGN(Cluster* const cluster, invocation.services.cluster());
    TRY_ASSIGN(const Job job, cluster->job(JobId{static_cast<std::uint32_t>(*number)}));
    TRY(check_desk(policy, caller, job, policy::DeskRight::stop));
    if (is_over(job.state)) {
        print_note(invocation.globals.quiet,
                   fmt::format("job {} ({}) has ended already", job.id.value, job.name));
        return 0;
    }
    TRY(record_desk(invocation.services, caller, job, "stop"));
    TRY(cluster->cancel(job.id));
    print_note(invocation.globals.quiet,
               fmt::format("stopping job {} ({})", job.id.value, job.name));
    return 0;
}

Result<int> stop(Invocation& invocation)
{
    const auto caller = caller_of(invocation.services);
    const auto policy = caller ? policy_as_helper(invocation.services, *caller) : std::nullopt;
    if (policy) {
        return stop_for(invocation, *policy, *caller);
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    return StopVerb(invocation, *store).run();
}

} // namespace

const Verb k_stop_verb{"stop", "gpuq stop [--checkpoint] [RUN...]",
                       "end runs, or take them out of the queue", stop, k_options};

} // namespace gpuq::cli
