// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/run.h"
#include "cli/start/verbs.h"
#include "ports/cluster.h"

#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/base/table_output.h"
#include "cli/client/detach_step.h"
#include "cli/client/follow.h"
#include "cli/client/waiting.h"
#include "cli/policy_ops/in_force.h"
#include "cli/queries/budget.h"
#include "cli/queries/code_snapshot.h"
#include "cli/queries/site_context.h"
#include "cli/queries/tickets.h"
#include "cli/render/credentials_text.h"
#include "cli/start/after.h"
#include "cli/start/dry_run.h"
#include "cli/start/run_options.h"
#include "core/layout.h"
#include "core/pending_reason.h"
#include "report/json.h"
#include "runs/insight/remedies.h"
#include "runs/patience.h"
#include "runs/plan.h"
#include "runs/preflight.h"
#include "runs/queues/queues.h"
#include "runs/records/record.h"
#include "runs/script.h"
#include "runs/submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <poll.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// One use of `gpuq run`, from the arguments to the exit status.
class RunVerb {
public:
    RunVerb(Invocation& invocation, RunOptions options, bool shell)
        : m_services(invocation.services)
        , m_globals(invocation.globals)
        , m_options(std::move(options))
        , m_shell(shell)
        , m_terminal(on_a_terminal())
    {
    }

    Result<int> run()
    {
        TRY(configure_session());
        TRY(ask_for_terminal());
        TRY_ASSIGN(m_here, site_context(m_services));
        TRY_ASSIGN(const std::string warning, check_before_asking());
        print_note_if(warning);
        TRY_ASSIGN(m_cluster, m_services.cluster());
        const bool without_input = m_options.detach || m_options.no_stdin;
        m_options.parameters.input = m_options.parameters.pty ? Input::terminal
                                     : without_input          ? Input::none
                                                              : kind_of_stdin();
        if (m_options.dry_run) {
            TRY_ASSIGN(const Queues queues, query_queues(*m_cluster));
            TRY_ASSIGN(const Plan plan, make_plan(queues));
            return show(plan, queues);
        }
        TRY_ASSIGN(m_store, m_services.store());
        auto found = query_with_retries(m_services.clock(), patience(), [this] {
            return find_queues(*m_store, *m_cluster, m_services.clock());
        });
        if (!found && m_interrupted) {
            return 128 + *m_interrupted;
        }
        TRY_ASSIGN(Queues queues, std::move(found));
        auto status = run_in(queues);
        if (!status && !m_submitted && queues.from_disk && may_be_outdated(status.error())) {
            TRY_ASSIGN(queues, query_queues(*m_cluster));
            status = run_in(queues);
        }
        return status;
    }

    Result<Plan> plan_only()
    {
        TRY_ASSIGN(m_here, site_context(m_services));
        TRY_ASSIGN(const std::string warning, check_before_asking());
        print_note_if(warning);
        TRY_ASSIGN(m_cluster, m_services.cluster());
        TRY_ASSIGN(m_store, m_services.store());
        TRY_ASSIGN(const Queues queues, find_queues(*m_store, *m_cluster, m_services.clock()));
        return make_plan(queues);
    }

    Result<StartedRun> start()
    {
        m_for_gpuq = true;
        TRY_ASSIGN(m_started.status, run());
        return std::move(m_started);
    }

private:
    Result<void> configure_session()
    {
        TRY_ASSIGN(const Settings settings, m_services.settings());
        m_session.detach_key = settings.detach_key.value_or(m_session.detach_key);
        m_session.handover = settings.handover ? *settings.handover : m_session.handover;
        return {};
    }

    /// Gives the program's terminal the size of this one, which is required unless the run is
    /// detached.
    Result<void> ask_for_terminal()
    {
        if (!m_options.pty) {
            return {};
        }
        if (!m_options.detach && kind_of_stdin() != Input::terminal) {
            return fail(
                Error::Kind::usage,
                "standard input is not a terminal: --detach starts it for a later gpuq attach, "
                "and gpuq run without --pty needs none");
        }
        const RawTerminal here(STDIN_FILENO, STDOUT_FILENO);
        m_options.parameters.pty = Pty{here.size().value_or(TerminalSize{}), m_shell};
        return {};
    }

