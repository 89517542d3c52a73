// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/show_verb.h"

#include "cli/look_doors.h"
#include "cli/say.h"
#include "cli/show_text.h"
#include "cli/table_output.h"
#include "core/layout.h"
#include "core/sanitise.h"
#include "runs/evidence.h"
#include "runs/find.h"
#include "runs/training.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::cli {
namespace {

std::optional<std::uint64_t> size_of(Store& store, const std::string& path)
{
    const auto size = store.size(path);
    return size ? std::optional(*size) : std::nullopt;
}

/// What changes a folder after the run began may be a file of an earlier link.
std::optional<Time> begun(const RunStatus& status)
{
    return status.links.empty() ? status.started_at : status.links.front().started_at;
}

/// In a process of its own: the person's folder may be on a file system that hangs. Those below
/// GPUQ_CHECKPOINT_DIR, which is not in it, are told of by their whole paths.
std::vector<TrainingFile> training_files(Doors& doors, Store& store, const RunStatus& status,
                                         Time since)
{
    constexpr std::chrono::seconds k_patience{3};
    const std::string checkpoints =
        fmt::format("{}/{}", store.root(), layout::checkpoints(status.key));
    const auto work = [&] {
        Files& files = doors.program_files();
        auto all = read_training_files(files, status.run->request.work_dir, since);
        for (TrainingFile& file : read_training_files(files, checkpoints, since)) {
            file.path = fmt::format("{}/{}", checkpoints, file.path);
            all.push_back(std::move(file));
        }
        return to_text(all);
    };
    const auto answers = doors.host().apart({work}, k_patience);
    std::vector<TrainingFile> files;
    if (answers.front().kind == Host::Answer::Kind::done) {
        files = training_files_in(answers.front().text);
    }
    if (status.ending) { // what is written later is another run's
        constexpr std::chrono::minutes k_late{1};
        std::erase_if(files, [&](const TrainingFile& file) {
            return file.modified > status.ending->at + k_late;
        });
    }
    return files;
}

/// When a stream of a link was last written to.
std::optional<Time> written_at(Doors& doors, Store& store, const RunStatus& status)
{
    const auto logs = doors.program_files().changed_since(
        fmt::format("{}/{}", store.root(), layout::link_dir(status.key, status.link)), Time(),
        [](std::string_view name) { return name == "out.log" || name == "err.log"; });
    return logs && !logs->empty() ? std::optional(logs->front().modified) : std::nullopt;
}

WholeTraining find_training(Doors& doors, Store& store, const RunStatus& status)
{
    const auto since = begun(status);
    if (!status.run || !since) {
        return {};
    }
    const auto own = own_pattern(*status.run);
    LinkProgress output = read_progress(store, status.key, status.link, own ? &*own : nullptr);
    output.written_at = written_at(doors, store, status);
    WholeTraining whole;
    whole.training =
        training_of(training_files(doors, store, status, *since), output, status.started_at);
    const Time now = doors.clock().now();
    whole.finish = finish_of(whole.training, output, status, now);
    whole.alarms = alarms_of(whole.training, status, now);
    return whole;
}

/// The status first: the look may write down an end that only Slurm knew.
WholeRun find_out(Doors& doors, Store& store, const RunKey& key)
{
    const Looked looked = look(look_doors(doors, store), {key});
    WholeRun whole{looked.runs.front(), {}, {}, {}, {}, {}};
    whole.journal = read_evidence(store, key).journal;
    whole.folder = fmt::format("{}/{}", store.root(), layout::run_dir(key));
    whole.out_bytes = size_of(store, layout::log(key, whole.status.link, Stream::out));
    whole.err_bytes = size_of(store, layout::log(key, whole.status.link, Stream::err));
    whole.training = find_training(doors, store, whole.status);
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
    TRY_ASSIGN(const RunKey key, find_run(*store, invocation.words.front()));
    const WholeRun whole = find_out(invocation.doors, *store, key);
    const Time now = invocation.doors.clock().now();
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(show_document(whole, now))));
        return 0;
    }
    for (const std::string& warning : whole.warnings) {
        say(fmt::format("{}; this is what the disk knows", warning));
    }
    for (const std::string& line : show_lines(whole, now)) {
        TRY(print_text(sanitised(line) + "\n"));
    }
    return 0;
}

} // namespace

const Verb k_show_verb{"show", "gpuq show RUN", "everything about one run", show};

} // namespace gpuq::cli
