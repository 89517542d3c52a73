// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/detach_step.h"

#include "cli/base/message.h"
#include "cli/client/connections.h"
#include "cli/client/end_job.h"
#include "ports/clock.h"
#include "report/ending_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <variant>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

/// The handover to a relay, which a client that leaves does not need.
constexpr auto k_no_handover = 24h;
constexpr auto k_flush_patience = 200ms;

class Detaching {
public:
    Detaching(Services& services, Signals& signals, const Run& run, JobId job, bool quiet,
              const StepPatience& patience)
        : m_services(services)
        , m_signals(signals)
        , m_run(run)
        , m_job(job)
        , m_quiet(quiet)
        , m_notice_at(Clock::now() + patience.notice)
        , m_until(Clock::now() + patience.most)
        , m_connections(m_loop, services, run, LinkNumber{1}, job, k_no_handover,
                        [] { return std::vector<wire::Frame>(); })
    {
    }

    Result<std::optional<int>> run(const StepProcess& first)
    {
        m_connections.begin(first);
        while (!m_connections.was_connected()) {
            if (const auto signal = wait()) {
                return std::optional(static_cast<int>(*signal == SIGINT ? ExitStatus::interrupted
                                                                        : ExitStatus::detached));
            }
            if (!read()) {
                return end(never_started(m_connections.drop_current().messages, now()));
            }
            if (!m_connections.was_connected() && Clock::now() >= m_until) {
                return end({static_cast<int>(ExitStatus::internal), Cause::not_started,
                            "Slurm has not started it on its node; try again", now()});
            }
            print_notice();
        }
        // While srun can still pass it on: at its end, the supervisor waits for clients that have
        // not left.
        m_connections.current()->send(wire::Bye{});
        m_connections.current()->flush(k_flush_patience);
        if (!m_has_ended && !m_connections.secure()) {
            return end(lost_with_login(now()));
        }
        return std::optional<int>();
    }

private:
    using Clock = std::chrono::steady_clock;

    void print_notice()
    {
        if (!m_notice_at || m_connections.was_connected() || Clock::now() < *m_notice_at) {
            return;
        }
        m_notice_at.reset();
        print_note(m_quiet,
                   fmt::format("run {}: Slurm has not started it on its node yet; waiting, "
                               "Ctrl-C detaches",
                               m_job.value));
    }

    /// Until there is something to read or to print, or a signal.
    std::optional<int> wait()
    {
        Connection& step = *m_connections.current();
        std::array<pollfd, 4> ends{{{m_signals.descriptor(), POLLIN, 0},
                                    {step.output(), POLLIN, 0},
                                    {step.error(), POLLIN, 0},
                                    {step.wants_to_write(), POLLOUT, 0}}};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            m_notice_at.value_or(m_until) - Clock::now());
        (void)::poll(ends.data(), ends.size(), static_cast<int>(std::max(left, 0ms).count()));
        return m_signals.next();
    }

    /// False if the step has ended before its Hello.
    bool read()
    {
        Connection& step = *m_connections.current();
        step.read_errors();
        if (step.wants_to_write() >= 0) {
            step.write_some();
        }
        const bool is_open = step.read_some();
        while (const auto frame = step.next()) {
            if (std::holds_alternative<wire::Hello>(*frame)) {
                m_connections.greeted();
            }
            m_has_ended = m_has_ended || std::holds_alternative<wire::Ended>(*frame);
        }
        return m_connections.was_connected() || (is_open && !step.is_broken());
    }

    Error end(const Ending& ending)
    {
        (void)end_job(m_services, m_run, m_job, ending);
        return fail(ending.cause == Cause::lost ? Error::Kind::lost : Error::Kind::internal,
                    fmt::format("run {}: {}", m_job.value, ending.detail));
    }

    Time now() const { return m_services.clock().now(); }

    Services& m_services;
    Signals& m_signals;
    const Run& m_run;
    JobId m_job;
    bool m_quiet;
    std::optional<Clock::time_point> m_notice_at; ///< nullopt: printed
    Clock::time_point m_until;
    EventLoop m_loop;
    Connections m_connections;
    bool m_has_ended = false;
};

} // namespace

Result<std::optional<int>> detach_step(Services& services, Signals& signals, const Run& run,
                                       JobId job, const StepProcess& first, bool quiet,
                                       const StepPatience& patience)
{
    return Detaching(services, signals, run, job, quiet, patience).run(first);
}

} // namespace gpuq::cli
