// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/find_credentials.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/tickets.h"
#include "cli/render/run_table.h"
#include "runs/evidence.h"
#include "runs/find.h"

#include <fmt/format.h>

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "stay", "", "refresh them on this machine as long as an active run has any"}};

Result<int> keepalive(Invocation& invocation)
{
    if (invocation.arguments.size() > 1) {
        return fail(Error::Kind::usage, "keepalive takes one run, or none for all: gpuq keepalive");
    }
    Services& services = invocation.services;
    if (invocation.options.has("stay")) {
        keep_refreshing(services);
        return 0;
    }
    TRY_ASSIGN(Store* const store, services.store());
    std::vector<RunKey> keys;
    if (invocation.arguments.empty()) {
        TRY_ASSIGN(keys, active_runs(*store));
    } else {
        TRY_ASSIGN(const RunKey key,
                   find_supervised(services, *store, invocation.arguments.front(), "keepalive",
                                   "tickets in job {0} are not renewed; gpuq run starts it with "
                                   "tickets that are renewed"));
        keys.push_back(key);
    }
    const RunStatuses statuses = query_status(status_sources(services, *store), keys);
    const auto runs = find_credentials(services, *store, statuses.runs);
    const Time now = services.clock().now();
    if (!statuses.slurm_silent.empty()) {
        print_message(fmt::format("{}; showing the state on disk", statuses.slurm_silent));
    }
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(keepalive_document(runs, now))));
        return 0;
    }
    const report::Table table = credentials_table(runs, now);
    TRY_ASSIGN([[maybe_unused]] const auto checked,
               report::only(table, invocation.globals.columns));
    if (runs.empty() && !invocation.globals.quiet) {
        print_message(
            invocation.arguments.empty()
                ? "no active run has a Kerberos ticket; klist shows whether your login has one"
                : fmt::format("run {} has no Kerberos ticket: the login that started it had none",
                              run_title(statuses.runs.front())));
    }
    if (runs.empty()) {
        return 0;
    }
    TRY(print_table(table, invocation.globals, services));
    if (!invocation.globals.quiet) {
        for (const std::string& text : shortages(runs, now)) {
            print_message(text);
        }
    }
    return 0;
}

} // namespace

const Verb k_keepalive_verb{"keepalive", "gpuq keepalive [--stay] [RUN]",
                            "show the tickets and tokens of runs, and how they are renewed",
                            keepalive, k_options};

} // namespace gpuq::cli
