// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/page_output.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/pages/profile_page.h"
#include "cli/queries/find_training.h"
#include "cli/queries/plain_target.h"
#include "cli/render/profile_text.h"
#include "runs/find.h"
#include "runs/insight/samples.h"
#include "runs/query_status.h"

#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "html", "FILE", "also write a page with charts; - for standard output only"},
};

WholeProfile find_out(Services& services, Store& store, const RunKey& key)
{
    const RunStatuses statuses = query_status(status_sources(services, store), {key});
    WholeProfile whole{statuses.runs.front(), {}, {}, {}, {}};
    const Time now = services.clock().now();
    whole.profile = profile_so_far(store, whole.status, now);
    whole.gpu_time = gpu_time_so_far(store, whole.status, now);
    whole.training = find_training(services, store, whole.status, Apart::yes);
    if (!statuses.slurm_silent.empty()) {
        whole.warnings.push_back(statuses.slurm_silent);
    }
    return whole;
}

Result<void> print_summary(const WholeProfile& whole, Invocation& invocation, Time now)
{
    for (const std::string& line : profile_head(whole, now)) {
        TRY(print_line(line));
    }
    if (const report::Table table = measures_table(whole); !table.rows.empty()) {
        TRY(print_text("\n"));
        TRY(print_table(table, invocation.globals, invocation.services));
    }
    if (const report::Table table = gpus_table(whole); !table.rows.empty()) {
        Globals globals = invocation.globals;
        globals.columns.clear(); // they apply to the table above
        TRY(print_text("\n"));
        TRY(print_table(table, globals, invocation.services));
    }
    const auto foot = profile_foot(whole);
    if (!foot.empty()) {
        TRY(print_text("\n"));
    }
    for (const std::string& line : foot) {
        TRY(print_line(line));
    }
    return {};
}

Result<int> profile(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage, "which run? gpuq profile RUN; gpuq ls lists them");
    }
    TRY_ASSIGN(const PageOutput output, PageOutput::of(invocation));
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(
        const RunKey key,
        find_supervised(
            invocation.services, *store, invocation.arguments.front(), "profile",
            "its GPUs are not measured; srun --overlap --jobid={0} nvidia-smi shows them now"));
    const WholeProfile whole = find_out(invocation.services, *store, key);
    const Time now = invocation.services.clock().now();
    return output.write({[&] { return profile_page(whole, now); },
                         [&] { return profile_document(whole, now); },
                         [&] { return print_summary(whole, invocation, now); }, whole.warnings});
}

} // namespace

const Verb k_profile_verb{"profile", "gpuq profile [--html FILE] RUN",
                          "show a run's GPU use, with advice", profile, k_options};

} // namespace gpuq::cli
