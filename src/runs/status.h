// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/run.h"
#include "ports/cluster.h"
#include "runs/chain.h"
#include "runs/expected_start.h"
#include "runs/heartbeat.h"
#include "runs/journal.h"
#include "runs/record.h"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What is known about a run, concluded from what was seen of it. Pure.
namespace gpuq {

// What came of asking: a question that failed, or was never put, is not the answer "no such job".
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

/// Everything seen of one run at one time.
struct Evidence {
    RunKey key;
    std::optional<Run> run; ///< unset: run.json is missing or can't be read
    LinkNumber link;        ///< the one that runs, or is to run next
    std::optional<LinkJob> job;
    std::optional<LinkJob> next;      ///< of a chain: what waits for this link's end
    std::optional<LinkJob> first_job; ///< of a later link: what people know the run by
    std::vector<LinkPast> links;      ///< of a later link: all up to this one
    bool job_recorded = false; ///< `job` is from job.json; else from the journal or a job comment
    std::vector<Event> journal;
    std::optional<Heartbeat> heartbeat;
    std::optional<Ending> ended; ///< ended.json
    std::optional<StopRequest> stop;
    SlurmAnswer slurm;
    SlurmAnswer next_slurm; ///< of the job in `next`
    PastAnswer past;
    bool step_is_over = false; ///< Slurm says so of the supervisor's step
    std::string slurm_log;     ///< the end of what was said before there was a supervisor; hostile
};

enum class RunState {
    submitting, ///< Slurm has not said yet that it knows the run
    waiting,    ///< in the queue
    running,    ///< has its GPUs
    ended,      ///
    unknown     ///< nobody who would know could be asked
};

struct RunStatus {
    RunKey key;
    std::optional<Run> run;
    LinkNumber link;
    std::optional<LinkJob> job;
    RunState state = RunState::unknown;
    /// How it ended. Unset for an ended run: that is not known, or not known yet.
    std::optional<Ending> ending;
    std::string last_lines;                ///< of output, when the supervisor told them
    std::string reason;                    ///< why it waits, in Slurm's word
    std::optional<Time> expected_start;    ///< of a waiting run: in Slurm's plan
    std::optional<StartEstimate> estimate; ///< of one that Slurm has not planned
    std::optional<Time> started_at;
    std::optional<Time> ends_at; ///< of a running run: its limit
    bool suspended = false;      ///< it runs, but an operator has stopped it for a while
    std::string host;            ///< the first node, when known
    std::string queue;           ///< the one it is in, else, comma-separated, those it may go to
    std::optional<StopRequest> stop;
    std::string why_unknown;        ///< for people
    std::optional<JobId> next_job;  ///< of a chain: waits for the end of this link
    std::optional<JobId> first_job; ///< of a later link
    /// Processes of this link that the kernel killed for memory; unset: none seen, none counted.
    std::optional<std::uint64_t> memory_kills;
    std::vector<LinkPast> links; ///< of a chain: all of them up to this one
    /// Set for a plain job: one of the user's own that gpuq did not start (runs/plain_jobs.h). It
    /// has no record: `key` is on no disk, `run` holds what Slurm says of its request.
    std::optional<Job> plain;
};

/// A run that Slurm, which answers, does not know, and that its client has stopped asking for:
/// longer than a client keeps asking (runs/submission.h, Patience, and requests in flight).
constexpr std::chrono::seconds k_never_submitted{120};
/// An allocation without a word of its supervisor for so long has none.
constexpr std::chrono::seconds k_no_supervisor{60};
/// When accounting stays silent for so long after the last sign of life, the run counts as lost.
constexpr std::chrono::hours k_accounting_patience{1};

/// The same when accounting does answer, and still has as running what Slurm no longer knows: a
/// controller that was killed before it had saved the job.
constexpr std::chrono::seconds k_forgotten_patience{120};

/// In the place of Slurm's reason: the next link of the chain has no job yet.
constexpr const char* k_no_next_link = "NextLink";

/// The order of belief: the journal's `ended`, ended.json, a fresh heartbeat, Slurm, accounting;
/// else unknown, which is never "ended".
RunStatus conclude(const Evidence& evidence, Time now);

/// How many GPUs it asks for on each node; 1 where its record can't be read.
inline int gpus_asked(const RunStatus& status)
{
    return status.run ? status.run->request.gpus.count : 1;
}

/// True for a job that Slurm has ended by itself because it could not tell its client of it: the
/// client, which has not written it down, may be asking for another one.
bool may_be_asked_for_again(const Evidence& evidence, Time now);

/// True when the supervisor or a client has written down how the run ended.
bool has_ended_on_disk(const Evidence& evidence);

/// True when only Slurm can say more about this run: no end on disk and no fresh heartbeat.
bool needs_slurm(const Evidence& evidence, Time now);

/// True when Slurm no longer has the job, or has it as over: only accounting can tell the cause.
bool needs_accounting(const Evidence& evidence);

/// Why Slurm has to tell whether the supervisor's step is there: a running allocation's
/// supervisor, once alive, is silent.
bool needs_step(const Evidence& evidence, Time now);

/// True for an allocation that runs without a supervisor: its client died before it had one, or it
/// was killed together with its guardian. The GPUs would stay taken until the time limit.
bool is_abandoned(const Evidence& evidence, Time now);

/// How a run ended whose supervisor left no word, from Slurm's. `cancelled_by`: a user id.
Ending ending_from_slurm(const Evidence& evidence, JobState state, std::optional<int> exit_status,
                         std::optional<std::uint32_t> cancelled_by, Time at);

/// The word for a state in files and JSON.
std::string_view word(RunState state);

} // namespace gpuq
