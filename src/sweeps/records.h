// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"
#include "core/result.h"
#include "core/run.h"
#include "sweeps/early_stop.h"
#include "sweeps/metric.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The files of a sweep (core/layout.h). Each has one writer; the numbers of tries begin at 1.
namespace gpuq::sweeps {

/// A program that proposes tries from the results of earlier ones.
struct Proposals {
    std::vector<std::string> command;
    std::vector<std::string> over; ///< the values of `--over`, for the program
    std::size_t most = 0;          ///< tries in all
    bool operator==(const Proposals&) const = default;
};

/// sweeps/KEY/sweep.json, immutable.
struct Sweep {
    std::string name;
    std::vector<std::string> parameters;
    Metric metric;
    int per_gpu = 1;                   ///< tries side by side in a worker
    std::optional<std::uint64_t> seed; ///< of random tries
    /// The key of the sweep, and the request of a try with placeholders in its program. Without the
    /// client's environment, which each worker has in its own record.
    Run run;
    std::optional<std::chrono::minutes> gpu_time =
        {}; ///< the most that its GPUs may spend together
    std::optional<Proposals> propose = {};
    std::optional<StopRule> stop_early = {}; ///< which tries are ended before they finish
};
std::string to_json(const Sweep& sweep);
Result<Sweep> sweep_from_json(std::string_view text);

/// sweeps/KEY/tries-B.jsonl: the values of the tries that were added together, a line each.
std::string to_lines(const std::vector<std::vector<std::string>>& tries);
/// An incomplete or invalid line ends the list.
std::vector<std::vector<std::string>> tries_in(std::string_view text);

/// A link of a worker, which runs an attempt at a try.
struct Claimant {
    RunKey worker;
    LinkNumber link;
    bool operator==(const Claimant&) const = default;
};
/// sweeps/KEY/tries/N/claim-A: its creator, and no other worker, runs attempt A.
std::string to_text(const Claimant& claimant);
std::optional<Claimant> claimant_in(std::string_view text);

/// How an attempt ended.
enum class TryEnd {
    finished,      ///< the program exited, with any status
    crashed,       ///< it was killed by a signal not sent by gpuq
    stopped,       ///< by the user
    paused,        ///< at the end of its worker's time: another attempt continues
    not_started,   ///< the program could not be executed
    lost,          ///< its workers were lost too often
    stopped_early, ///< by the rule of the sweep
};
/// The keyword of an end: `not_started`.
std::string_view word(TryEnd end);
/// `not started`.
std::string text_of(TryEnd end);

/// Values of the sweep's metric.
struct TryValues {
    std::optional<double> last, best;
    std::optional<std::int64_t> best_step;
    bool operator==(const TryValues&) const = default;
};

/// Those of a curve, and of the attempts before it.
TryValues values_of(const telemetry::Series& curve, const Metric& metric, TryValues earlier = {});

/// A line of a worker's journal: sweeps/KEY/workers/RUN.
struct TryEvent {
    enum class Kind {
        began,   ///< an attempt
        reached, ///< new values, while it runs
        ended,
        passed, ///< a rung (early_stop.h), while it runs
    } kind = Kind::began;
    std::size_t number = 0; ///< of the try
    int attempt = 1;
    Time at;
    LinkNumber link = {};
    TryValues values = {}; ///< of new ones and of an end
    // Of an end:
    int status = 0;
    TryEnd end = TryEnd::finished;
    std::optional<EarlyStop> evidence = {}; ///< of an early one
    RungValue rung = {};                    ///< that was passed
    bool operator==(const TryEvent&) const = default;
};
/// Without a line end.
std::string to_line(const TryEvent& event);
std::optional<TryEvent> try_event_in(std::string_view line);

/// sweeps/KEY/retries-B: attempts that no longer count, a line `TRY ATTEMPT` each.
struct Retry {
    std::size_t number = 0;
    int attempt = 0;
    bool operator==(const Retry&) const = default;
};
std::string to_lines(const std::vector<Retry>& retries);
std::vector<Retry> retries_in(std::string_view text);

} // namespace gpuq::sweeps
