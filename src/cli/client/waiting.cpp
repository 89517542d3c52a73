// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/waiting.h"

#include "cli/base/message.h"
#include "cli/base/notices.h"
#include "cli/queries/shared_overview_file.h"
#include "cli/render/forecast_text.h"
#include "core/layout.h"
#include "core/pending_reason.h"
#include "ports/cluster.h"
#include "report/ending_text.h"
#include "runs/connect_keys.h"
#include "runs/insight/overview.h"
#include "runs/records/record.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <poll.h>
#include <unistd.h>

// Polls two sources: the journal on disk shows the start soonest and without load on Slurm; Slurm's
// list of the user's jobs gives the reason for waiting, the expected start, and the end of a job
// that has not started.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr auto k_disk_period = 500ms;
constexpr auto k_slurm_period = 10s;
constexpr auto k_heartbeat = 60s;
constexpr auto k_bell_after = 10s;
/// An estimate of the start requires Slurm's response with all jobs, which is large.
constexpr auto k_estimate_after = 8s;
constexpr auto k_estimate_period = 60s;
constexpr auto k_estimate_is_good = 180s;
constexpr int k_rest = 20; ///< times the duration of the last query

class Wait {
public:
    Wait(Services& services, Signals& signals, const Run& run, JobId job,
         const WaitingOptions& options)
        : m_services(services)
        , m_signals(signals)
        , m_run(run)
        , m_job(job)
        , m_options(options)
        , m_one_line(options.terminal && isatty(STDERR_FILENO) == 1)
    {
    }

