// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace gpuq {

/// Fields of a job request, by the names that job_submit.lua uses (job_submit_plugins.shtml).
/// Fields that were not requested are absent.
using ScriptFields = std::map<std::string, std::variant<std::string, std::uint32_t>>;

/// The result of running the script on a job.
struct ScriptAnswer {
    int status = 0;                    ///< 0: accepted; else a Slurm error code
    ScriptFields fields;               ///< the job as modified by the script
    std::vector<std::string> messages; ///< messages for the user
    bool operator==(const ScriptAnswer&) const = default;
};

/// A job_submit.lua, called the way slurmctld calls it. One caller at a time.
class SubmitScript {
public:
    virtual ~SubmitScript() = default;
    /// Calls slurm_job_submit. `reservations`: the active reservations, as NAME or as
    /// `NAME|PARTITION|USER,USER`. `internal` when
    /// the script raises an error or returns no number, which slurmctld treats as acceptance.
    virtual Result<ScriptAnswer> submit(const ScriptFields& job,
                                        const std::vector<std::string>& reservations) = 0;
    /// Calls slurm_job_modify on behalf of user `uid`; `change` holds only the fields to change.
    /// The fields of the answer are those of the change.
    virtual Result<ScriptAnswer> modify(const ScriptFields& job, const ScriptFields& change,
                                        std::uint32_t uid) = 0;
};

} // namespace gpuq