    /// Finds errors that can be detected before the request takes a place in the queue.
    Result<std::string> check_before_asking()
    {
        if (m_options.after) {
            TRY_ASSIGN(Store* const store, m_services.store());
            TRY_ASSIGN(m_options.parameters.after,
                       job_to_await(m_services, *store, *m_options.after));
        }
        if (m_options.keytab) {
            const bool is_absolute = m_options.keytab->starts_with('/');
            const std::string path = (is_absolute ? "" : m_here.work_dir + "/") + *m_options.keytab;
            if (m_here.file(path) == SiteContext::File::missing) {
                return fail(Error::Kind::usage, fmt::format("--keytab: {}: not found", path));
            }
        }
        TRY(check_origin(m_options.parameters.program.front(), m_here));
        // The program of a snapshot may have been removed since.
        return m_options.earlier_snapshot ? Result<std::string>("")
                                          : check_program(m_options.parameters, m_here);
    }

    /// Whether the request may have been refused only because the queues have changed since they
    /// were read.
    static bool may_be_outdated(const Error& error)
    {
        return error.kind == Error::Kind::denied || error.kind == Error::Kind::missing;
    }

    Result<int> run_in(const Queues& queues)
    {
        TRY_ASSIGN(const Plan plan, make_plan(queues));
        TRY_ASSIGN(Run run, new_run(plan));
        TRY(take_ticket(run, plan.when_short));
        if (!m_options.worker) { // a sweep is charged as a whole
            TRY(charge_budget(m_services, *m_store, run.key, most_gpu_time(run.request)));
        }
        auto submitted = submit(run, plan);
        if (!submitted) {
            return give_up(run, submitted.error());
        }
        m_submitted = true;
        if (const auto refusal = withdraw_if_hopeless(run, *submitted)) {
            return give_up(run, *refusal);
        }
        if (run.request.chain && m_snapshot == SnapshotPolicy::automatic && !submitted->batch) {
            keep_snapshot(run); // for the links to come, so the first one need not wait for it
        }
        // A queued run's ticket is renewed while it waits, and a token is fetched on this host, not
        // on the node.
        if (m_ticket.plan && (submitted->batch || m_ticket.plan->token)) {
            leave_keeper(m_services);
        }
        forget(m_ticket); // this process may run for days
        m_started = {0, run, submitted->job};
        keep_queues(*m_store, run.cluster, queues, m_services.clock().now());
        print_note(m_globals.quiet, fmt::format("run {} ({}): {}", submitted->job.value,
                                                run.request.name, plan.summary));
        if (m_ticket.plan && !m_ticket.plan->keytab.empty()) {
            print_note(m_globals.quiet,
                       fmt::format("its Kerberos ticket ({}) is renewed with the keytab {}",
                                   m_ticket.plan->principal, m_ticket.plan->keytab));
        } else if (m_ticket.ticket) {
            print_note_if(forecast_text(*m_ticket.ticket,
                                        need_of(run.request, m_services.clock().now()),
                                        m_services.clock().now()));
        }
        if (m_options.detach) {
            return detached(run, *submitted);
        }
        return follow(run, *submitted);
    }

    Result<Plan> make_plan(const Queues& queues)
    {
        SiteContext here = m_here;
        if (needs_nodes(m_options.parameters)) {
            TRY_ASSIGN(here.nodes, m_cluster->nodes());
        }
        const RunParameters& asked = m_options.parameters;
        m_rules = take_policy(here, m_services, queues.partitions, asked.account,
                              asked.queue ? std::nullopt
                                          : std::optional(asked.gpus.value_or(GpuRequest{})));
        auto made = plan(asked, queues.partitions, here);
        if (!made && made.error().kind == Error::Kind::denied && asked.walltime) {
            const std::string later = allowed_later(
                m_services, asked.account, asked.gpus.value_or(GpuRequest{}), *asked.walltime);
            Error error = std::move(made).error();
            error.text += later.empty() ? "" : "; " + later;
            return error;
        }
        return made;
    }

    Result<int> show(const Plan& plan, const Queues& queues)
    {
        const auto ruled = [](const Partition& queue) { return queue.ruled; };
        if (std::any_of(queues.partitions.begin(), queues.partitions.end(), ruled)) {
            TRY(check_policy(plan.request));
        }
        print_note(m_globals.quiet,
                   fmt::format("would start {}: {}", plan.request.name, plan.summary));
        const Time now = m_services.clock().now();
        const auto start = expected_start(m_services, *m_cluster, plan.spec);
        print_note_if(start ? start_text(*start, plan.spec, now) : "");
        const std::string script =
            sbatch_script(without_values(plan.request, m_options.recorded_env), plan.spec);
        TRY(print_text(m_globals.json
                           ? report::json_document(dry_run_document(plan, script, start, now))
                           : script));
        return 0;
    }

