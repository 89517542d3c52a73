// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/codec.h"
#include "ports/job.h"
#include "supervisor/base/context.h"
#include "supervisor/base/descriptor.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpuq::supervisor {

/// What an executed helper does, and with which input: see supervisor/helper_work.cpp.
struct HelperWork {
    enum class Kind {
        query_job,
        complete,
        notice,
        note,
        submit,
        find_checkpoints,
        conclude,
        withdraw
    };
    Kind kind = Kind::query_job;
    std::string input = {}; ///< encoded (core/codec.h)
};
constexpr HelperWork::Kind last_of(HelperWork::Kind)
{
    return HelperWork::Kind::withdraw;
}
/// Passed to the helper's stdin.
struct HelperRequest {
    HelperWork work;
    std::optional<JobId> job;
};

/// A child process that performs one operation whose calls may block or, like libslurm, end their
/// process. The only descriptor left open in it is the pipe for its answer. Nullopt if no process,
/// pipe or file in memory could be created.
class Helper {
public:
    /// A copy of this process, which must have a single thread: guardian and guard, whose work must
    /// not depend on the disk of their executable.
    static std::optional<Helper> fork(const std::function<std::string()>& work);
    /// `gpuq-supervisor helper`, for the supervisor, which has threads: libslurm and memory
    /// allocation are undefined in a fork of such a process.
    static std::optional<Helper> execute(const Options& options, const HelperWork& work);

    /// Readable when there is an answer or the helper has ended.
    int answer() const { return m_answer.get(); }
    /// Reads available bytes, for answers of any length; true once the answer is complete.
    bool read_more();
    /// Returns the answer so far (empty: none), and kills and reaps the helper. A helper that
    /// cannot be killed at once is left behind.
    std::string finish();
    pid_t pid() const { return m_pid; }

private:
    Helper(pid_t pid, Descriptor answer);
    pid_t m_pid;
    Descriptor m_answer;
    std::string m_output;
};

/// The descriptor of an executed helper that takes its answer.
constexpr int k_helper_answer = 3;

/// Slurm's current information about the job.
struct JobNews {
    JobState state = JobState::unknown;
    std::optional<Time> ends_at;
    std::optional<std::chrono::minutes> walltime; ///< the time limit, which may have been changed
    bool has_grace = false; ///< preempted: a job of higher priority takes its place at `ends_at`
    std::optional<bool> may_get_grace; ///< whether its partitions have a preemption grace period;
                                       ///< set only if requested
    bool operator==(const JobNews&) const = default;
};
/// `queues`: the job's partitions, if `may_get_grace` is wanted, which needs another call; else
/// empty. Nullopt if Slurm does not answer.
std::optional<JobNews> query_job(Services& services, JobId job, const std::string& queues);

/// Ends the allocation with `status`. Returns `done` if Slurm has confirmed it.
std::string complete_job(Services& services, JobId job, int status);

/// Starts a helper that calls `complete_job`.
using StartCompletion = std::function<std::optional<Helper>()>;
StartCompletion completion_by_fork(Services& services, JobId job, int status);
StartCompletion completion_by_exec(const Options& options, int status);
/// Ends the allocation in a helper process that gets `patience`. True if Slurm has confirmed it.
bool complete_once(const StartCompletion& start, std::chrono::milliseconds patience);
/// Like `complete_once`, but retries after 1, 2, 4 .. 30 s until Slurm has confirmed it.
void complete_for_ever(const StartCompletion& start);

} // namespace gpuq::supervisor
