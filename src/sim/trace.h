// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "sim/machine.h"
#include "sim/trace_clock.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::sim {

/// A job in a trace. Values that the trace does not specify are empty.
struct TraceJob {
    std::string id;
    Seconds submit{0}; ///< since the trace's first submission
    Seconds duration{0};
    std::optional<int> submit_ms; ///< in addition to the whole seconds
    std::optional<int> duration_ms;
    std::optional<Seconds> limit;
    std::optional<Seconds> start; ///< the actual start
    int gpus = 1;
    int shares = 0; ///< of one GPU (gres/shard); then `gpus` is 0
    int nodes = 0;
    int min_nodes = 0;    ///< that its user requested; 0: not specified
    int cpus = 0;         ///< in total; 0: not specified
    int memory_mib = 0;   ///< on each node; 0: not specified
    std::string model;    ///< of GPU, requested; empty: any
    std::string features; ///< required on each node, `a+b`
    std::string qos;
    std::string user;
    std::string account;
    std::string partition;
    std::string state;

    bool operator==(const TraceJob&) const = default;
};

struct Trace {
    std::vector<TraceJob> jobs;    ///< by submission
    std::size_t without_gpus = 0;  ///< left out
    std::size_t other_shares = 0;  ///< with gres/mps, or with shares on several nodes: left out
    std::size_t never_started = 0; ///< left out
    TraceClock clock;

    bool operator==(const Trace&) const = default;
};

/// The jobs to read from comma-separated values: those with GPUs, or shares of them. With `all`,
/// their CPUs, memory, features, QOS and milliseconds are read, too.
enum class Which { with_gpus, all };

/// Reads the jobs of a file, which may be compressed with gzip: comma-separated values with a
/// header line that has at least `submit_s`, `duration_s` and `gpus`, and no unknown column; the
/// Standard Workload Format, with a processor taken as a GPU; or the output of `sacct -P`, with its
/// header line. `usage` as FILE:LINE: TEXT for the first invalid line, `missing` or `io` for the
/// file. Larger files than the limits below are refused.
Result<Trace> read_trace(const std::filesystem::path& file, Which which = Which::with_gpus);

/// The same from a text; `name` is used in errors.
Result<Trace> parse_trace(std::string_view text, const std::string& name,
                          Which which = Which::with_gpus);

inline constexpr std::size_t k_most_trace_bytes = std::size_t{128} << 20;
inline constexpr std::size_t k_most_trace_jobs = 2'000'000;

} // namespace gpuq::sim
