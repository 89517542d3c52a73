// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/look_doors.h"
#include "cli/base/say.h"
#include "cli/base/table_output.h"
#include "cli/queries/find_training.h"
#include "cli/queries/plain_target.h"
#include "cli/render/plain_show.h"
#include "cli/render/show_text.h"
#include "core/layout.h"
#include "runs/evidence.h"
#include "runs/find.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

std::optional<std::uint64_t> size_of(Store& store, const std::string& path)
{
    const auto size = store.size(path);
    return size ? std::optional(*size) : std::nullopt;
}

/// Queries the status first, which may record an end that only Slurm knew.
WholeRun find_out(Doors& doors, Store& store, const RunKey& key)
{
    const Looked looked = look(look_doors(doors, store), {key});
    WholeRun whole{looked.runs.front(), {}, {}, {}, {}, {}};
    whole.journal = read_evidence(store, key).journal;
    whole.folder = fmt::format("{}/{}", store.root(), layout::run_dir(key));
    whole.out_bytes = size_of(store, layout::log(key, whole.status.link, Stream::out));
    whole.err_bytes = size_of(store, layout::log(key, whole.status.link, Stream::err));
    whole.samples = newest_samples(store, key, whole.status.link);
    whole.idle = idle_records(store, key, whole.status.link);
    whole.credentials = credential_records(store, doors.secret_files(), key, whole.status.link,
                                           doors.clock().now());
    whole.gpu_time = gpu_time_so_far(store, whole.status, doors.clock().now());
    whole.training = find_training(doors, store, whole.status, Apart::yes);
    if (!looked.slurm_silent.empty()) {
        whole.warnings.push_back(looked.slurm_silent);
    }
    return whole;
}

Result<int> show(Invocation& invocation)
{
    if (invocation.words.size() != 1) {
        return fail(Error::Kind::usage, "which run? gpuq show RUN; gpuq ls lists them");
    }
    TRY_ASSIGN(Store* const store, invocation.doors.store());
    TRY_ASSIGN(const Target target,
               find_target(invocation.doors, *store, invocation.words.front()));
    if (const auto* plain = std::get_if<RunStatus>(&target)) {
        return show_plain(invocation, *plain);
    }
    const RunKey& key = std::get<RunKey>(target);
    const WholeRun whole = find_out(invocation.doors, *store, key);
    const Time now = invocation.doors.clock().now();
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(show_document(whole, now))));
        return 0;
    }
    for (const std::string& warning : whole.warnings) {
        say(fmt::format("{}; showing the state on disk", warning));
    }
    for (const std::string& line : show_lines(whole, now)) {
        TRY(print_line(line));
    }
    return 0;
}

} // namespace

const Verb k_show_verb{"show", "gpuq show RUN", "everything about one run", show};

} // namespace gpuq::cli
