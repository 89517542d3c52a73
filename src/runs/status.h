// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/accounting.h"
#include "runs/chain.h"
#include "runs/queues/expected_start.h"
#include "runs/records/heartbeat.h"
#include "runs/records/journal.h"
#include "runs/records/record.h"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// Derives the status of a run from the evidence about it. Pure.
namespace gpuq {

// Results of a query. A query that failed or was never made does not mean "no such job".
struct NotAsked {
    bool operator==(const NotAsked&) const = default;
};
struct NoAnswer {
    std::string why;
    bool operator==(const NoAnswer&) const = default;
};
struct NoSuchJob {
    bool operator==(const NoSuchJob&) const = default;
};
using SlurmAnswer = std::variant<NotAsked, NoAnswer, NoSuchJob, Job>;
using PastAnswer = std::variant<NotAsked, NoAnswer, NoSuchJob, PastJob>;

/// All evidence about one run at one time.
struct Evidence {
    RunKey key;
    std::optional<Run> run; ///< unset: run.json is missing or can't be read
    LinkNumber link;        ///< the link that runs or will run next
    std::optional<LinkJob> job;
    std::optional<LinkJob> next;      ///< in a chain: the job that waits for this link's end
    std::optional<LinkJob> first_job; ///< for a later link: the job id that users know the run by
    std::vector<LinkPast> links;      ///< for a later link: all links up to this one
    bool job_recorded = false; ///< `job` is from job.json, else from the journal or a job comment
    std::vector<Event> journal;
    std::optional<Heartbeat> heartbeat;
    std::optional<Ending> ended; ///< ended.json
    std::optional<StopRequest> stop;
    SlurmAnswer slurm;
    SlurmAnswer next_slurm; ///< for the job in `next`
    PastAnswer past;
    bool step_is_over = false; ///< according to Slurm, the supervisor's step has ended
    std::string slurm_log;     ///< end of the output before there was a supervisor; hostile
    /// Why a record could not be read, for instance while a file server is away: what is missing
    /// here may be on disk.
    std::string trouble;
};

enum class RunState {
    submitting, ///< Slurm has not confirmed the run yet
    waiting,    ///< in the queue
    running,    ///< has its GPUs
    ended,      ///
    unknown     ///< no source that could know was available
};

struct RunStatus {
    RunKey key;
    std::optional<Run> run;
    LinkNumber link;
    std::optional<LinkJob> job;
    RunState state = RunState::unknown;
    /// How the run ended. Unset for an ended run: not known, or not yet.
    std::optional<Ending> ending;
    std::string last_lines;                ///< of output, if the supervisor recorded them
    std::string reason;                    ///< Slurm's reason why it waits
    std::optional<Time> expected_start;    ///< of a waiting run, as planned by Slurm
    std::optional<StartEstimate> estimate; ///< of a waiting run that Slurm has not planned
    std::optional<Time> started_at;
    std::optional<Time> ends_at; ///< a running run's time limit
    bool suspended = false;      ///< running, but suspended by an operator
    std::string host;            ///< the first node, if known
    std::string address; ///< where its supervisor accepts clients over the network; empty: nowhere
    std::string queue;   ///< its queue, or a comma-separated list of the queues it may go to
    std::optional<StopRequest> stop;
    std::string why_unknown;        ///< for display
    std::optional<JobId> next_job;  ///< in a chain: waits for the end of this link
    std::optional<JobId> first_job; ///< for a later link
    /// Processes of this link that the kernel killed for memory; unset: none seen, or not counted.
    std::optional<std::uint64_t> memory_kills;
    std::vector<LinkPast> links; ///< in a chain: all links up to this one
    /// Set for a plain job: one of the user's jobs that gpuq did not start
    /// (runs/insight/plain_jobs.h). It has no record on disk: `key` is made up, and `run` holds
    /// Slurm's data about the request.
    std::optional<Job> plain;
};

/// After this time, a run whose job is unknown to Slurm will not get one: its client no longer
/// retries (runs/submission.h: Patience and requests in flight).
constexpr std::chrono::seconds k_never_submitted{120};
/// An allocation whose supervisor has shown no sign of life after this time has no supervisor.
constexpr std::chrono::seconds k_no_supervisor{60};
/// A run counts as lost if accounting has not responded for this long after its last sign of life.
constexpr std::chrono::hours k_accounting_patience{1};

/// The same if accounting does respond, but still lists as running a job that Slurm no longer
/// knows: the controller was killed before it had saved the job.
constexpr std::chrono::seconds k_forgotten_patience{120};

/// Used in place of Slurm's reason: the chain's next link has no job yet.
constexpr const char* k_no_next_link = "NextLink";

/// Sources in order of precedence: the journal's `ended`, ended.json, a fresh heartbeat, Slurm,
/// accounting. Without any of them the state is unknown, never "ended".
RunStatus conclude(const Evidence& evidence, Time now);

/// The GPUs requested on each node; 1 if the run's record can't be read.
inline GpuRequest gpus_asked(const RunStatus& status)
{
    return status.run ? status.run->request.gpus : GpuRequest{};
}

/// True for a job that Slurm ended because it could not report it to its client: the client has not
/// recorded the job and may be requesting another one.
bool may_be_asked_for_again(const Evidence& evidence, Time now);

/// True if the supervisor or a client has recorded how the run ended.
bool has_ended_on_disk(const Evidence& evidence);

/// True if only Slurm has newer information about this run: no end and no fresh heartbeat on disk.
bool needs_slurm(const Evidence& evidence, Time now);

/// True if Slurm no longer knows the job, or reports it as cancelled without a stop request: only
/// accounting has the cause.
bool needs_accounting(const Evidence& evidence);

/// True if Slurm must be queried for the supervisor's step: the supervisor of a running allocation
/// is silent, and was alive once or should be by now.
bool needs_step(const Evidence& evidence, Time now);

/// True for an allocation that runs without a supervisor: its client died before starting one, or
/// the supervisor was killed together with its guardian. Its GPUs would stay allocated until the
/// time limit.
bool is_abandoned(const Evidence& evidence, Time now);

/// True if the records show that the run once had a supervisor.
bool had_supervisor(const Evidence& evidence);

/// How a run ended according to Slurm, if its supervisor recorded nothing. `cancelled_by`: a user
/// id.
Ending ending_from_slurm(const Evidence& evidence, JobState state, std::optional<int> exit_status,
                         std::optional<std::uint32_t> cancelled_by, Time at);

/// The name of a state in files and JSON.
std::string_view word(RunState state);

} // namespace gpuq
