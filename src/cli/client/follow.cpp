// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/follow.h"

#include "cli/base/look_doors.h"
#include "cli/client/waiting.h"
#include "remote/verb_process.h"
#include "report/words.h"
#include "runs/look.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <poll.h>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto k_look_again = 2s;

/// The wait between two links.
class Between {
public:
    Between(Doors& doors, Signals& signals, const Run& run, const SessionOptions& options)
        : m_doors(doors)
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
    };
    Result<Next> wait_for_job(JobId job)
    {
        TRY_ASSIGN(Store* const store, m_doors.store());
        while (true) {
            const RunStatus status = look_at(look_doors(m_doors, *store), m_run.key);
            if (status.state == RunState::ended && status.ending) {
                return ended(status, job);
            }
            if (status.link > m_options.link && status.job) {
                return Next{status.link, status.job->job, {}};
            }
            pollfd wait{m_signals.descriptor(), POLLIN, 0};
            ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(k_look_again).count()));
            if (const auto number = m_signals.next()) {
                tell(fmt::format("detached; run {} continues. Back to it: gpuq attach {}",
                                 job.value, job.value));
                return Next{{},
                            {},
                            static_cast<int>(*number == SIGINT ? ExitStatus::interrupted
                                                               : ExitStatus::detached)};
            }
        }
    }

private:
    Next ended(const RunStatus& status, JobId job) const
    {
        if (!m_options.quiet) {
            for (const std::string& line :
                 farewell(m_run, job, *status.ending, status.last_lines)) {
                say(line);
            }
        }
        return {status.link, {}, status.ending->status};
    }

    void tell(const std::string& text) const
    {
        if (!m_options.quiet) {
            say(text);
        }
    }

    Doors& m_doors;
    Signals& m_signals;
    const Run& m_run;
    const SessionOptions& m_options;
};

/// Reports to serve the position in the link's log at which this command's output began; modulo
/// 2^64, since output of earlier links may have been shown too.
void tell_serve(const Doors& doors, const Run& run, JobId job, const SessionOptions& options,
                const std::array<std::uint64_t, 2>& printed)
{
    const Shown from = options.shown.value_or(Shown{});
    doors.tell_serve(remote::line_of({run.key.text(), job.value, options.link.value,
                                      from.out - printed[0], from.err - printed[1]}));
}

} // namespace

Result<int> follow_run(Doors& doors, Signals& signals, const Run& run, JobId job,
                       SessionOptions options, std::optional<StepProcess> first)
{
    std::array<std::uint64_t, 2> printed = options.printed;
    while (true) {
        tell_serve(doors, run, job, options, printed);
        Session session(doors, signals, run, job, options);
        auto status = session.run(std::exchange(first, std::nullopt));
        for (const Stream stream : {Stream::out, Stream::err}) {
            printed[static_cast<std::size_t>(stream)] += session.printed(stream);
        }
        if (!status || !session.continues()) {
            return status;
        }
        TRY_ASSIGN(const Between::Next next,
                   Between(doors, signals, run, options).wait_for_job(job));
        if (next.leave) {
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
        TRY_ASSIGN(const Waited waited, wait_for_start(doors, signals, run, job, waiting));
        if (waited.leave) {
            return *waited.leave;
        }
    }
}

} // namespace gpuq::cli
