// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/verbs.h"

#include "cli/base/findings_output.h"
#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/client/waiting.h"
#include "cli/queries/site_context.h"
#include "cli/start/run.h"
#include "cli/start/run_options.h"
#include "core/layout.h"
#include "core/walltime.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "report/json.h"
#include "runs/insight/progress.h"
#include "runs/insight/rehearsal.h"
#include "runs/query_status.h"
#include "runs/queues/queues.h"
#include "runs/records/journal.h"
#include "runs/records/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <poll.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::minutes;

constexpr minutes k_usual{15};
/// A program that does not save on its own is observed for this fraction of the total time.
constexpr int k_warm_ups = 6;
constexpr auto k_poll_pause = 500ms;
/// Progress is read from disk; Slurm is queried only for state that is not on disk.
constexpr auto k_ask_pause = 10s;
constexpr std::chrono::days k_history{90};

/// One rehearsal, from the start of its run to the report.
class Rehearsal {
public:
    Rehearsal(Invocation& invocation, Store& store, Signals& signals, Run run, JobId job,
              minutes within)
        : m_invocation(invocation)
        , m_services(invocation.services)
        , m_store(store)
        , m_signals(signals)
        , m_run(std::move(run))
        , m_job(job)
        , m_warm_up(std::chrono::seconds(within) / k_warm_ups)
    {
    }

    /// If gpuq itself fails, the run is not left behind.
    Result<int> run()
    {
        auto status = rehearse();
        if (!status) {
            static_cast<void>(stopped(0));
        }
        return status;
    }

private:
    Result<int> rehearse()
    {
        while (true) {
            if (const auto job = waiting_job()) {
                TRY_ASSIGN(const Waited waited, wait_for(*job));
                if (waited.leave) {
                    return stopped(*waited.leave);
                }
            }
            read();
            const RehearsalAct act = next_act(m_links, m_services.clock().now(), m_warm_up);
            if (act == RehearsalAct::over || has_ended_unrecorded()) {
                return report();
            }
            TRY(perform(act));
            pollfd wait{m_signals.descriptor(), POLLIN, 0};
            ::poll(&wait, 1, static_cast<int>(k_poll_pause.count()));
            if (const auto number = m_signals.next()) {
                return stopped(128 + *number);
            }
        }
    }

    LinkNumber newest() const { return LinkNumber{static_cast<int>(m_links.size())}; }

    std::vector<Event> journal(LinkNumber link)
    {
        const auto text = m_store.read(layout::journal(m_run.key, link));
        return text ? parse_journal(*text) : std::vector<Event>{};
    }

    void read()
    {
        std::vector<RehearsedLink> links;
        for (LinkNumber link;; ++link.value) {
            const auto events = journal(link);
            if (events.empty()) {
                break;
            }
            links.push_back(rehearsed_link(events));
        }
        m_links = std::move(links);
    }

    /// The job of the next link, unless it has been waited for already.
    std::optional<JobId> waiting_job()
    {
        LinkNumber next = newest();
        ++next.value;
        const bool may_continue =
            m_links.empty() || (m_links.back().ending && m_links.back().ending->continues);
        if (!may_continue || next <= m_waited) {
            return std::nullopt;
        }
        const auto text = m_store.read(layout::job_json(m_run.key, next));
        const auto link = text ? link_job_from_json(*text) : Result<LinkJob>(text.error());
        if (!link) {
            return std::nullopt;
        }
        m_waited = next;
        return link->job;
    }

    Result<Waited> wait_for(JobId job)
    {
        WaitingOptions options;
        options.terminal = on_a_terminal();
        options.quiet = m_invocation.globals.quiet;
        options.link = m_waited;
        return wait_for_start(m_services, m_signals, m_run, job, options);
    }

    Result<void> perform(RehearsalAct act)
    {
        if (act == RehearsalAct::wait || newest() <= m_acted) {
            return {};
        }
        m_acted = newest();
        if (act == RehearsalAct::stop) {
            print_note(m_invocation.globals.quiet,
                       "the program runs again; asked to save and stop");
            return leave(layout::k_save_and_stop_request, to_json(request()));
        }
        const bool notice = act == RehearsalAct::notice;
        print_note(m_invocation.globals.quiet,
                   notice ? "the program runs; asked to save, as at the end of a link"
                          : "the program runs again; killed with SIGKILL");
        return leave(layout::k_rehearsal_request,
                     to_line({newest(), notice ? RehearsalRequest::Act::notice
                                               : RehearsalRequest::Act::kill}));
    }

    StopRequest request() const
    {
        return {fmt::format("{}@{}", user_name(), host_name()), m_services.clock().now()};
    }

    Result<void> leave(const char* name, const std::string& text)
    {
        return m_store.write(layout::inbox(m_run.key) + "/" + name, text);
    }

    /// Killed with its supervisor, or cancelled while it waited: only Slurm knows its end.
    bool has_ended_unrecorded()
    {
        const auto now = std::chrono::steady_clock::now();
        if (now < m_ask_at) {
            return false;
        }
        m_ask_at = now + k_ask_pause;
        const RunStatus status = query_run(status_sources(m_services, m_store), m_run.key);
        if (status.state != RunState::ended || !status.ending) {
            return false;
        }
        read();
        if (m_links.empty()) {
            m_links.emplace_back();
        }
        if (!m_links.back().ending || m_links.back().ending->continues) {
            m_links.back().ending = status.ending;
        }
        return true;
    }

