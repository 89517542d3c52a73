// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/caller.h"
#include "cli/policy_ops/extension.h"
#include "cli/policy_ops/help_desk.h"
#include "cli/policy_ops/in_force.h"
#include "cli/queries/budget.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/queries/sudo.h"
#include "cli/render/run_table.h"
#include "core/layout.h"
#include "core/number.h"
#include "core/walltime.h"
#include "policy/extend.h"
#include "ports/cluster.h"
#include "report/ending_text.h"
#include "report/json.h"
#include "runs/chain.h"
#include "runs/find.h"
#include "runs/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::minutes;

constexpr std::string_view k_link = "link";
constexpr std::string_view k_saved = "saved";

constexpr Option k_options[] = {
    Option{0, k_link, "", "extend the running link of a run of several links"},
    // For the helper.
    Option{0, k_saved, "", "the run has saved a checkpoint", Option::State::hidden}};

/// One use of `gpuq extend`.
class ExtendVerb {
public:
    ExtendVerb(Invocation& invocation, Store& store, Cluster& cluster, minutes more)
        : m_invocation(invocation)
        , m_store(store)
        , m_cluster(cluster)
        , m_more(more)
    {
    }

    Result<int> run(const std::string& word)
    {
        const auto found = find_supervised(
            m_invocation.services, m_store, word, "extend",
            "scontrol update JobId={0} TimeLimit=TIME, by an operator once it runs");
        if (!found && found.error().kind == Error::Kind::missing && whole_number(word)) {
            if (const auto helper = desk_helper(m_invocation.services, policy::DeskRight::extend)) {
                return extend_for_another(*helper, word);
            }
        }
        TRY_ASSIGN(const RunKey key, found);
        const RunStatus status = query_run(status_sources(m_invocation.services, m_store), key);
        TRY(check_state(status));
        const bool is_chain = status.run && status.run->request.chain;
        if (is_chain && !m_invocation.options.has(k_link)) {
            return lengthen_chain(status);
        }
        if (is_chain) {
            TRY(check_link(status));
        }
        TRY_ASSIGN(const std::string here, m_cluster.name());
        if (status.job->cluster != here) {
            return fail(Error::Kind::missing,
                        fmt::format("run {} belongs to cluster '{}', this is '{}'",
                                    run_title(status), status.job->cluster, here));
        }
        // Slurm's value: the limit may have been changed without gpuq.
        TRY_ASSIGN(const Job job, m_cluster.job(status.job->job));
        if (!job.walltime) {
            print_note(m_invocation.globals.quiet,
                       fmt::format("run {} has no time limit", run_title(status)));
            return 0;
        }
        return change(status, job);
    }

private:
    /// The help desk's use. The helper prints the result.
    Result<int> extend_for_another(const std::string& helper, const std::string& number)
    {
        std::vector<std::string> arguments{"extend"};
        if (m_invocation.globals.json) {
            arguments.emplace_back("--json");
        }
        if (m_invocation.globals.quiet) {
            arguments.emplace_back("--quiet");
        }
        arguments.insert(arguments.end(), {number, fmt::format("{}m", m_more.count())});
        return run_as(m_invocation.services, helper, arguments, "gpuq-extend(1)",
                      SudoOutput::shown);
    }

    static Result<void> check_state(const RunStatus& status)
    {
        if (status.state == RunState::ended) {
            return fail(Error::Kind::denied,
                        fmt::format("run {} has ended already", run_title(status)));
        }
        if (status.state == RunState::unknown) {
            return fail(Error::Kind::unreachable,
                        fmt::format("the state of run {} is unknown: {}", run_title(status),
                                    status.why_unknown));
        }
        if (!status.job) {
            return fail(Error::Kind::busy,
                        fmt::format("Slurm does not have run {} yet: try again in a moment",
                                    run_title(status)));
        }
        return {};
    }

