// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/find_training.h"

#include "core/layout.h"
#include "core/strings.h"
#include "ports/clock.h"
#include "ports/host.h"
#include "runs/insight/training.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::cli {
namespace {

/// The start of the first link: files changed since then may belong to an earlier link.
std::optional<Time> begun(const RunStatus& status)
{
    return status.links.empty() ? status.started_at : status.links.front().started_at;
}

/// Files below GPUQ_CHECKPOINT_DIR, which is not in the working directory, are listed with absolute
/// paths.
std::vector<TrainingFile> training_files(Services& services, Store& store, const RunStatus& status,
                                         Time since, Apart apart)
{
    constexpr std::chrono::seconds k_patience{3};
    const std::string checkpoints =
        fmt::format("{}/{}", store.root(), layout::checkpoints(status.key));
    const auto read = [&] {
        Files& files = services.program_files();
        auto all = read_training_files(files, status.run->request.work_dir, since);
        for (TrainingFile& file : read_training_files(files, checkpoints, since)) {
            file.path = fmt::format("{}/{}", checkpoints, file.path);
            all.push_back(std::move(file));
        }
        return all;
    };
    std::vector<TrainingFile> files;
    if (apart == Apart::no) {
        files = read();
    } else {
        const auto answers = services.host().apart({[&] { return to_text(read()); }}, k_patience);
        if (answers.front().kind == Host::Answer::Kind::done) {
            files = training_files_in(answers.front().text);
        }
    }
    if (status.ending) { // files written later belong to another run
        constexpr std::chrono::minutes k_late{1};
        std::erase_if(files, [&](const TrainingFile& file) {
            return file.modified > status.ending->at + k_late;
        });
    }
    return files;
}

/// When the output of a link was last written.
std::optional<Time> written_at(Services& services, Store& store, const RunKey& key, LinkNumber link)
{
    const auto logs = services.program_files().changed_since(
        fmt::format("{}/{}", store.root(), layout::link_dir(key, link)), Time(),
        [](std::string_view name) { return name == "out.log" || name == "err.log"; });
    return logs && !logs->empty() ? std::optional(logs->front().modified) : std::nullopt;
}

/// The progress of the newest link, with the curves of all. While that has reported nothing, the
/// progress of the link before it, without a pace.
LinkProgress newest_progress(Services& services, Store& store, const RunStatus& status,
                             EarlierCurves& earlier)
{
    const auto own = own_pattern(*status.run);
    for (LinkNumber link = status.link;; --link.value) {
        LinkProgress output = read_progress(store, status.key, link, own ? &*own : nullptr);
        const bool has_reported = output.last || !output.curves.by_tag().empty();
        if (!has_reported && link > LinkNumber{1}) {
            continue;
        }
        telemetry::Curves curves = earlier.before(store, status.key, link, own ? &*own : nullptr);
        curves.add(output.curves);
        output.curves = std::move(curves);
        output.written_at = written_at(services, store, status.key, link);
        if (link != status.link) {
            output.first.reset();
            output.began.reset();
            output.bar.reset();
        }
        return output;
    }
}

} // namespace

WholeTraining find_training(Services& services, Store& store, const RunStatus& status, Apart apart,
                            EarlierCurves* earlier)
{
    const auto since = begun(status);
    const bool is_shell = status.run && status.run->request.pty && status.run->request.pty->shell;
    if (!status.run || !since || is_shell) { // output in a shell is not training progress
        return {};
    }
    EarlierCurves read;
    const LinkProgress output =
        newest_progress(services, store, status, earlier == nullptr ? read : *earlier);
    WholeTraining whole;
    whole.training = training_of(training_files(services, store, status, *since, apart), output,
                                 status.started_at);
    const Time now = services.clock().now();
    whole.finish = finish_of(whole.training, output, status, now);
    whole.alarms = alarms_of(whole.training, status, now);
    return whole;
}

std::vector<std::string> find_event_files(Services& services, Store& store, const RunStatus& status,
                                          Apart apart)
{
    constexpr std::chrono::seconds k_patience{3};
    constexpr std::chrono::minutes k_late{1};
    const auto since = begun(status);
    if (!status.run || !since) {
        return {};
    }
    const auto list = [&] {
        std::string paths;
        for (const std::string& directory :
             {status.run->request.work_dir,
              fmt::format("{}/{}", store.root(), layout::checkpoints(status.key))}) {
            for (const Files::File& file :
                 list_event_files(services.program_files(), directory, *since)) {
                if (!status.ending || file.modified <= status.ending->at + k_late) {
                    paths += fmt::format("{}/{}", directory, file.path) + '\0';
                }
            }
        }
        return paths;
    };
    std::string paths;
    if (apart == Apart::no) {
        paths = list();
    } else {
        const auto answers = services.host().apart({list}, k_patience);
        paths = answers.front().kind == Host::Answer::Kind::done ? answers.front().text : "";
    }
    std::vector<std::string> files;
    for (const std::string_view path : fields(paths, std::string_view("\0", 1))) {
        files.emplace_back(path);
    }
    return files;
}

} // namespace gpuq::cli
