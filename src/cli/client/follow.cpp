// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/follow.h"

#include "cli/base/notices.h"
#include "cli/base/status_sources.h"
#include "cli/client/waiting.h"
#include "ports/step_process.h"
#include "remote/verb_process.h"
#include "report/ending_text.h"
#include "runs/query_status.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <poll.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_query_again = 2s;

/// The wait between two links.
class Between {
public:
    Between(Services& services, Signals& signals, const Run& run, const SessionOptions& options)
        : m_services(services)
        , m_signals(signals)
        , m_run(run)
        , m_options(options)
    {
    }

    /// The job of the next link once it has one, or gpuq's exit status.
    struct Next {
        LinkNumber link;
        std::optional<JobId> job;
        std::optional<int> leave;
        std::optional<Ending> ending; ///< with `leave`: of the run
    };
    Result<Next> wait_for_job(JobId job)
    {
        TRY_ASSIGN(Store* const store, m_services.store());
        while (true) {
            const RunStatus status = query_run(status_sources(m_services, *store), m_run.key);
            if (status.state == RunState::ended && status.ending) {
                return ended(status, job);
            }
            if (status.link > m_options.link && status.job) {
                return Next{status.link, status.job->job, {}, {}};
            }
            pollfd wait{m_signals.descriptor(), POLLIN, 0};
            ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(k_query_again).count()));
            if (const auto number = m_signals.next()) {
                print_note(m_options.quiet,
                           fmt::format("detached; run {} continues. Back to it: gpuq attach {}",
                                       job.value, job.value));
                return Next{{},
                            {},
                            static_cast<int>(*number == SIGINT ? ExitStatus::interrupted
                                                               : ExitStatus::detached),
                            {}};
            }
        }
    }

private:
    Next ended(const RunStatus& status, JobId job) const
    {
        if (!m_options.quiet) {
            for (const std::string& line :
                 farewell(m_run, job, *status.ending, status.last_lines)) {
                print_message(line);
            }
        }
        return {status.link, {}, status.ending->status, status.ending};
    }

    Services& m_services;
    Signals& m_signals;
    const Run& m_run;
    const SessionOptions& m_options;
};

/// Reports to serve the position in the link's log at which this command's output began; modulo
/// 2^64, since output of earlier links may have been shown too.
void send_to_serve(const Services& services, const Run& run, JobId job,
                   const SessionOptions& options, const std::array<std::uint64_t, 2>& printed)
{
    const Shown from = options.shown.value_or(Shown{});
    services.send_to_serve(remote::line_of({run.key.text(), job.value, options.link.value,
                                            from.out - printed[0], from.err - printed[1]}));
}

} // namespace

Result<int> follow_run(Services& services, Signals& signals, const Run& run, JobId job,
                       SessionOptions options, std::optional<StepProcess> first)
{
    std::array<std::uint64_t, 2> printed = options.printed;
    Notices notices(services);
    const auto begun = std::chrono::steady_clock::now();
    const auto notice_end = [&](const std::optional<Ending>& ending) {
        const bool is_old = options.over || !ending || ending->continues;
        if (!is_old && std::chrono::steady_clock::now() - begun >= options.notice_after) {
            notices.give(end_notice(run, job, *ending));
        }
    };
    options.on_note = [&](const std::string& text) {
        notices.give(warning_notice(run, job, text));
    };
    while (true) {
        send_to_serve(services, run, job, options, printed);
        Session session(services, signals, run, job, options);
        auto status = session.run(std::exchange(first, std::nullopt));
        for (const Stream stream : {Stream::out, Stream::err}) {
            printed[static_cast<std::size_t>(stream)] += session.printed(stream);
        }
        if (!status || !session.continues()) {
            notice_end(session.ending());
            return status;
        }
        TRY_ASSIGN(const Between::Next next,
                   Between(services, signals, run, options).wait_for_job(job));
        if (next.leave) {
            notice_end(next.ending);
            return *next.leave;
        }
        job = *next.job;
        options.link = next.link;
        options.shown = Shown{0, 0, next.link};
        WaitingOptions waiting;
        waiting.terminal = options.terminal;
        waiting.quiet = options.quiet;
        waiting.visitor = options.part == SessionOptions::Part::visitor;
        waiting.link = next.link;
        TRY_ASSIGN(const Waited waited, wait_for_start(services, signals, run, job, waiting));
        if (waited.leave) {
            return *waited.leave;
        }
    }
}

} // namespace gpuq::cli
