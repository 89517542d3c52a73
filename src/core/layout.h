// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Names of all files below the state directory. Paths are relative to it. The writer is given in
/// parentheses. man gpuq, FILES, describes the same table.
///
///     runs/KEY/run.json                  the request; written once, before submission (client)
///     runs/KEY/walltime.json             the time limit, if changed later (client)
///     runs/KEY/snapshot.json             which snapshot its program gets; written once (client)
///     runs/KEY/inbox/NAME                requests to the supervisor, each created by rename
///     runs/KEY/ended.json                how the run ended according to Slurm, if no supervisor
///                                        recorded it; written once (client)
///     runs/KEY/shown.json                how much of the output has been shown to a user (client)
///     runs/KEY/link-N/job.json           cluster and job id; written once (submitter of link N)
///     runs/KEY/link-N/claim              id of the only job that may run link N (supervisor)
///     runs/KEY/link-N/out.log err.log    the program's output; a byte's file offset equals its
///                                        stream offset, even after lost bytes (supervisor)
///     runs/KEY/link-N/out.log.R ...      the same for rank R (Slurm task) alone
///     runs/KEY/link-N/order              how the two streams interleave (supervisor)
///     runs/KEY/link-N/times              when its output was written (supervisor)
///     runs/KEY/link-N/journal.jsonl      events with time and reason (supervisor)
///     runs/KEY/link-N/heartbeat          when the supervisor was last alive (supervisor)
///     runs/KEY/link-N/reserve            disk space reserved for the journal (supervisor)
///     runs/KEY/link-N/supervisor.log     log of gpuq's processes in the job, and .1, the one
///                                        before it (log/log.h)
///     runs/KEY/link-N/ranks/             first failed rank, out-of-memory kills (tasks of ranks)
///     runs/KEY/link-N/stop save          requests to the program: GPUQ_STOP_FILE, GPUQ_SAVE_FILE
///     runs/KEY/link-N/extended           `120 60`: the raised time limit, and by how much, in
///                                        minutes; the supervisor then queries Slurm (client)
///     runs/KEY/link-N/deadline           its end, if that has changed: GPUQ_DEADLINE_FILE
///     runs/KEY/checkpoints/              the program's checkpoints: GPUQ_CHECKPOINT_DIR
///     runs/KEY/kept/NAME                 the newest two complete checkpoints, kept where the
///                                        program does not delete them (supervisor)
///     runs/KEY/connect/NAME              keys of `gpuq connect`, removed when the run ends
///                                        (client); sshd's configuration while it runs
///                                        (gpuq-supervisor connect)
///     sweeps/KEY/sweep.json              a sweep; written once (client)
///     sweeps/KEY/snapshot.json           which snapshot its tries get; written once (client)
///     sweeps/KEY/tries-B.jsonl           the values of its tries, batch B; written once (client)
///     sweeps/KEY/retries-B               attempts that no longer count; written once (client)
///     sweeps/KEY/stop                    exists when no further try is to start (client)
///     sweeps/KEY/closed                  exists once no more tries are proposed; why, if the
///                                        program failed (worker)
///     sweeps/KEY/lock                    held by the worker that asks for proposals
///     sweeps/KEY/totals.json             its line in `gpuq ls`, once it is over (client)
///     sweeps/KEY/past.json               its tries that had ended, in a few numbers (client)
///     sweeps/KEY/grows                   exists if its workers add others (client)
///     sweeps/KEY/added/RUN               the worker added behind that one; written once (worker)
///     sweeps/KEY/runs/RUN                exists for each of its workers (client, worker)
///     sweeps/KEY/workers/RUN             journal of that worker (worker)
///     sweeps/KEY/tries/N/claim-A         the owner of attempt A at try N; written once (worker)
///     sweeps/KEY/tries/N/out.log         output of try N, both streams (its program)
///     sweeps/KEY/tries/N/stop            exists when the try is to end (client)
///     sweeps/KEY/tries/N/leave           exists when the program is to save and leave: its
///                                        GPUQ_STOP_FILE with --stop-early (worker)
///     sweeps/KEY/tries/N/checkpoints/    checkpoints of try N: its GPUQ_CHECKPOINT_DIR
///     snapshots/trees/ID                 a snapshot: the list of its files; written once (client)
///     snapshots/packs/ID                 contents of files of snapshots; written once (client)
///     snapshots/latest/ID                the newest snapshot of a directory (client)
///     snapshots/unused.json              those of them that the next `gpuq clean` may remove
///     budgets/NAME/limit                 GPU time of a budget; written once (client)
///     budgets/NAME/members/KEY           GPU time that a run or sweep can use, or has used
///     (client) index/sweeps/KEY                   exists until the sweep is known to have ended
///     (client) index/jobs/CLUSTER/JOBID           contains the run's key (submitter)
///     cache/queues/CLUSTER               Slurm's queues, valid for one minute (client)
///     cache/overview/CLUSTER             GPUs and own jobs as last reported by Slurm (client)
///     cache/tuning/ID                    results of simulations by `gpuq policy tune` (client)
///     secret                             secret for names on nodes, io/node_names.h; written
///                                        once (supervisor)
///     index/notebooks                    a byte of it is locked for a directory while a notebook
///                                        of it is started (client)
///     index/active/KEY                   exists until the run is known to have ended (client)
namespace gpuq::layout {

std::string runs();
std::string run_dir(const RunKey&);
std::string run_json(const RunKey&);
std::string walltime_json(const RunKey&);
std::string snapshot(const RunKey&);
std::string inbox(const RunKey&);
std::string ended_json(const RunKey&);
std::string shown_json(const RunKey&);
std::string link_dir(const RunKey&, LinkNumber);
std::string job_json(const RunKey&, LinkNumber);
/// Output of slurmstepd, the batch shell and the supervisor of a batch job, apart from the
/// program's streams.
std::string slurm_log(const RunKey&, LinkNumber);
/// The log of gpuq's own processes in the job.
constexpr const char* k_supervisor_log = "supervisor.log"; ///< in the link's directory
std::string supervisor_log(const RunKey&, LinkNumber);
std::string claim(const RunKey&, LinkNumber);
std::string log(const RunKey&, LinkNumber, Stream);
std::string order(const RunKey&, LinkNumber);
constexpr const char* k_times = "times"; ///< in the link's directory
std::string times(const RunKey&, LinkNumber);
std::string journal(const RunKey&, LinkNumber);
std::string heartbeat(const RunKey&, LinkNumber);
std::string stop_file(const RunKey&, LinkNumber);
std::string save_file(const RunKey&, LinkNumber);
std::string extended_file(const RunKey&, LinkNumber);
std::string deadline_file(const RunKey&, LinkNumber);
std::string checkpoints(const RunKey&);
std::string kept(const RunKey&);
std::string connect_dir(const RunKey&);
std::string connect_file(const RunKey&, std::string_view name);
std::string sweeps();
std::string sweep_dir(const RunKey&);
std::string sweep_json(const RunKey&);
std::string sweep_snapshot(const RunKey&);
std::string sweep_tries(const RunKey&, int batch);
std::string sweep_retries(const RunKey&, int batch);
std::string sweep_stop(const RunKey&);
std::string sweep_closed(const RunKey&);
std::string sweep_lock(const RunKey&);
std::string sweep_totals(const RunKey&);
std::string sweep_grows(const RunKey&);
std::string sweep_added(const RunKey&, const RunKey& worker);
std::string sweep_runs(const RunKey&);
std::string sweep_run(const RunKey&, const RunKey& worker);
std::string sweep_workers(const RunKey&);
std::string sweep_worker(const RunKey&, const RunKey& worker);
std::string try_dir(const RunKey&, std::size_t number);
std::string try_claim(const RunKey&, std::size_t number, int attempt);
std::string try_log(const RunKey&, std::size_t number);
std::string try_stop(const RunKey&, std::size_t number);
std::string try_leave(const RunKey&, std::size_t number);
std::string budget_limit(const std::string& name);
std::string budget_members(const std::string& name);
std::string budget_member(const std::string& name, const RunKey&);
std::string active_sweeps();
std::string active_sweep(const RunKey&);
std::string secret();
std::string notebooks();
std::string active();
std::string active(const RunKey&);
/// `cluster` may be any text; bytes not allowed in a file name are percent-encoded.
std::string job_index(const std::string& cluster, JobId);
/// Cached list of the queues of a cluster.
std::string queues(const std::string& cluster);
/// Cached state of GPUs and the user's own jobs.
std::string overview(const std::string& cluster);
/// The same of all users, in the site's directory (man gpuq-site(1)).
std::string shared_overview(const std::string& directory, const std::string& cluster);
/// Results of a search of `gpuq policy tune`, and the directory of all of them.
std::string tuning(std::uint64_t problem);
std::string tunings();
/// The parent of the per-cluster index directories, and the entry of a job in one of them
/// (`directory` as listed, already encoded).
std::string job_indexes();
std::string job_index_in(const std::string& directory, JobId);

/// File names in an inbox.
constexpr const char* k_stop_request = "stop.json";
constexpr const char* k_save_and_stop_request = "save_and_stop.json";
constexpr const char* k_rehearsal_request = "rehearsal";

/// File names in the connect directory.
constexpr const char* k_connect_keys = "keys.json";
constexpr const char* k_connect_identity = "identity";
constexpr const char* k_connect_known_hosts = "known_hosts";
constexpr const char* k_connect_host_key = "host_key";
constexpr const char* k_connect_authorized = "authorized_keys";

/// Socket path of a link's supervisor in gpuq 0.1.0: see NodeNames::sockets.
std::string socket(unsigned uid, const RunKey&, LinkNumber);

} // namespace gpuq::layout
