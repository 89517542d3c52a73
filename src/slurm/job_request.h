// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"
#include "slurm/compat.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::slurm {

/// Slurm's form of a JobSpec. The message points into this object.
class JobRequest {
public:
    explicit JobRequest(const JobSpec& spec);
    JobRequest(const JobRequest&) = delete;
    JobRequest& operator=(const JobRequest&) = delete;

    /// For an allocation that starts at once or not at all, and tells nobody.
    job_desc_msg_t* allocation();
    /// For a batch job.
    job_desc_msg_t* batch(const std::string& script, std::vector<std::string> environment);

private:
    char* text(std::string value);

    job_desc_msg_t m_message{};
    const JobSpec& m_spec;
    std::vector<std::vector<char>> m_texts;
    std::vector<char*> m_environment;
    std::vector<char*> m_arguments;
};

/// `gres:gpu:k80:2`; empty when no GPU is asked for.
std::string gpu_text(const JobSpec& spec);

/// A file name in which Slurm finds no `%` or backslash to expand.
std::string literal_file_name(std::string_view path);

/// What sbatch adds to the environment, so that umask and niceness follow the job. Not its limits:
/// those of the node hold (man gpuq-run, ENVIRONMENT OF THE PROGRAM).
std::vector<std::string> sbatch_variables(const JobSpec& spec);

} // namespace gpuq::slurm
