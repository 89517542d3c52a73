// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/commands/show_comparison.h"
#include "cli/pages/sweep_page.h"
#include "cli/policy_ops/desk_job.h"
#include "cli/queries/code_snapshot.h"
#include "cli/queries/find_training.h"
#include "cli/queries/kept_forecasts.h"
#include "cli/queries/plain_target.h"
#include "cli/render/plain_show.h"
#include "cli/render/show_text.h"
#include "cli/start/show_sweep.h"
#include "core/layout.h"
#include "runs/evidence.h"
#include "runs/find.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "compare", "", "compare runs: settings that differ, states and metrics"},
    Option{0, "html", "FILE",
           "of a comparison or sweep: also write a page with charts; - for only that"},
    Option{0, "metric", "NAME", "of a sweep: compare its tries by this metric; NAME:min, NAME:max"},
};

std::optional<std::uint64_t> size_of(Store& store, const std::string& path)
{
    const auto size = store.size(path);
    return size ? std::optional(*size) : std::nullopt;
}

std::optional<StartForecast> kept_forecast(Store& store, const RunStatus& run)
{
    const RunForecasts found = kept_forecasts(store, {run});
    return found.empty() ? std::nullopt : std::optional(found.begin()->second);
}

/// Queries the status first, which may record an end that only Slurm knew.
WholeRun find_out(Services& services, Store& store, const RunKey& key)
{
    const RunStatuses statuses = query_status(status_sources(services, store), {key});
    WholeRun whole{statuses.runs.front(), {}, {}, {}, {}, {}};
    whole.journal = read_evidence(store, key).journal;
    whole.directory = fmt::format("{}/{}", store.root(), layout::run_dir(key));
    whole.out_bytes = size_of(store, layout::log(key, whole.status.link, Stream::out));
    whole.err_bytes = size_of(store, layout::log(key, whole.status.link, Stream::err));
    whole.samples = newest_samples(store, key, whole.status.link);
    whole.idle = idle_records(store, key, whole.status.link);
    whole.credentials = credential_records(store, services.secret_files(), key, whole.status.link,
                                           services.clock().now());
    whole.gpu_time = gpu_time_so_far(store, whole.status, services.clock().now());
    whole.code = code_facts(store, layout::snapshot(key));
    whole.forecast = kept_forecast(store, whole.status);
    whole.training = find_training(services, store, whole.status, Apart::yes);
    if (!statuses.slurm_silent.empty()) {
        whole.warnings.push_back(statuses.slurm_silent);
    }
    return whole;
}

Result<int> show(Invocation& invocation)
{
    TRY_ASSIGN(const auto of_another, job_for_desk(invocation, "show"));
    if (of_another) {
        return show_plain(invocation, *of_another, {});
    }
    const bool has_metric = invocation.options.has("metric");
    if (invocation.options.has("compare") && !has_metric) {
        return show_comparison(invocation);
    }
    if (invocation.arguments.size() > 1) {
        return fail(Error::Kind::usage, "one run at a time; --compare compares several");
    }
    if (invocation.arguments.empty()) {
        return fail(Error::Kind::usage, "which run? gpuq show RUN; gpuq ls lists them");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(auto sweep, find_sweep_target(*store, invocation.arguments.front()));
    if (invocation.options.has("html") && (!sweep || sweep->number)) {
        return fail(
            Error::Kind::usage,
            "--html: only with --compare, or of a whole sweep; gpuq profile --html FILE RUN "
            "writes a page about one run");
    }
    if (has_metric && (!sweep || sweep->number || invocation.options.has("compare"))) {
        return fail(Error::Kind::usage, "--metric: only of a whole sweep");
    }
    if (sweep) {
        return show_sweep(invocation, *store, *std::move(sweep), sweep_page);
    }
    const auto target = find_target(invocation.services, *store, invocation.arguments.front());
    if (!target) {
        return show_by_helper(invocation, "show", target.error());
    }
    if (const auto* plain = std::get_if<RunStatus>(&*target)) {
        return show_plain(invocation, *plain, kept_forecast(*store, *plain));
    }
    const RunKey& key = std::get<RunKey>(*target);
    const WholeRun whole = find_out(invocation.services, *store, key);
    const Time now = invocation.services.clock().now();
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(show_document(whole, now))));
        return 0;
    }
    for (const std::string& warning : whole.warnings) {
        print_message(fmt::format("{}; showing the state on disk", warning));
    }
    for (const std::string& line : show_lines(whole, now)) {
        TRY(print_line(line));
    }
    return 0;
}

} // namespace

const Verb k_show_verb{"show", "gpuq show [--compare] [--html FILE] RUN...",
                       "everything about one run, or a comparison of several", show, k_options};

} // namespace gpuq::cli
