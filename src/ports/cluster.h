// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "ports/job.h"
#include "ports/nodes.h"
#include "ports/reservation.h"
#include "ports/step_process.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// Jobs, partitions, nodes and steps of one cluster. Calls block for up to Slurm's MessageTimeout
/// (10 s by default). Use from one thread at a time.
///
/// `unreachable` always means that the outcome is unknown: the request may have been carried out.
class Cluster {
public:
    virtual ~Cluster() = default;

    /// ClusterName. No RPC.
    virtual Result<std::string> name() = 0;

    virtual Result<Controller> controller() = 0;
    virtual Result<std::vector<Partition>> partitions() = 0;
    virtual Result<std::vector<Node>> nodes() = 0;
    /// Partitions and nodes, in two RPCs.
    virtual Result<Inventory> inventory() = 0;

    /// All jobs of the calling user that slurmctld still has (pending, running, and ended less than
    /// MinJobAge ago). One RPC.
    virtual Result<std::vector<Job>> own_jobs() = 0;
    /// The same, but `unreachable` after about `patience` if the controller does not respond: for
    /// optional information that is not worth a long wait.
    virtual Result<std::vector<Job>> own_jobs_within(std::chrono::seconds patience)
    {
        (void)patience;
        return own_jobs();
    }

    /// All jobs that slurmctld still has and shows to the calling user, with the GPUs held by
    /// running jobs. One RPC with a large response on a busy cluster: call it only at a user's
    /// request, or every few minutes at most (supervisor/worker/grower.h).
    virtual Result<AllJobs> all_jobs() = 0;

    /// `missing` when slurmctld responds but does not know the job.
    virtual Result<Job> job(JobId id) = 0;

    /// False when the first step of an allocation made by start_now has ended or was never started;
    /// `missing` when slurmctld responds but does not know the job.
    virtual Result<bool> has_first_step(JobId id) = 0;

    /// Allocates immediately and starts `step` on the first node of the allocation, with its
    /// streams on pipes. The step's client runs in its own session and outlives the caller, so that
    /// a SIGKILL of the caller cannot leave an allocation without its step. `busy`: no such
    /// resources at the moment (use submit); `denied`: never possible, with Slurm's message.
    ///
    /// `before` (may be empty) is work that must be finished before the request is sent to Slurm.
    /// It runs while the requesting process initializes; if it fails, its error is returned.
    using Before = std::function<Result<void>()>;
    struct Started {
        JobId job;
        StepProcess process;
    };
    virtual Result<Started> start_now(const JobSpec& spec, const std::vector<std::string>& step,
                                      bool with_input, const Before& before) = 0;

    /// Submits a batch job; returns when slurmctld has accepted it. `denied` with Slurm's message.
    /// `environment` holds NAME=VALUE.
    virtual Result<JobId> submit(const JobSpec& spec, const std::string& script,
                                 const std::vector<std::string>& environment) = 0;

    /// Starts another step on the first node of a running job, sharing its resources (--overlap).
    /// The client runs in its own session, with the streams on pipes.
    virtual Result<StepProcess> start_step(JobId id, const std::vector<std::string>& step,
                                           bool with_input) = 0;

    /// The same without input, once on every node but the first of a job with `nodes` nodes; the
    /// streams of all nodes are merged.
    virtual Result<StepProcess> start_step_elsewhere(JobId id, const std::vector<std::string>& step,
                                                     int nodes) = 0;

    /// Detaches from a running step: kills the client process that carries its streams without
    /// ending the step. Only valid after the step has sent its first bytes. The caller must still
    /// close the descriptors.
    virtual void abandon(const StepProcess& process) = 0;

    /// Like scancel: TERM, then KILL after KillWait. Succeeds if the job has already ended.
    virtual Result<void> cancel(JobId id) = 0;
    /// The same for a value of Job::called or a number: an entire array or a part of it.
    virtual Result<void> cancel_called(const std::string& called) = 0;

    /// Changes the time limit of a job, counted from its start. `missing` when slurmctld does not
    /// know the job; `denied` with its message: the owner of a running job can only reduce the
    /// limit.
    virtual Result<void> set_walltime(JobId id, std::chrono::minutes walltime) = 0;

    /// Reservations that have not ended, as far as Slurm shows them to the calling user. One RPC.
    virtual Result<std::vector<Reservation>> reservations() = 0;
    /// Makes a reservation. `denied` if the calling user is no operator of Slurm, or with Slurm's
    /// message; `busy` if the partition has too few nodes that are free for the whole time.
    ///
    /// This and the two functions below may wait for a second: slurmctld shows its job_submit.lua a
    /// change only if it comes in a later second than the last one.
    virtual Result<void> reserve(const ReservationSpec& spec) = 0;
    /// Removes a reservation. `missing`; `busy` while jobs run in it; `denied` as above.
    virtual Result<void> remove_reservation(const std::string& name) = 0;
    /// Ends a reservation that has begun, and with it the jobs that run in it. Errors as above.
    virtual Result<void> end_reservation(const std::string& name) = 0;

    /// Ends an allocation with an exit status (0..255), from inside or outside. Succeeds if it has
    /// already ended.
    virtual Result<void> complete(JobId id, int exit_status) = 0;
};

} // namespace gpuq
