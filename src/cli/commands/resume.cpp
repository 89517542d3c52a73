// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/in_force.h"
#include "cli/queries/budget.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/queries/tickets.h"
#include "cli/render/run_table.h"
#include "core/layout.h"
#include "core/walltime.h"
#include "ports/cluster.h"
#include "report/json.h"
#include "runs/connect_keys.h"
#include "runs/evidence.h"
#include "runs/find.h"
#include "runs/next_link.h"
#include "runs/preflight.h"
#include "runs/records/record.h"

#include <fmt/format.h>

#include <array>

namespace gpuq::cli {
namespace {

using std::chrono::seconds;

constexpr std::array k_options = {
    Option{'t', "time", "TIME", "how long the run may take, all its links together"}};

/// One use of `gpuq resume`.
class ResumeVerb {
public:
    ResumeVerb(Invocation& invocation, Store& store, RunStatus status)
        : m_invocation(invocation)
        , m_store(store)
        , m_status(std::move(status))
    {
    }

    Result<int> run(std::optional<std::chrono::minutes> walltime)
    {
        TRY(check());
        TRY(check_start());
        TRY_ASSIGN(Cluster* const cluster, m_invocation.services.cluster());
        Run& run = *m_status.run;
        if (walltime) {
            run.request.walltime = *walltime;
        }
        const bool is_chain = run.request.chain.has_value();
        if (!is_chain) {
            TRY(make_chain(*cluster, run.request));
        }
        const LinkNumber newest = newest_link(m_store, run.key);
        const Time now = m_invocation.services.clock().now();
        NextLink next;
        next.length = next_length(run.request, read_links(m_store, run.key, newest), now);
        if (next.length < k_shortest) {
            return fail(Error::Kind::usage,
                        fmt::format("run {} has used up its time of {}: gpuq resume -t TIME {} "
                                    "sets a longer time for all links together",
                                    run_title(m_status), to_text(run.request.walltime),
                                    run_id(m_status)));
        }
        const bool is_free = !m_store.size(layout::job_json(run.key, newest)) &&
                             !m_store.size(layout::journal(run.key, newest));
        next.link = LinkNumber{newest.value + (is_free ? 0 : 1)};
        next.resumed = true;
        TRY(charge_budget(m_invocation.services, m_store, run.key, most_gpu_time(run.request)));
        TRY(forget_end(walltime || !is_chain, now));
        (void)m_store.remove(held_json(run.key));
        refresh_tickets(m_invocation.services,
                        TokenCommand::here); // the run's own were wiped at its end
        const auto job = submit_link(m_store, *cluster, m_invocation.services.clock(), run, next);
        if (!job) {
            return not_resumed(job.error());
        }
        // A concurrent status query may have recorded the old end again.
        (void)m_store.remove(layout::ended_json(run.key));
        (void)m_store.write(layout::active(run.key), "");
        return report_job(*job, next.link);
    }

private:
    static constexpr seconds k_shortest{5};

    Result<void> check() const
    {
        if (m_status.state != RunState::ended) {
            return fail(Error::Kind::denied, fmt::format("run {} has not ended: gpuq attach {}",
                                                         run_title(m_status), run_id(m_status)));
        }
        if (!m_status.run) {
            return fail(Error::Kind::missing,
                        fmt::format("run {} can't be resumed: its start parameters can't be read",
                                    run_title(m_status)));
        }
        if (m_status.ending && m_status.ending->cause == Cause::finished &&
            m_status.ending->status == 0) {
            return fail(Error::Kind::usage,
                        fmt::format("run {} has finished; nothing to resume", run_title(m_status)));
        }
        return {};
    }