    /// Checks the request against the policy, as Slurm would, as far as that depends only on the
    /// request.
    Result<void> check_policy(const Request& request)
    {
        const auto answer = policy_answer(m_services, request, user_name());
        if (!answer) {
            return {};
        }
        if (answer->refuses) {
            return fail(Error::Kind::denied,
                        fmt::format("the policy has this {}", fmt::join(answer->lines, "; ")));
        }
        for (const std::string& line : answer->lines) {
            print_note(m_globals.quiet, line);
        }
        return {};
    }

    Result<Run> new_run(const Plan& plan)
    {
        TRY_ASSIGN(const auto cluster, m_cluster->name());
        const Time now = m_services.clock().now();
        Run run{RunKey::make(now, m_services.random()),
                cluster,
                user_name(),
                host_name(),
                GPUQ_VERSION,
                now,
                plan.request,
                m_services.environment(),
                soft_limits()};
        if (run.request.chain) {
            TRY_ASSIGN(run.request.chain->supervisor, m_services.supervisor());
        }
        if (m_options.worker) {
            TRY_ASSIGN(const std::string supervisor, m_services.supervisor());
            work_on(*m_options.worker, supervisor, run.request);
            run.request.gpus.model = plan.spec.gpu_model; // for workers that are added later
            run.request.gpus.min_memory_mib.reset();
        }
        if (m_options.prepare) {
            TRY(m_options.prepare(run, m_rules));
        }
        return run;
    }

    /// The program of a try, its container and its checkpoints are the worker's business.
    void work_on(const SweepWorker& worker, const std::string& supervisor, Request& request) const
    {
        request.sweep = worker;
        request.program = {supervisor, "work", m_store->root(), worker.sweep.text()};
        request.setup.container.reset();
        if (request.chain) {
            request.chain->aware = true;
            request.chain->checkpoint.clear();
            request.chain->resume_args.clear();
            request.chain->from_scratch = true;
        }
    }

    Result<Submitted> submit(const Run& run, const Plan& plan)
    {
        if (run.request.sweep) {
            TRY(m_store->write(layout::sweep_run(run.request.sweep->sweep, run.key), ""));
        }
        TRY_ASSIGN(const std::string supervisor, m_services.supervisor());
        Submission submission{run, plan.spec, {}, {}, true};
        submission.spec.comment = submitted_comment(run, LinkNumber{1});
        submission.spec.output =
            fmt::format("{}/{}", m_store->root(), layout::slurm_log(run.key, LinkNumber{1}));
        submission.step = {supervisor, "run", m_store->root(), run.key.text(), "1", "--first"};
        submission.script = batch_script({supervisor, m_store->root(), run.key, LinkNumber{1}},
                                         run.request, plan.spec);
        if (!m_rules.idle.empty() && run.request.gpus.count > 0) {
            submission.idle_rules = to_json(m_rules.idle);
        }
        give_ticket(submission);
        TRY_ASSIGN(m_snapshot, snapshot_policy());
        if (m_snapshot != SnapshotPolicy::never) {
            submission.take_snapshot = [this, &run] { return snapshot_of(run); };
            submission.snapshot_at_once = m_snapshot == SnapshotPolicy::always;
        }
        submission.try_now = (!m_options.detach || m_options.awaited) && !run.request.after &&
                             !run.request.slurm_options;
        return submit_run(*m_store, *m_cluster, m_services.clock(), submission, patience());
    }

    /// A worker's code is that of its sweep.
    Result<SnapshotPolicy> snapshot_policy()
    {
        if (m_options.worker || m_shell) {
            return SnapshotPolicy::never;
        }
        if (m_options.earlier_snapshot) {
            return SnapshotPolicy::always;
        }
        if (m_options.snapshot) {
            return *m_options.snapshot;
        }
        TRY_ASSIGN(const Settings settings, m_services.settings());
        return settings.snapshot.value_or(SnapshotPolicy::automatic);
    }