    /// A link that may become longer: it runs, and its run has the time.
    Result<void> check_link(const RunStatus& status) const
    {
        const Time now = m_invocation.services.clock().now();
        if (status.state != RunState::running || !status.ends_at) {
            return fail(Error::Kind::denied, fmt::format("link {} of run {} does not run yet",
                                                         status.link.value, run_title(status)));
        }
        if (status.links.back().noticed_at) {
            return fail(Error::Kind::denied,
                        fmt::format("link {} of run {} is ending: its program has been notified to "
                                    "save and exit",
                                    status.link.value, run_title(status)));
        }
        const auto left = time_left(status.run->request, status.links, now);
        if (*status.ends_at + m_more > now + left) {
            return fail(Error::Kind::denied,
                        fmt::format("run {} has {} left over all its links, and this link ends in "
                                    "{}: first add to that time (gpuq extend without --link)",
                                    run_title(status), describe(left),
                                    describe(std::max(0s, std::chrono::floor<std::chrono::seconds>(
                                                              *status.ends_at - now)))));
        }
        return {};
    }

    /// Gives a run of several links more of them: only its record states the total time.
    Result<int> lengthen_chain(const RunStatus& status)
    {
        const minutes before = status.run->request.walltime;
        TRY(charge(status, before + m_more));
        const WalltimeChange change{before + m_more, fmt::format("{}@{}", user_name(), host_name()),
                                    m_invocation.services.clock().now(), status.run->request.chain};
        TRY(m_store.write(layout::walltime_json(status.key), to_json(change)));
        if (m_invocation.globals.json) {
            TRY(print_text(
                report::json_document({{"key", status.key.text()},
                                       {"job", status.job->job},
                                       {"time_limit", std::chrono::seconds(change.walltime)},
                                       {"time_limit_before", std::chrono::seconds(before)}})));
        }
        print_note(m_invocation.globals.quiet,
                   fmt::format("run {} has {}, was {}, over all its links", run_title(status),
                               to_text(change.walltime), to_text(before)));
        return 0;
    }

    /// If the extension fails, its time remains reserved until the run ends.
    Result<void> charge(const RunStatus& status, minutes wanted)
    {
        if (!status.run || is_link(status)) {
            return {};
        }
        Request request = status.run->request;
        request.walltime = wanted;
        return charge_budget(m_invocation.services, m_store, status.key, most_gpu_time(request));
    }

    Result<int> change(const RunStatus& status, const Job& job)
    {
        const minutes wanted = *job.walltime + m_more;
        TRY(charge(status, wanted));
        if (job.state == JobState::pending) {
            TRY_ASSIGN(const auto queues, m_cluster.partitions());
            TRY(check_walltime(queues, job.partition, wanted));
        }
        const auto done = m_cluster.set_walltime(job.id, wanted);
        if (!done) {
            if (const auto helper = helper_for(job, done.error())) {
                return change_through(*helper, status, job);
            }
            return refused(status, job, wanted, done.error());
        }
        keep(status, wanted);
        TRY(report(status, job, wanted));
        return 0;
    }

    /// The account that extends this running job by the rules of the policy, if there are any.
    std::optional<std::string> helper_for(const Job& job, const Error& error)
    {
        if (error.kind != Error::Kind::denied || job.state == JobState::pending) {
            return std::nullopt;
        }
        const auto policy = policy_in_force(m_invocation.services);
        return policy && policy->helper && policy::extend_rule(*policy, job.qos) != nullptr
                   ? std::optional(policy->helper->value)
                   : std::nullopt;
    }

    Result<int> change_through(const std::string& helper, const RunStatus& status, const Job& job)
    {
        std::vector<std::string> arguments{"--quiet", "extend", std::to_string(job.id.value),
                                           fmt::format("{}m", m_more.count())};
        if (std::any_of(status.links.begin(), status.links.end(),
                        [](const LinkPast& link) { return link.saved(); })) {
            arguments.push_back(fmt::format("--{}", k_saved));
        }
        TRY_ASSIGN(const int refusal,
                   run_as(m_invocation.services, helper, arguments, "gpuq-extend(1)"));
        if (refusal != 0) {
            return refusal;
        }
        TRY_ASSIGN(const Job now, m_cluster.job(job.id));
        const minutes limit = now.walltime.value_or(*job.walltime + m_more);
        keep(status, limit);
        TRY(report(status, job, limit));
        return 0;
    }

    Error refused(const RunStatus& status, const Job& job, minutes wanted, const Error& error) const
    {
        if (error.kind == Error::Kind::unreachable) {
            return fail(
                error.kind,
                fmt::format("{}; the limit of run {} may have changed: check with gpuq ls when "
                            "Slurm answers",
                            error.text, run_title(status)));
        }
        if (error.kind != Error::Kind::denied || job.state == JobState::pending) {
            return error;
        }
        return fail(Error::Kind::denied,
                    fmt::format("run {} keeps its limit of {}: Slurm does not let users extend "
                                "their running jobs. An operator can: scontrol update JobId={} "
                                "TimeLimit={}",
                                run_title(status), to_text(*job.walltime), job.id.value,
                                slurm_time(wanted)));
    }

