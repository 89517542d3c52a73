// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/accounting.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// Resources of one job, with recorded data on how well it used them.
struct UseRecord {
    JobUse use;
    bool whole = false;  ///< the job lies entirely within the time span of the question
    std::string comment; ///< for jobs of gpuq; else empty
    std::optional<std::uint64_t> memory_mib; ///< allocated, on all nodes together
    /// Peak use of any of its steps, likewise. Slurm samples it periodically
    /// (JobAcctGatherFrequency), or not at all.
    std::optional<std::uint64_t> most_memory_mib;
    /// From the time when the job could have started to its start; unset if it started before the
    /// span.
    std::optional<std::chrono::seconds> waited{};
    bool operator==(const UseRecord&) const = default;
};

/// Whether to include steps, which record memory use; a job can have several.
enum class Steps { leave_out, with };
constexpr Steps last_of(Steps)
{
    return Steps::with;
}

/// Access to slurmdbd for more data than Accounting::use returns.
class UseRecords {
public:
    virtual ~UseRecords() = default;
    /// Like Accounting::use, in the same single query. Without steps, memory use is unknown.
    virtual Result<std::vector<UseRecord>> use_records(const UseQuestion& question,
                                                       Steps steps) = 0;
};

} // namespace gpuq
