// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/tensorboard_carry.h"

#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/base/status_sources.h"
#include "cli/host/notebook_carrier.h"
#include "cli/host/tensorboard_server.h"
#include "cli/queries/find_training.h"
#include "cli/queries/plain_target.h"
#include "cli/render/run_table.h"
#include "core/exit_status.h"
#include "remote/gate.h"
#include "runs/query_status.h"
#include "wire/remote_frame.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

// Processes: this one; TensorBoard and its gate (cli/host/tensorboard_server.h); and `gpuq
// tensorboard --join`, which carries bytes to the gate. They end with this one.

namespace gpuq::cli {
namespace {

constexpr std::chrono::seconds k_new_files_period{5};

class TensorboardCarry {
public:
    TensorboardCarry(Invocation& invocation, Store& store, TensorboardServer server)
        : m_invocation(invocation)
        , m_services(invocation.services)
        , m_store(store)
        , m_server(std::move(server))
    {
    }

    Result<int> run()
    {
        for (const std::string& name : m_invocation.arguments) {
            TRY_ASSIGN(const Target target, find_target(m_services, m_store, name));
            const auto* const key = std::get_if<RunKey>(&target);
            if (key == nullptr) {
                return fail(Error::Kind::usage,
                            fmt::format("{}: a plain job, whose event files gpuq does not know; "
                                        "`tensorboard --logdir DIR` shows a directory",
                                        name));
            }
            m_runs.push_back(*key);
        }
        TRY_ASSIGN(const auto without, show_files());
        for (const std::string& title : without) {
            print_note(m_invocation.globals.quiet,
                       fmt::format("run {} has no event files yet; new ones will be shown", title));
        }
        TRY_ASSIGN(const std::string supervisor, m_services.supervisor());
        m_gate = "gpuq-tensorboard-" + random_digits(m_services, 32);
        TRY(m_server.start(m_services.environment(), supervisor, m_gate));
        return carry();
    }

private:
    /// New files of runs that continue appear in the page. Returns the runs without any. A failure
    /// with one run does not affect the others.
    Result<std::vector<std::string>> show_files()
    {
        m_shown_at = m_services.clock().steady();
        std::vector<std::string> without;
        std::optional<Error> failure;
        for (const RunKey& key : m_runs) {
            if (auto shown = show_files_of(key, without); !shown && !failure) {
                failure = std::move(shown).error();
            }
        }
        return failure ? Result<std::vector<std::string>>(*std::move(failure)) : std::move(without);
    }

    Result<void> show_files_of(const RunKey& key, std::vector<std::string>& without)
    {
        const RunStatus status =
            query_run(status_sources(m_services, m_store), key, SlurmQuery::never);
        const auto files = find_event_files(m_services, m_store, status, Apart::yes);
        if (files.empty() && status.state == RunState::ended) {
            return fail(
                Error::Kind::missing,
                fmt::format("run {} has written no event files of TensorBoard", run_title(status)));
        }
        if (files.empty()) {
            without.push_back(run_title(status));
        }
        const std::string base = status.run ? status.run->request.work_dir : "";
        return m_server.show(run_title(status), base, files);
    }

    Result<int> carry()
    {
        TRY_ASSIGN(std::string program, m_services.program());
        CarrierOptions options;
        options.session = random_digits(m_services, wire::remote::k_session_digits);
        options.command = {std::move(program), "tensorboard", "--join=" + m_gate};
        options.connected = [] { return fmt::format("{}\n", k_tensorboard_greeting); };
        options.ended = [this] { return check(); };
        Signals signals;
        options.signals = &signals;
        auto status = carry_notebook(std::move(options));
        return m_failure ? Result<int>(*m_failure) : std::move(status);
    }

    std::optional<int> check()
    {
        m_failure = m_server.ended();
        if (m_failure) {
            return static_cast<int>(exit_status_of(m_failure->kind));
        }
        if (m_services.clock().steady() - m_shown_at >= k_new_files_period) {
            (void)show_files(); // again at the next time
        }
        return std::nullopt;
    }

    Invocation& m_invocation;
    Services& m_services;
    Store& m_store;
    TensorboardServer m_server;
    std::vector<RunKey> m_runs;
    std::string m_gate;
    std::chrono::steady_clock::time_point m_shown_at;
    std::optional<Error> m_failure;
};

} // namespace

Result<int> carry_tensorboard_of(Invocation& invocation)
{
    if (::isatty(STDIN_FILENO) == 1) {
        return fail(Error::Kind::usage, "--carry is for gpuq tensorboard only");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(TensorboardServer server, TensorboardServer::make());
    return TensorboardCarry(invocation, *store, std::move(server)).run();
}

Result<int> join_tensorboard(const std::string& gate)
{
    TRY(remote::join_gate([&] { return std::optional(gate); }, STDIN_FILENO, STDOUT_FILENO));
    return 0;
}

} // namespace gpuq::cli
