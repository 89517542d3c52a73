// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// What one job had, with what is on record of how well it used it.
struct UseRecord {
    JobUse use;
    bool whole = false;  ///< all of the job lies between the two times of the question
    std::string comment; ///< of a job of gpuq, else empty
    std::optional<std::uint64_t> memory_mib; ///< allocated, on all nodes together
    /// The most that one of its steps was seen to use, likewise. Slurm looks now and then
    /// (JobAcctGatherFrequency), and perhaps not at all.
    std::optional<std::uint64_t> most_memory_mib;
    bool operator==(const UseRecord&) const = default;
};

/// Steps know of memory, and are several for each job.
enum class Steps { leave_out, with };

/// slurmdbd again, asked for more than Accounting::use tells.
class UseRecords {
public:
    virtual ~UseRecords() = default;
    /// As Accounting::use, in the same one question. Without steps no memory use is known.
    virtual Result<std::vector<UseRecord>> use_records(const UseQuestion& question,
                                                       Steps steps) = 0;
};

} // namespace gpuq
