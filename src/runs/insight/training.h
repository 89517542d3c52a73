// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/files.h"
#include "runs/insight/progress.h"
#include "runs/status.h"
#include "telemetry/series.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The progress of a run's training, derived from the files that it writes and from its output.
namespace gpuq {

/// A file below the run's working directory. A long file is not read completely: bytes are missing
/// between `head` and `tail`.
struct TrainingFile {
    enum class Kind : std::uint8_t { events, metrics_csv, trainer_state } kind = Kind::events;
    std::string path;
    std::uint64_t bytes = 0;
    Time modified;
    std::string head, tail;
    bool operator==(const TrainingFile&) const = default;
};

/// Reads TensorBoard's event files, Lightning's metrics.csv and Hugging Face's trainer_state.json
/// that have changed since the run began; at most 32 MiB in total. May block on the file system.
std::vector<TrainingFile> read_training_files(Files& files, const std::string& directory,
                                              Time since);

/// The paths of the event files among them, without reading them.
std::vector<Files::File> list_event_files(Files& files, const std::string& directory, Time since);

/// Serialises the files, for a process other than the one that reads them. Parsing stops at the
/// first invalid entry.
std::string to_text(const std::vector<TrainingFile>& files);
std::vector<TrainingFile> training_files_in(std::string_view text);

struct Training {
    std::string source;             ///< a path below the working directory; empty: the output
    std::optional<Time> written_at; ///< when that file was written
    telemetry::Curves curves;
    std::optional<telemetry::Progress> progress;
    bool progress_is_of_output = false;
    std::optional<double> rate;                              ///< current rate in steps per second
    std::optional<std::chrono::milliseconds> usual_interval; ///< between two logged steps
    struct Damage {
        std::string path;
        std::uint64_t bytes = 0;
    };
    std::vector<Damage> damage; ///< event files in which bytes were skipped
};

/// Combines all sources. The curves come from the first source that has any: the files in the order
/// above, then the output. `link_begun`: when the newest link began.
Training training_of(const std::vector<TrainingFile>& files, const LinkProgress& output,
                     std::optional<Time> link_begun);

/// When a running training will be finished at its current pace.
struct Finish {
    Time at;
    bool is_pace_of_link = false; ///< the average of the link; else that of the newest steps
    std::chrono::seconds beyond_limit{0}; ///< past the end of the running link
    int more_links = 0;                   ///< later links of the chain needed to finish
    std::chrono::seconds beyond_run{0};   ///< past the end of the run's total time
};
std::optional<Finish> finish_of(const Training& training, const LinkProgress& output,
                                const RunStatus& status, Time now);

/// A problem that the user should look into.
struct TrainingAlarm {
    enum class Kind : std::uint8_t { stalled, not_finite } kind = Kind::stalled;
    std::optional<Time> since;
    std::chrono::milliseconds usual{0}; ///< stalled: usual time per step
    std::string tag;                    ///< not_finite: the curve's tag
    std::int64_t step = 0;              ///< not_finite: the first such step
    double value = 0;                   ///< not_finite: the first such value
};
std::vector<TrainingAlarm> alarms_of(const Training& training, const RunStatus& status, Time now);

} // namespace gpuq
