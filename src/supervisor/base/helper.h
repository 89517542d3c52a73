// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/base/context.h"
#include "supervisor/base/descriptor.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// A child process that performs one operation whose calls may block or, like libslurm, end their
/// process. The only descriptor left open in it is the pipe for its answer.
class Helper {
public:
    /// Forks. Nullopt if no process or pipe could be created.
    static std::optional<Helper> start(const std::function<std::string()>& question);

    /// Readable when there is an answer or the helper has ended.
    int answer() const { return m_answer.get(); }
    /// Reads available bytes, for answers of any length; true once the answer is complete.
    bool read_more();
    /// Returns the answer so far (empty: none), and kills and reaps the helper. A helper that
    /// cannot be killed at once is left behind.
    std::string finish();
    pid_t pid() const { return m_pid; }

private:
    pid_t m_pid = -1;
    Descriptor m_answer;
    std::string m_said;
};

/// Slurm's current information about the job.
struct JobNews {
    JobState state = JobState::unknown;
    std::optional<Time> ends_at;
    std::optional<std::chrono::minutes> walltime; ///< the time limit, which may have been changed
    bool has_grace = false; ///< preempted: a job of higher priority takes its place at `ends_at`
    std::optional<bool> may_get_grace; ///< whether its partitions have a preemption grace period;
                                       ///< set only if requested
};
/// `queues`: the job's partitions, if `may_get_grace` is wanted, which needs another call; else
/// empty.
std::string ask_job(Doors& doors, JobId job, const std::string& queues);
std::optional<JobNews> job_news_in(const std::string& answer);

/// Ends the allocation with `status`, in a helper process that gets `patience`. True if Slurm has
/// confirmed it.
bool complete_once(Doors& doors, JobId job, int status, std::chrono::milliseconds patience);
/// Like `complete_once`, but retries after 1, 2, 4 .. 30 s until Slurm has confirmed it.
void complete_for_ever(Doors& doors, JobId job, int status);

} // namespace gpuq::supervisor
