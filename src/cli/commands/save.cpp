// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/plain_target.h"
#include "cli/render/run_table.h"
#include "core/layout.h"
#include "report/json.h"
#include "runs/find.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

/// Creates the file that the program checks for; nothing else is notified.
Result<int> save(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage, "save takes one run: gpuq save last");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const RunKey key,
               find_supervised(
                   invocation.services, *store, invocation.arguments[0], "save",
                   "scancel --batch --signal=USR1 {0} signals its script, if that handles it"));
    const RunStatus run = query_run(status_sources(invocation.services, *store), key);
    if (run.state != RunState::running) {
        return fail(Error::Kind::denied,
                    fmt::format("run {} is not running: nothing to save", run_title(run)));
    }
    const auto left = store->write_once(layout::save_file(key, run.link), "");
    const bool is_new = left.has_value();
    if (!is_new && left.error().kind != Error::Kind::busy) {
        return left.error();
    }
    if (invocation.globals.json) {
        TRY(print_text(
            report::json_document({{"key", key.text()},
                                   {"job", run.job ? report::Json(run.job->job) : report::Json()},
                                   {"link", run.link.value},
                                   {"told_before", !is_new}})));
    } else if (!invocation.globals.quiet) {
        print_message(
            is_new ? fmt::format("run {} is asked to save and continue, if its program checks for "
                                 "GPUQ_SAVE_FILE (man gpuq-chain)",
                                 run_title(run))
                   : fmt::format("run {} was asked before and has not saved since: does its "
                                 "program check for GPUQ_SAVE_FILE (man gpuq-chain)?",
                                 run_title(run)));
    }
    return 0;
}

} // namespace

const Verb k_save_verb{
    "save", "gpuq save RUN", "request a checkpoint from a running program", save, {}};

} // namespace gpuq::cli
