// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "sim/machine.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::sim {

/// A job as a trace has it. What the trace does not say is empty.
struct TraceJob {
    std::string id;
    Seconds submit{0}; ///< since the trace's first submission
    Seconds duration{0};
    std::optional<int> submit_ms; ///< beyond whole seconds
    std::optional<int> duration_ms;
    std::optional<Seconds> limit;
    std::optional<Seconds> start; ///< as it really was
    int gpus = 1;
    int nodes = 0;
    int min_nodes = 0;  ///< that its user asked for, if they did; 0: not said
    int cpus = 0;       ///< in all; 0: not said
    int memory_mib = 0; ///< of each node; 0: not said
    std::string model;
    std::string features; ///< of each node, `a+b`
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
    std::size_t never_started = 0; ///< left out

    bool operator==(const Trace&) const = default;
};

/// Which jobs of comma-separated values are wanted; of all, their CPUs, memory, features, QOS
/// and milliseconds are read too.
enum class Which { with_gpus, all };

/// Reads the jobs of a file, packed by gzip or not: comma-separated values with a header line that
/// has at least `submit_s`, `duration_s` and `gpus`, and no column that is not known; the Standard
/// Workload Format, a processor taken for a GPU; or what `sacct -P` prints, with its header line.
/// `usage` as FILE:LINE: what for the first line that is none of that, `missing` or `io` for the
/// file. Never more than the limits below.
Result<Trace> read_trace(const std::filesystem::path& file, Which which = Which::with_gpus);

/// The same from text; `name` is for errors.
Result<Trace> parse_trace(std::string_view text, const std::string& name,
                          Which which = Which::with_gpus);

inline constexpr std::size_t k_most_trace_bytes = std::size_t{128} << 20;
inline constexpr std::size_t k_most_trace_jobs = 2'000'000;

} // namespace gpuq::sim