    /// Stops the run: nothing is left behind.
    Result<int> stopped(int status)
    {
        (void)leave(layout::k_stop_request, to_json(request()));
        const auto cluster = m_services.cluster();
        const RunStatus now =
            query_run(status_sources(m_services, m_store), m_run.key, SlurmQuery::never);
        for (const std::optional<JobId> job :
             {now.next_job, now.job ? std::optional(now.job->job) : std::optional(m_job)}) {
            if (cluster && job && now.state != RunState::ended) {
                (void)(*cluster)->cancel(*job);
            }
        }
        print_note(m_invocation.globals.quiet, "the rehearsal and its run are stopped");
        return status;
    }

    std::optional<FailureRate> rate(std::string& silence)
    {
        const auto cluster = m_services.cluster();
        const auto nodes =
            cluster ? (*cluster)->nodes() : Result<std::vector<Node>>(cluster.error());
        const auto accounting = m_services.accounting();
        const Time now = m_services.clock().now();
        const auto history = accounting ? (*accounting)->node_failures(now - k_history, now)
                                        : Result<NodeHistory>(accounting.error());
        if (!nodes || !history) {
            silence = nodes ? history.error().text : nodes.error().text;
            return std::nullopt;
        }
        std::vector<std::string> names;
        for (const Node& node : *nodes) {
            const auto is_ours = [&](const std::string& partition) {
                return !queue_of(m_run.request.queue, partition).empty();
            };
            if (std::any_of(node.partitions.begin(), node.partitions.end(), is_ours)) {
                names.push_back(node.name);
            }
        }
        silence = "accounting has less than a week of records of these nodes";
        return failure_rate(*history, names, now);
    }

    Result<int> report()
    {
        const auto own = own_pattern(m_run);
        for (std::size_t i = 0; i < m_links.size(); ++i) {
            const LinkNumber link{static_cast<int>(i) + 1};
            const LinkProgress progress =
                read_progress(m_store, m_run.key, link, own ? &*own : nullptr);
            m_links[i].first = progress.first;
            m_links[i].last = progress.last;
        }
        std::string silence;
        const auto failures = rate(silence);
        const RehearsalReport report =
            evaluate_rehearsal(m_run.request, m_links, failures, silence);
        if (m_invocation.globals.json) {
            TRY(print_text(report::json_document(members(report))));
        } else {
            TRY(print_table(findings_table(report.findings), m_invocation.globals, m_services));
        }
        return count_of(report.findings, Finding::Level::problem) == 0 ? 0 : 1;
    }

    report::Json::Members members(const RehearsalReport& report) const
    {
        const auto in_seconds = [](const std::optional<std::chrono::milliseconds>& time) {
            return time ? report::Json(std::chrono::duration<double>(*time).count())
                        : report::Json();
        };
        report::Json::Members all{{"key", m_run.key.text()},
                                  {"job", m_job},
                                  {"save_seconds", in_seconds(report.save)},
                                  {"interval_seconds", in_seconds(report.interval)},
                                  {"lost_seconds", in_seconds(report.lost)},
                                  {"gap_seconds", in_seconds(report.gap)},
                                  {"between_failures_seconds", report.between_failures},
                                  {"advised_interval_seconds", report.advised}};
        for (auto& member : findings_list(report.findings)) {
            all.push_back(std::move(member));
        }
        return all;
    }

    Invocation& m_invocation;
    Services& m_services;
    Store& m_store;
    Signals& m_signals;
    Run m_run;
    JobId m_job;
    std::chrono::seconds m_warm_up;
    std::vector<RehearsedLink> m_links;
    LinkNumber m_waited{0}, m_acted{0};
    std::chrono::steady_clock::time_point m_ask_at = std::chrono::steady_clock::now() + k_ask_pause;
};

Result<int> rehearse(Invocation& invocation)
{
    TRY_ASSIGN(RunOptions options, run_options(invocation.options, invocation.arguments));
    minutes within = k_usual;
    if (const auto text = invocation.options.value("within")) {
        TRY_ASSIGN(within, parse_walltime(*text));
    }
    options.parameters.walltime = std::min(options.parameters.walltime.value_or(within), within);
    options.parameters.chain.link = *options.parameters.walltime;
    options.parameters.name = options.parameters.name.value_or("rehearsal");
    within = *options.parameters.walltime;
    const report::Table none = findings_table({});
    TRY_ASSIGN([[maybe_unused]] const auto checked, report::only(none, invocation.globals.columns));
    Signals signals; // one that arrives while the run is submitted stops it afterwards
    TRY_ASSIGN(const StartedRun started, start_detached(invocation, std::move(options)));
    if (started.status != 0 || !started.run) {
        return started.status;
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    return Rehearsal(invocation, *store, signals, *started.run, started.job, within).run();
}

} // namespace

const Verb k_rehearse_verb{"rehearse",
                           "gpuq rehearse [options] [--] PROGRAM [ARG...]",
                           "test save, kill and resume of a long run in minutes",
                           rehearse,
                           rehearse_option_table(),
                           Order::options_first};

} // namespace gpuq::cli