    /// Files needed for the start may have been removed since.
    Result<void> check_start() const
    {
        const Request& request = m_status.run->request;
        TRY_ASSIGN(SiteContext here, site_context(m_invocation.services));
        here.work_dir = request.work_dir;
        here.same_on_nodes = same_on_nodes(m_invocation.services, request.work_dir);
        if (here.file(request.work_dir) == SiteContext::File::missing &&
            here.same_on_nodes(request.work_dir)) {
            return fail(Error::Kind::missing,
                        fmt::format("run {} can't be resumed: its working directory {} is gone",
                                    run_title(m_status), request.work_dir));
        }
        RunParameters parameters;
        parameters.program = request.program;
        parameters.sources = request.setup.sources;
        parameters.modules = request.setup.modules;
        parameters.conda = request.setup.conda;
        parameters.venv = request.setup.venv;
        parameters.container = request.setup.container;
        if (request.chain) {
            parameters.chain.valid = request.chain->valid;
        }
        const auto checked = check_program(parameters, here);
        return checked ? Result<void>()
                       : fail(checked.error().kind,
                              fmt::format("run {} can't be resumed: {}", run_title(m_status),
                                          checked.error().text));
    }

    /// Makes a chain of a run that was planned as one job. Its program was given a place to save
    /// anyway.
    Result<void> make_chain(Cluster& cluster, Request& request)
    {
        TRY_ASSIGN(const auto partitions, cluster.partitions());
        TRY_ASSIGN(SiteContext here, site_context(m_invocation.services));
        here.work_dir = request.work_dir;
        (void)take_policy(here, m_invocation.services, partitions, request.account);
        auto chain = chain_to_resume(request, partitions, here);
        if (!chain) {
            return fail(chain.error().kind, fmt::format("run {} can't be resumed: {}",
                                                        run_title(m_status), chain.error().text));
        }
        TRY_ASSIGN(chain->supervisor, m_invocation.services.supervisor());
        request.chain = *std::move(chain);
        return {};
    }

    /// First removes requests that would end it again at once: a crash in between leaves an ended
    /// run.
    Result<void> forget_end(bool is_changed, Time now)
    {
        const RunKey& key = m_status.key;
        TRY(m_store.remove(layout::inbox(key) + "/" + layout::k_stop_request));
        TRY(m_store.remove(layout::inbox(key) + "/" + layout::k_save_and_stop_request));
        if (is_changed) {
            const Request& request = m_status.run->request;
            const WalltimeChange change{request.walltime,
                                        fmt::format("{}@{}", user_name(), host_name()), now,
                                        request.chain};
            TRY(m_store.write(layout::walltime_json(key), to_json(change)));
        }
        TRY(m_store.write(layout::active(key), ""));
        return m_store.remove(layout::ended_json(key));
    }

    /// If the submission was refused, restores the end; without a response the run may continue.
    Error not_resumed(Error error)
    {
        if (error.kind != Error::Kind::unreachable && m_status.ending) {
            (void)m_store.write_once(layout::ended_json(m_status.key), to_json(*m_status.ending));
            forget_active(m_store, m_status.key);
        }
        return error;
    }

    Result<int> report_job(JobId job, LinkNumber link) const
    {
        if (m_invocation.globals.json) {
            TRY(print_text(report::json_document(
                {{"key", m_status.key.text()}, {"job", job}, {"link", link.value}})));
        } else if (!m_invocation.globals.quiet) {
            print_message(fmt::format("run {} continues as job {}, link {}: gpuq attach {}",
                                      run_title(m_status), job.value, link.value, job.value));
        }
        return 0;
    }

    Invocation& m_invocation;
    Store& m_store;
    RunStatus m_status;
};

Result<int> resume(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage, "which run? gpuq resume [-t TIME] RUN; gpuq ls --all lists "
                                        "them");
    }
    std::optional<std::chrono::minutes> walltime;
    if (const auto text = invocation.options.value("time")) {
        TRY_ASSIGN(walltime, parse_walltime(*text));
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(
        const RunKey key,
        find_supervised(invocation.services, *store, invocation.arguments.front(), "resume",
                        "sbatch submits its script again; gpuq run resumes from checkpoints"));
    RunStatus status = query_run(status_sources(invocation.services, *store), key);
    return ResumeVerb(invocation, *store, std::move(status)).run(walltime);
}

} // namespace

const Verb k_resume_verb{"resume", "gpuq resume [-t TIME] RUN",
                         "resume a stopped run from its last checkpoint", resume, k_options};

} // namespace gpuq::cli
