// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace gpuq {

/// What a job asks for, by the names that job_submit.lua knows (job_submit_plugins.shtml). What is
/// not there was not asked for.
using ScriptFields = std::map<std::string, std::variant<std::string, std::uint32_t>>;

/// What a script made of a job.
struct ScriptAnswer {
    int status = 0;                 ///< 0: accepted; else one of Slurm's errors
    ScriptFields fields;            ///< the job afterwards
    std::vector<std::string> words; ///< to the user
    bool operator==(const ScriptAnswer&) const = default;
};

/// A job_submit.lua, asked as slurmctld asks it. One caller at a time.
class SubmitScript {
public:
    virtual ~SubmitScript() = default;
    /// slurm_job_submit. `reservations`: the names of those that are on.
    /// `internal` when the script raises or returns no number, which slurmctld takes for an
    /// acceptance.
    virtual Result<ScriptAnswer> submit(const ScriptFields& job,
                                        const std::vector<std::string>& reservations) = 0;
    /// slurm_job_modify, by the user `uid`: `change` has only what is to be different. The answer's
    /// fields are the change's.
    virtual Result<ScriptAnswer> modify(const ScriptFields& job, const ScriptFields& change,
                                        std::uint32_t uid) = 0;
};

} // namespace gpuq