    /// Of a chain, whose total time does not change.
    static bool is_link(const RunStatus& status)
    {
        return status.run && status.run->request.chain.has_value();
    }

    /// Records the limit for commands that read only the disk, and for the run's supervisor. Slurm
    /// has it in any case.
    void keep(const RunStatus& status, minutes wanted)
    {
        if (status.state == RunState::running) {
            (void)m_store.write(layout::extended_file(status.key, status.link),
                                fmt::format("{} {}\n", wanted.count(), m_more.count()));
        }
        if (is_link(status)) {
            return;
        }
        const WalltimeChange change{wanted, fmt::format("{}@{}", user_name(), host_name()),
                                    m_invocation.services.clock().now(), std::nullopt};
        if (const auto kept = m_store.write(layout::walltime_json(status.key), to_json(change));
            !kept) {
            print_message(fmt::format("Slurm has changed the limit, but gpuq can't record it: {}",
                                      kept.error().text));
        }
    }

    Result<void> report(const RunStatus& status, const Job& job, minutes wanted) const
    {
        if (m_invocation.globals.json) {
            return print_text(report::json_document(
                {{"key", status.key.text()},
                 {"job", job.id},
                 {"time_limit", std::chrono::seconds(wanted)},
                 {"time_limit_before", std::chrono::seconds(*job.walltime)}}));
        }
        print_note(m_invocation.globals.quiet,
                   fmt::format("{}run {} has {}, was {}",
                               is_link(status) ? fmt::format("link {} of ", status.link.value) : "",
                               run_title(status), to_text(wanted), to_text(*job.walltime)));
        return {};
    }

    Invocation& m_invocation;
    Store& m_store;
    Cluster& m_cluster;
    minutes m_more;
};

/// As the policy's helper: for the user who called sudo, whose runs this account can't read.
Result<int> extend_for(Invocation& invocation, const policy::Policy& policy, const Caller& caller,
                       minutes more)
{
    const auto number = whole_number(invocation.arguments[0]);
    if (!number || *number == 0 || *number > std::numeric_limits<std::uint32_t>::max()) {
        return fail(
            Error::Kind::usage,
            fmt::format("'{}' is not a job number: by sudo, extend takes the number of a Slurm job",
                        invocation.arguments[0]));
    }
    const JobId id{static_cast<std::uint32_t>(*number)};
    TRY_ASSIGN(const Extension done, extend_by_rule(invocation.services, policy, caller, id, more,
                                                    invocation.options.has(k_saved)));
    if (invocation.globals.json) {
        TRY(print_text(
            report::json_document({{"job", id},
                                   {"time_limit", std::chrono::seconds(done.walltime)},
                                   {"time_limit_before", std::chrono::seconds(done.before)}})));
    }
    print_note(invocation.globals.quiet, fmt::format("job {} has {}, was {}", id.value,
                                                     to_text(done.walltime), to_text(done.before)));
    return 0;
}

Result<int> extend(Invocation& invocation)
{
    if (invocation.arguments.size() != 2) {
        return fail(Error::Kind::usage,
                    "extend takes a run and the time to add: gpuq extend last 2h");
    }
    std::string_view time = invocation.arguments[1];
    time.remove_prefix(time.starts_with('+') ? 1 : 0);
    TRY_ASSIGN(const minutes more, parse_walltime(time));
    TRY_ASSIGN(const Caller caller, caller_of(invocation.services));
    if (const auto policy = policy_as_helper(invocation.services, caller)) {
        return extend_for(invocation, *policy, caller, more);
    }
    if (invocation.options.has(k_saved)) {
        return fail(Error::Kind::usage, "--saved is for the policy's helper (man gpuq-extend)");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(Cluster* const cluster, invocation.services.cluster());
    return ExtendVerb(invocation, *store, *cluster, more).run(invocation.arguments[0]);
}

} // namespace

const Verb k_extend_verb{"extend", "gpuq extend [--link] RUN TIME",
                         "add TIME to the time limit of a run", extend, k_options};

} // namespace gpuq::cli