    /// Returns the reference to the snapshot; empty: none.
    Result<std::string> snapshot_of(const Run& run)
    {
        if (m_options.earlier_snapshot) {
            return to_json(snapshots::Reference{*m_options.earlier_snapshot, true});
        }
        const bool required = m_options.snapshot == SnapshotPolicy::always;
        TRY_ASSIGN(CodeSnapshot code,
                   take_snapshot(*m_store, {run.request.work_dir, run.request.program, required}));
        print_note_if(code.problem);
        return std::move(code.reference);
    }

    void keep_snapshot(const Run& run)
    {
        const auto reference = snapshot_of(run);
        const auto kept = reference && !reference->empty()
                              ? m_store->write(layout::snapshot(run.key), *reference)
                              : Result<void>();
        if (!reference || !kept) {
            print_note_if("no snapshot of its code: " +
                          (reference ? kept.error().text : reference.error().text));
        }
    }

    /// Copies the login's ticket for the run: the login's own cache is removed at its end. A bearer
    /// token is kept out of all records of the environment.
    Result<void> take_ticket(Run& run, WhenShort when_short)
    {
        m_ticket = login_ticket(m_services, run.key, m_ticket.token);
        if (m_options.keytab) {
            TRY(add_keytab(m_services, run, *m_options.keytab, m_ticket));
        }
        for (const std::string& problem : {m_ticket.problem, m_ticket.token_problem}) {
            if (!problem.empty()) {
                print_note(m_globals.quiet, problem);
            }
        }
        if (!m_ticket.plan) {
            return {};
        }
        m_ticket.plan->when_short = when_short;
        std::erase_if(run.environment, [](const std::string& variable) {
            return variable.starts_with("BEARER_TOKEN=");
        });
        return {};
    }

    void give_ticket(Submission& submission)
    {
        if (!m_ticket.plan) {
            return;
        }
        submission.credentials = to_json(*m_ticket.plan);
        submission.store_ticket = [this] {
            if (const auto stored = store_ticket(m_services.secret_files(), m_ticket); !stored) {
                print_note(m_globals.quiet,
                           fmt::format("the run gets no {}: {}",
                                       m_ticket.cache.empty() ? "bearer token" : "Kerberos ticket",
                                       stored.error().text));
            }
        };
    }

    /// Limits of waiting for a Slurm that does not respond. A signal ends the wait.
    Patience patience()
    {
        Patience patience;
        patience.notice = [this](const std::string& text) {
            print_note(m_globals.quiet, fmt::format("{}; trying again, Ctrl-C gives up", text));
        };
        patience.pause = [this](std::chrono::milliseconds time) {
            pollfd wait{m_signals.descriptor(), POLLIN, 0};
            ::poll(&wait, 1, static_cast<int>(time.count()));
            m_interrupted = m_signals.next();
            return !m_interrupted;
        };
        return patience;
    }

    Result<int> give_up(const Run& run, const Error& error)
    {
        if (error.kind != Error::Kind::unreachable) {
            if (m_ticket.plan) {
                (void)m_services.secret_files().remove_directory(m_ticket.plan->directory);
            }
            if (const auto budget = budget_of(m_services); budget && *budget) {
                discharge(*m_store, **budget, run.key);
            }
            forget_run(*m_store, run.key);
            return error.kind == Error::Kind::denied ? with_available(run, error) : error;
        }
        print_note(
            m_globals.quiet,
            fmt::format(
                "{}. If Slurm accepted the request anyway, the run ends as soon as it starts",
                error.text));
        const int gave_up = static_cast<int>(ExitStatus::unreachable);
        return m_interrupted ? 128 + *m_interrupted : gave_up;
    }

    /// With EnforcePartLimits=NO, Slurm's default, it queues jobs that can never start in their
    /// partition. Nothing if this is none; the reason of a job in several is that of one of them.
    std::optional<Error> withdraw_if_hopeless(const Run& run, const Submitted& submitted)
    {
        using Kind = PendingReason::Kind;
        const auto job =
            submitted.batch ? m_cluster->job(submitted.job) : fail(Error::Kind::missing, "");
        if (!job || job->state != JobState::pending ||
            job->partition.find(',') != std::string::npos) {
            return std::nullopt;
        }
        const Kind kind = kind_of_reason(job->reason);
        const bool is_hopeless =
            kind == Kind::too_large || kind == Kind::never || kind == Kind::not_allowed;
        if (!is_hopeless || !m_cluster->cancel(submitted.job)) {
            return std::nullopt;
        }
        (void)m_store->remove(layout::job_index(run.cluster, submitted.job));
        return fail(Error::Kind::denied,
                    fmt::format("Slurm would never start it in queue {0} ({1}): it exceeds a limit "
                                "of the queue, or its account or QOS may not use it: scontrol show "
                                "partition {0}",
                                run.request.queue, job->reason));
    }

