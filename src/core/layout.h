// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/key.h"

#include <string>
#include <string_view>

/// Every file name below the state folder, made in this one place. Paths are relative to it.
/// man gpuq, FILES, is the same table in prose.
///
///     runs/KEY/run.json                  the request; written once, before submission (client)
///     runs/KEY/walltime.json             the time limit, when it was changed later (client)
///     runs/KEY/inbox/NAME                requests to the supervisor, each dropped by rename
///     runs/KEY/ended.json                how it ended, as concluded from Slurm, when no supervisor
///                                        could say so; written once (client)
///     runs/KEY/shown.json                how far its output has been shown to somebody (client)
///     runs/KEY/link-N/job.json           cluster and job id; written once (who submitted link N)
///     runs/KEY/link-N/claim              the id of the one job that may run link N (supervisor)
///     runs/KEY/link-N/out.log err.log    the program's bytes; a byte's place in the file is its
///                                        offset in the stream, also after lost ones (supervisor)
///     runs/KEY/link-N/out.log.R ...      the same of rank R alone (its task)
///     runs/KEY/link-N/order              how the two interleave (supervisor)
///     runs/KEY/link-N/journal.jsonl      what happened, when and why (supervisor)
///     runs/KEY/link-N/heartbeat          when the supervisor was last alive (supervisor)
///     runs/KEY/link-N/reserve            room for the journal on a full disk (supervisor)
///     runs/KEY/link-N/ranks/             who failed first, kills for memory (tasks of ranks)
///     runs/KEY/link-N/stop save          requests to the program: GPUQ_STOP_FILE, GPUQ_SAVE_FILE
///     runs/KEY/checkpoints/              the program's own: GPUQ_CHECKPOINT_DIR
///     runs/KEY/kept/NAME                 the newest two whole checkpoints, out of the program's
///     reach
///                                        (supervisor)
///     runs/KEY/connect/NAME              keys of `gpuq connect`, gone when the run is (client),
///     and
///                                        an sshd's settings while it runs (supervisor's connect)
///     index/jobs/CLUSTER/JOBID           holds the key (who submitted)
///     cache/queues/CLUSTER               an answer of Slurm, used again for a minute (client)
///     cache/overview/CLUSTER             what Slurm last said of GPUs and own jobs (client)
///     secret                             what names on nodes are made with, core/node_names.h;
///                                        written once (supervisor)
///     index/active/KEY                   present until the run is known to have ended (client)
namespace gpuq::layout {

std::string runs();
std::string run_dir(const RunKey&);
std::string run_json(const RunKey&);
std::string walltime_json(const RunKey&);
std::string inbox(const RunKey&);
std::string ended_json(const RunKey&);
std::string shown_json(const RunKey&);
std::string link_dir(const RunKey&, LinkNumber);
std::string job_json(const RunKey&, LinkNumber);
/// What slurmstepd, the shell and the supervisor of a batch job say outside of the program's
/// streams.
std::string slurm_log(const RunKey&, LinkNumber);
std::string claim(const RunKey&, LinkNumber);
std::string log(const RunKey&, LinkNumber, Stream);
std::string order(const RunKey&, LinkNumber);
std::string journal(const RunKey&, LinkNumber);
std::string heartbeat(const RunKey&, LinkNumber);
std::string stop_file(const RunKey&, LinkNumber);
std::string save_file(const RunKey&, LinkNumber);
std::string checkpoints(const RunKey&);
std::string kept(const RunKey&);
std::string connect_dir(const RunKey&);
std::string connect_file(const RunKey&, std::string_view name);
std::string secret();
std::string active();
std::string active(const RunKey&);
/// `cluster` is any text from outside: bytes a file name can't have are percent-encoded.
std::string job_index(const std::string& cluster, JobId);
/// The queues of a cluster as they were last told.
std::string queues(const std::string& cluster);
/// Free GPUs and one's own jobs, as Slurm last told them.
std::string overview(const std::string& cluster);
/// The folder of a folder per cluster, and the entry in one of these as it was listed.
std::string job_indexes();
std::string job_index_in(const std::string& folder, JobId);

/// Names inside an inbox.
constexpr const char* k_stop_request = "stop.json";
constexpr const char* k_save_and_stop_request = "save_and_stop.json";
constexpr const char* k_rehearsal_request = "rehearsal";

/// Names inside the folder connect.
constexpr const char* k_connect_keys = "keys.json";
constexpr const char* k_connect_identity = "identity";
constexpr const char* k_connect_known_hosts = "known_hosts";
constexpr const char* k_connect_host_key = "host_key";
constexpr const char* k_connect_authorized = "authorized_keys";

/// Where the supervisor of a link listened in gpuq 0.1.0: see NodeNames::sockets.
std::string socket(unsigned uid, const RunKey&, LinkNumber);

} // namespace gpuq::layout
