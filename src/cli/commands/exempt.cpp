// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/render/run_table.h"
#include "core/timestamp.h"
#include "report/json.h"
#include "runs/find.h"
#include "runs/idle.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <array>

namespace gpuq::cli {
namespace {

using report::Json;

constexpr std::array k_options = {
    Option{0, "reason", "TEXT", "why the run keeps its GPUs, for the operators"}};

Result<std::string> reason_in(const Options& options)
{
    const std::string reason = options.value("reason").value_or("");
    if (reason.find_first_not_of(' ') == std::string::npos) {
        return fail(Error::Kind::usage,
                    "exempt needs a reason: gpuq exempt RUN --reason 'a debugger, until 17:00'");
    }
    if (reason.size() > k_longest_reason || sanitised(reason) != reason) {
        return fail(Error::Kind::usage, fmt::format("a reason is one line of at most {} bytes, "
                                                    "without control characters",
                                                    k_longest_reason));
    }
    return reason;
}

/// An existing reason is kept: it is the one that the operators have read.
Result<Exemption> keep(Store& store, const RunKey& key, const Exemption& exemption)
{
    const auto written = store.write_once(exempt_json(key), to_json(exemption));
    if (written) {
        return exemption;
    }
    if (written.error().kind != Error::Kind::busy) {
        return written.error();
    }
    TRY_ASSIGN(const std::string text, store.read(exempt_json(key)));
    return exemption_from_json(text);
}

Result<int> exempt(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage, "exempt takes one run: gpuq exempt last --reason TEXT");
    }
    TRY_ASSIGN(const std::string reason, reason_in(invocation.options));
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const RunKey key,
               find_supervised(invocation.services, *store, invocation.arguments[0], "exempt",
                               "gpuq takes no idle GPUs back from job {0}"));
    const RunStatus run = query_run(status_sources(invocation.services, *store), key);
    if (run.state == RunState::ended) {
        return fail(Error::Kind::denied, fmt::format("run {} has ended already", run_title(run)));
    }
    const bool ruled = store->read(idle_rules_json(key)).has_value();
    const Exemption asked{fmt::format("{}@{}", user_name(), host_name()), reason,
                          invocation.services.clock().now()};
    TRY_ASSIGN(const Exemption kept, keep(*store, key, asked));
    if (invocation.globals.json) {
        TRY(print_text(report::json_document({{"key", key.text()},
                                              {"job", run.job ? Json(run.job->job) : Json()},
                                              {"by", kept.by},
                                              {"reason", kept.reason},
                                              {"at", kept.at},
                                              {"takes_idle_gpus_back", ruled}})));
    }
    if (!invocation.globals.quiet) {
        print_message(kept == asked
                          ? fmt::format("run {} keeps its GPUs, also idle ones", run_title(run))
                          : fmt::format("run {} was exempted by {} already: {}", run_title(run),
                                        kept.by, kept.reason));
        if (!ruled) {
            print_message(
                "no queue of its policy takes idle GPUs back: it would have kept them anyway");
        }
    }
    return 0;
}

} // namespace

const Verb k_exempt_verb{"exempt", "gpuq exempt RUN --reason TEXT",
                         "let a run keep GPUs that it does not use", exempt, k_options};

} // namespace gpuq::cli