    /// Adds the size of the largest node: Slurm does not report which part of a request is too
    /// large.
    Error with_available(const Run& run, Error error)
    {
        const auto nodes = m_cluster->nodes();
        const std::string most = nodes ? most_of_a_node(*nodes, run.request.queue) : "";
        if (!most.empty() && !run.request.slurm_options) {
            error.text += "\n" + most;
        }
        return error;
    }

    Result<int> detached(const Run& run, const Submitted& submitted)
    {
        const JobId job = submitted.job;
        if (submitted.process) {
            TRY_ASSIGN(const auto left, detach_step(m_services, m_signals, run, job,
                                                    *submitted.process, m_globals.quiet));
            if (left) {
                print_note(m_globals.quiet,
                           fmt::format("detached; run {0} continues. Its output: "
                                       "gpuq logs -f {0}, to end it: gpuq stop {0}",
                                       job.value));
                return *left;
            }
        }
        print_note(m_globals.quiet, run.request.pty
                                        ? fmt::format("its terminal: gpuq attach {}", job.value)
                                        : fmt::format("its output: gpuq logs -f {}", job.value));
        if (m_globals.json && !m_for_gpuq) {
            const std::string text = report::json_document(
                {{"key", run.key.text()}, {"job", job}, {"name", run.request.name}});
            std::fwrite(text.data(), 1, text.size(), stdout);
        }
        return 0;
    }

    Result<int> follow(const Run& run, const Submitted& submitted)
    {
        if (submitted.batch) {
            WaitingOptions waiting;
            waiting.terminal = m_terminal;
            waiting.quiet = m_globals.quiet;
            waiting.max_wait = m_options.max_wait;
            TRY_ASSIGN(const Waited waited,
                       wait_for_start(m_services, m_signals, run, submitted.job, waiting));
            if (waited.leave) {
                return *waited.leave;
            }
        }
        m_session.terminal = m_terminal;
        m_session.quiet = m_globals.quiet;
        if (const DetachKey& key = m_session.detach_key; run.request.pty && !key.off) {
            print_note(m_globals.quiet, fmt::format("{} detaches; back to it: gpuq attach {}",
                                                    keys_text(key), submitted.job.value));
        }
        return follow_run(m_services, m_signals, run, submitted.job, m_session, submitted.process);
    }

    void print_note_if(const std::string& text) const
    {
        if (!text.empty()) {
            print_note(m_globals.quiet, text);
        }
    }

    Services& m_services;
    const Globals& m_globals;
    RunOptions m_options;
    bool m_shell;
    bool m_terminal;
    Signals m_signals;
    Store* m_store = nullptr;
    Cluster* m_cluster = nullptr;
    std::optional<int> m_interrupted;
    SnapshotPolicy m_snapshot = SnapshotPolicy::never;
    bool m_submitted = false;
    bool m_for_gpuq = false;
    StartedRun m_started;
    SiteContext m_here;
    UnusedRules m_rules;
    LoginTicket m_ticket;
    SessionOptions m_session;
};

Result<int> run(Invocation& invocation)
{
    TRY_ASSIGN(RunOptions options, run_options(invocation.options, invocation.arguments));
    TRY(enter_given_directory(invocation.services, invocation.options.value("chdir")));
    return run_with(invocation, std::move(options), /*shell=*/false);
}

} // namespace

Result<int> run_with(Invocation& invocation, RunOptions options, bool shell)
{
    return RunVerb(invocation, std::move(options), shell).run();
}

Result<Plan> plan_run(Invocation& invocation, RunOptions options)
{
    return RunVerb(invocation, std::move(options), /*shell=*/false).plan_only();
}

Result<StartedRun> start_detached(Invocation& invocation, RunOptions options)
{
    options.detach = true;
    return RunVerb(invocation, std::move(options), /*shell=*/false).start();
}

const Verb k_run_verb{"run",
                      "gpuq run [options] [--] PROGRAM [ARG...]",
                      "run a program on a GPU now, its output here",
                      run,
                      run_option_table(),
                      Order::options_first};

} // namespace gpuq::cli
