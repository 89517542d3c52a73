// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/files.h"
#include "runs/progress.h"
#include "runs/status.h"
#include "telemetry/series.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How the training of a run goes, as the files that it writes and its output say.
namespace gpuq {

/// A file below the run's working directory, or what was read of it: one that is long has a hole
/// between `head` and `tail`.
struct TrainingFile {
    enum class Kind : std::uint8_t { events, metrics_csv, trainer_state } kind = Kind::events;
    std::string path;
    std::uint64_t bytes = 0;
    Time modified;
    std::string head, tail;
    bool operator==(const TrainingFile&) const = default;
};

/// TensorBoard's event files, Lightning's metrics.csv and Hugging Face's trainer_state.json that
/// have changed since the run began; at most 32 MiB of them. Blocks as long as the file system.
std::vector<TrainingFile> read_training_files(Files& files, const std::string& folder, Time since);

/// The same as one text, for a process that reads them apart from this one. What does not read as
/// such is no file.
std::string to_text(const std::vector<TrainingFile>& files);
std::vector<TrainingFile> training_files_in(std::string_view text);

struct Training {
    std::string source;             ///< a path below the working directory; empty: the output
    std::optional<Time> written_at; ///< that file
    telemetry::Curves curves;
    std::optional<telemetry::Progress> progress;
    bool progress_is_of_output = false;
    std::optional<double> rate;                              ///< steps per second, at this time
    std::optional<std::chrono::milliseconds> usual_interval; ///< between two steps that were told
    struct Damage {
        std::string path;
        std::uint64_t bytes = 0;
    };
    std::vector<Damage> damage; ///< event files of which bytes were skipped
};

/// What all of it together says: curves of the first source that has any, in the order above,
/// before the output. `link_begun`:
/// the newest link.
Training training_of(const std::vector<TrainingFile>& files, const LinkProgress& output,
                     std::optional<Time> link_begun);

/// When a running training is done, at its pace.
struct Finish {
    Time at;
    bool is_pace_of_link = false;         ///< else that of the newest steps
    std::chrono::seconds beyond_limit{0}; ///< of the link that runs
    int more_links = 0;                   ///< that a chain has time for, to reach it
    std::chrono::seconds beyond_run{0};   ///< of all the run's time
};
std::optional<Finish> finish_of(const Training& training, const LinkProgress& output,
                                const RunStatus& status, Time now);

/// What a person should look at.
struct TrainingAlarm {
    enum class Kind : std::uint8_t { stalled, not_finite } kind = Kind::stalled;
    std::optional<Time> since;
    std::chrono::milliseconds usual{0}; ///< stalled: from step to step
    std::string tag;                    ///< not_finite
    std::int64_t step = 0;              ///< not_finite: since then
    double value = 0;                   ///< not_finite: which
};
std::vector<TrainingAlarm> alarms_of(const Training& training, const RunStatus& status, Time now);

} // namespace gpuq
