// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "supervisor/descriptor.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// A child process that answers one question to Slurm: libslurm may block, or end its process. No
/// descriptor but the pipe for its answer stays open in it.
class Helper {
public:
    /// Forks. Nothing when there is no process or pipe to be had.
    static std::optional<Helper> start(const std::function<std::string()>& question);

    /// Readable when the answer is there, or the helper is gone.
    int answer() const { return m_answer.get(); }
    /// Takes what is there; true when the helper has said all. For answers of any length.
    bool read_more();
    /// What it said up to now or its end; ends and reaps it, unless it can't be killed at once.
    /// Empty: no answer.
    std::string finish();
    pid_t pid() const { return m_pid; }

private:
    pid_t m_pid = -1;
    Descriptor m_answer;
    std::string m_said;
};

/// What Slurm says about the job now.
struct JobNews {
    JobState state = JobState::unknown;
    std::optional<Time> ends_at;
    std::optional<std::chrono::minutes> walltime; ///< somebody may have changed it
    bool has_grace = false; ///< a job of higher priority wants its place, and gets it at `ends_at`
    std::optional<bool> may_get_grace; ///< jobs of its queues may; only when that was asked
};
/// `queues`, when it is to be told whether their jobs may get a time of grace: a further call.
std::string ask_job(Doors& doors, JobId job, const std::string& queues);
std::optional<JobNews> job_news_in(const std::string& answer);

/// Ends the allocation with `status`, in a helper that gets so much time. True when Slurm has
/// confirmed it.
bool complete_once(Doors& doors, JobId job, int status, std::chrono::milliseconds patience);
/// The same: in helpers, again after 1, 2, 4 .. 30 s, until Slurm has
/// confirmed it.
void complete_for_ever(Doors& doors, JobId job, int status);

} // namespace gpuq::supervisor
