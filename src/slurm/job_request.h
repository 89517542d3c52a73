// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/job.h"
#include "slurm/compat.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::slurm {

/// A JobSpec in Slurm's format. The message points into this object, which must not outlive `spec`.
class JobRequest {
public:
    explicit JobRequest(const JobSpec& spec);
    JobRequest(const JobRequest&) = delete;
    JobRequest& operator=(const JobRequest&) = delete;

    /// For an allocation that starts at once or not at all, without a listener for its messages.
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

/// `gres:gpu:k80:2` or `gres:shard:1`; empty if no GPU is requested.
std::string gpu_text(const JobSpec& spec);

/// The path, escaped so that Slurm expands no `%` or backslash in it.
std::string literal_file_name(std::string_view path);

/// The variables that sbatch adds to the environment to make umask and niceness carry over to the
/// job. Resource limits do not: those of the node apply (man gpuq-run, ENVIRONMENT OF THE PROGRAM).
std::vector<std::string> sbatch_variables(const JobSpec& spec);

} // namespace gpuq::slurm