    Result<Waited> run()
    {
        TRY_ASSIGN(m_store, m_services.store());
        TRY_ASSIGN(m_cluster, m_services.cluster());
        while (true) {
            if (has_started()) {
                return started();
            }
            if (has_ended()) {
                return over();
            }
            if (Steady::now() >= m_next_question) {
                m_next_question = Steady::now() + k_slurm_period;
                const auto state = query_slurm();
                if (state && *state != JobState::pending) {
                    return is_over(*state) ? over() : started();
                }
            }
            if (m_options.max_wait && Steady::now() - m_begin >= *m_options.max_wait) {
                return withdraw(static_cast<int>(ExitStatus::max_wait), "--max-wait has passed");
            }
            pollfd wait{m_signals.descriptor(), POLLIN, 0};
            ::poll(&wait, 1, static_cast<int>(time_to_sleep().count()));
            if (const auto number = m_signals.next()) {
                return on_signal(*number);
            }
        }
    }

private:
    std::chrono::milliseconds time_to_sleep() const
    {
        auto time = std::chrono::milliseconds(k_disk_period);
        if (m_options.max_wait) {
            const auto left = *m_options.max_wait - (Steady::now() - m_begin);
            time = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(left), 0ms, time);
        }
        return time;
    }

    /// Whether the supervisor has written its first line.
    bool has_started() const
    {
        const auto size = m_store->size(layout::journal(m_run.key, m_options.link));
        return size && *size > 0;
    }

    /// Whether the run has been withdrawn.
    bool has_ended() const { return m_store->size(layout::ended_json(m_run.key)).has_value(); }

    /// Nothing if there is no response. A job that is no longer known is over.
    std::optional<JobState> query_slurm()
    {
        const auto jobs = m_cluster->own_jobs();
        if (!jobs) {
            show(fmt::format("waiting; {}", jobs.error().text));
            return std::nullopt;
        }
        const auto job = std::find_if(jobs->begin(), jobs->end(),
                                      [&](const Job& one) { return one.id == m_job; });
        if (job == jobs->end()) {
            return JobState::cancelled;
        }
        if (job->state == JobState::pending) {
            show(waiting_text(*job, wants_estimate(*job)));
        }
        return job->state;
    }

    /// The estimates of the start from the cached response that all processes of a user share. With
    /// `refresh`, refreshes it if it has no recent estimate for this job, at most once a minute and
    /// not in the first seconds of the wait.
    OwnJob estimates(bool refresh)
    {
        const auto name = m_cluster->name();
        if (!name) {
            return {};
        }
        auto kept = kept_overview(*m_store, *name);
        if (refresh && Steady::now() >= m_next_estimate && !is_known(kept)) {
            m_next_estimate = Steady::now() + std::max<std::chrono::milliseconds>(
                                                  k_estimate_period, k_rest * kept.took);
            refresh_overview(*m_store, *m_cluster, m_services.host(), m_services.clock(),
                             ::getuid(),
                             {m_services.clock().now(), Wish::Anew::unless_shared, Time{},
                              shared_overview(m_services, *name)});
            kept = kept_overview(*m_store, *name);
        }
        const OwnJob* job = own_job(kept);
        OwnJob own = job == nullptr ? OwnJob{} : *job;
        if (!is_recent(kept)) {
            own.forecast.reset();
        }
        return own;
    }

    const OwnJob* own_job(const Overview& overview) const
    {
        const auto job = std::find_if(overview.jobs.begin(), overview.jobs.end(),
                                      [this](const OwnJob& own) { return own.job.id == m_job; });
        return job == overview.jobs.end() ? nullptr : &*job;
    }

    bool is_known(const Overview& overview) const
    {
        const OwnJob* job = own_job(overview);
        return job != nullptr && job->estimate && is_recent(overview);
    }

    bool is_recent(const Overview& overview) const
    {
        return overview.whole_at &&
               m_services.clock().now() - *overview.whole_at < k_estimate_is_good;
    }

    std::string waiting_text(const Job& job, bool is_unplanned)
    {
        if (m_options.link > LinkNumber{1} && job.reason == "Dependency") {
            return "waiting: the previous link is being cleaned up";
        }
        std::string text =
            fmt::format("waiting: {}", pending_reason_text(job.reason, m_run.request.gpus));
        if (kind_of_reason(job.reason) == PendingReason::Kind::too_large) {
            return text + fmt::format("; see gpuq why {}", m_job.value);
        }
        const Time now = m_services.clock().now();
        const OwnJob own = could_start(job) ? estimates(is_unplanned) : OwnJob{};
        const std::optional<StartEstimate>& estimate = own.estimate;
        const bool has_limit = is_unplanned && estimate && estimate->at && *estimate->at > now;
        StartForecast shown = own.forecast.value_or(StartForecast{});
        if (has_limit && !job.started_at) { // both times and the limit do not fit into a line
            shown.p90.reset();
            shown.p50 = shown.p50 && *shown.p50 > now ? shown.p50 : std::nullopt;
        }
        const std::string forecast = forecast_text(shown, now);
        text += forecast.empty() ? "" : "; " + forecast;
        if (job.started_at && *job.started_at > now) {
            const auto wait = std::chrono::ceil<std::chrono::seconds>(*job.started_at - now);
            text += fmt::format("; expected start {} (in {})", clock_text(*job.started_at, now),
                                describe(wait));
        } else if (has_limit) {
            text += fmt::format("; by {} at the latest (time limit of job {})",
                                clock_text(*estimate->at, now),
                                estimate->after.value_or(JobId{}).value);
        }
        return text;
    }

    void show(const std::string& text)
    {
        const bool news = text != m_shown;
        if (m_options.quiet || (!news && Steady::now() - m_shown_at < k_heartbeat && !m_one_line)) {
            return;
        }
        m_shown = text;
        m_shown_at = Steady::now();
        if (!m_one_line) {
            return print_message(text);
        }
        write_own("\r\033[Kgpuq: " + clipped(sanitised(as_typed(text)), 72));
        m_line_open = true;
    }

    void close_line()
    {
        if (std::exchange(m_line_open, false)) {
            write_own("\n");
        }
    }

    /// The job has ended without a start, or so soon that the start was missed: the session finds
    /// out.
    Waited over()
    {
        close_line();
        return Waited{};
    }

    Waited started()
    {
        close_line();
        const auto waited = Steady::now() - m_begin;
        const bool is_first = m_options.link == LinkNumber{1};
        if (is_first && waited > m_options.notice_after) {
            Notices(m_services).give(start_notice(m_run, m_job));
        }
        if (!m_options.quiet && waited > k_bell_after) {
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited);
            print_message(fmt::format("started after {}", describe(seconds)));
            if (isatty(STDERR_FILENO) == 1) {
                write_own("\a");
            }
        }
        return Waited{};
    }

    Result<Waited> on_signal(int number)
    {
        const bool is_first = m_options.link == LinkNumber{1};
        if (number == SIGINT && m_options.terminal && !is_first) {
            close_line();
            print_note(
                m_options.quiet,
                fmt::format(
                    "detached; run {} continues. Back to it: gpuq attach {}, to end it: gpuq "
                    "stop {}",
                    m_job.value, m_job.value, m_job.value));
            return Waited{static_cast<int>(ExitStatus::interrupted)};
        }
        if (number == SIGINT && m_options.terminal) {
            return withdraw(static_cast<int>(ExitStatus::interrupted), "Ctrl-C");
        }
        if (m_options.terminal || m_options.visitor || number == SIGHUP) {
            close_line();
            print_note(
                m_options.quiet,
                fmt::format("detached; run {} stays in the queue. Back to it: gpuq attach {}",
                            m_job.value, m_job.value));
            return Waited{static_cast<int>(ExitStatus::detached)};
        }
        return withdraw(128 + number, fmt::format("signal {}", number));
    }

    Result<Waited> withdraw(int status, const std::string& why)
    {
        close_line();
        const Time now = m_services.clock().now();
        const std::string by = fmt::format("{}@{}", m_run.user, m_run.host);
        // The request is written to disk first: if Slurm does not respond, the supervisor finds it
        // and exits.
        TRY(m_store->write(layout::inbox(m_run.key) + "/" + layout::k_stop_request,
                           to_json(StopRequest{by, now})));
        if (const auto done = m_cluster->cancel(m_job); !done) {
            print_note(
                m_options.quiet,
                fmt::format("{}; the request is withdrawn as soon as Slurm answers or the run "
                            "starts",
                            done.error().text));
            return Waited{status};
        }
        const Ending ending{status, Cause::stopped, fmt::format("withdrawn: {}", why), now};
        (void)m_store->write_once(layout::ended_json(m_run.key), to_json(ending));
        forget_active(*m_store, m_run.key);
        print_note(m_options.quiet, fmt::format("run {} withdrawn ({})", m_job.value, why));
        return Waited{status};
    }

    Services& m_services;
    Signals& m_signals;
    const Run& m_run;
    JobId m_job;
    const WaitingOptions& m_options;
    bool m_one_line;
    Store* m_store = nullptr;
    Cluster* m_cluster = nullptr;
    Steady::time_point m_begin = Steady::now();
    Steady::time_point m_next_question = m_begin;
    Steady::time_point m_next_estimate = Steady::now() + k_estimate_after;
    Steady::time_point m_shown_at = {};
    std::string m_shown;
    bool m_line_open = false;
};

} // namespace

Result<Waited> wait_for_start(Services& services, Signals& signals, const Run& run, JobId job,
                              const WaitingOptions& options)
{
    return Wait(services, signals, run, job, options).run();
}

} // namespace gpuq::cli
