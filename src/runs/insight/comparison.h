// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "runs/insight/training.h"
#include "runs/status.h"
#include "telemetry/metric_direction.h"
#include "telemetry/sample.h"
#include "telemetry/series.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A comparison of runs of one program with different settings. Pure. Texts are not sanitised;
/// secrets are removed from settings (core/redact.h).
namespace gpuq {

/// A run to be compared, with its data.
struct RunToCompare {
    RunStatus status;
    GpuTime gpu_time; ///< over all links
    Training training;
};

/// A run of a comparison, with the data that do not depend on the others.
struct ComparedRun {
    RunStatus status;
    std::optional<std::chrono::seconds> duration; ///< unset: not started, or unknown
    std::optional<double> gpu_hours;              ///< likewise
    std::string source; ///< of its metrics, as in Training; empty: the output, or no metrics
    bool has_metrics = false;
};

/// The value of a setting in one run.
struct SettingValue {
    enum class Kind : std::uint8_t {
        given,    ///< `text`
        switched, ///< an option without a value
        hidden,   ///< may be a secret; equal texts (`value 1`) stand for equal values
        absent,
        unknown ///< the record of the run can't be read
    } kind = Kind::unknown;
    std::string text;
    bool operator==(const SettingValue&) const = default;
};

/// A setting that is not the same in all runs.
struct Setting {
    enum class Of : std::uint8_t {
        request,  ///< `program`, `directory`, `GPUs`, `conda`, `env NAME`, ...
        arguments ///< `--lr`, `-x`, `model.depth`, `argument 1`; before a script that the program
                  ///< executes: `torchrun --nnodes`
    } of = Of::request;
    std::string name;
    std::vector<SettingValue> values; ///< one for each run
    bool operator==(const Setting&) const = default;
};

/// One metric of one run. NaN and infinite values are neither lowest nor highest.
struct MetricOfRun {
    std::string tag;
    std::optional<telemetry::Point> lowest, highest; ///< unset: no finite value
    telemetry::Point last;
    std::uint64_t points = 0; ///< as reported by the program
    /// At most Comparison::k_most_points: the lowest and the highest of consecutive points. NaN is
    /// a gap.
    std::vector<telemetry::Point> curve;
};

/// The best value; unset if the direction is unknown.
std::optional<telemetry::Point> best_of(const MetricOfRun& metric, telemetry::Better better);

/// A metric that all runs with metrics have.
struct ComparedMetric {
    std::string name; ///< the tag; `main loss` if the runs have different tags for it
    bool is_main_loss = false;
    telemetry::Better better = telemetry::Better::unknown;
    std::vector<std::optional<MetricOfRun>> runs; ///< one for each run; unset: has no metrics
    std::optional<std::size_t> best_run;          ///< index; unset: unknown, or a tie
};

struct Comparison {
    static constexpr std::size_t k_most_runs = 20;
    static constexpr std::size_t k_most_metrics = 32;
    static constexpr std::size_t k_most_points = 600;

    std::vector<ComparedRun> runs;
    std::vector<Setting> settings;       ///< those that differ: the request, then the arguments
    std::vector<ComparedMetric> metrics; ///< the main loss first, then by name
    std::size_t metrics_left_out = 0;    ///< common metrics beyond k_most_metrics
    std::size_t metrics_not_common = 0;  ///< metrics that only some of the runs have
    /// Groups of runs whose metrics were read from the same file: they may be of any of them.
    std::vector<std::vector<std::size_t>> same_file;
};

/// Compares runs in the given order; at most k_most_runs, so that curves can be told apart.
Comparison compare(const std::vector<RunToCompare>& runs, Time now);

} // namespace gpuq
