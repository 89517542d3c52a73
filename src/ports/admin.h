// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/slurm_object.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// A limit set on an account, or on a user in one (`ada@lab`), rather than on a QOS.
struct AssociationLimit {
    std::string who;
    std::string limit; ///< `GrpTRES=gres/gpu=2`
    bool operator==(const AssociationLimit&) const = default;
};

struct FileRights {
    std::string owner; ///< user name, or the number of a user without a name
    unsigned mode = 0; ///< 0644
    bool operator==(const FileRights&) const = default;
};

/// The state of Slurm, as far as a policy can control it.
struct SlurmState {
    std::string release; ///< the controller's release: `22.05.8`
    /// All settings that the controller shows, all partitions, QOS and reservations; for each QOS
    /// in use, the accounts and users that have it; the shares of all accounts and of all users in
    /// each (`ada@lab`). No objects of kind requirement, script or file.
    std::vector<SlurmObject> objects;
    std::vector<std::string> nodes;
    std::vector<std::string> gpu_nodes; ///< the subset of `nodes` that has GPUs
    /// ThreadsPerCore of each node for which Slurm reports it.
    std::map<std::string, int> threads_per_core;
    std::vector<AssociationLimit> limits; ///< as reported by accounting
    std::vector<std::string> accounts;    ///< known to accounting for this cluster
    std::vector<std::string> users;
    /// What Slurm shows beyond the above, for users: `partition gpu: MaxCPUsPerSocket=8`.
    std::vector<std::string> others;
};

/// A running job shows only the partition it runs in. It keeps the list of partitions it was
/// submitted with, which Slurm does not report, and is killed when the controller reads a
/// configuration that lacks one of them (observed with 22.05).
struct QueuedJob {
    std::vector<std::string> partitions;
    std::string submitted; ///< local time: `2026-11-22T17:09:20`
};

/// Slurm's administrative interface, through which a policy is applied. Objects are changed one at
/// a time and read back; nothing passes through a shell. Requires the controller's host and the
/// rights of SlurmUser or root. `unreachable` when the controller or accounting does not respond;
/// `denied` with Slurm's message when it refuses. After either, read the actual state with `state`.
class Admin {
public:
    virtual ~Admin() = default;

    virtual Result<SlurmState> state() = 0;

    /// Creates or changes a QOS, access, share, limit or reservation to match `object` exactly:
    /// fields not in the object are reset to Slurm's default. Accounts and users must exist.
    virtual Result<void> set(const SlurmObject& object) = 0;
    /// Removes a QOS or a reservation; succeeds if it does not exist.
    virtual Result<void> remove(SlurmObject::Kind kind, const std::string& name) = 0;

    /// All running and pending jobs.
    virtual Result<std::vector<QueuedJob>> jobs() = 0;

    /// Gives the running jobs of these partitions an end: the time limit of those that may run
    /// longer than the time of their partition is set so that they end after it. Returns their ids.
    virtual Result<std::vector<std::string>>
    limit_jobs(const std::map<std::string, std::chrono::seconds>& time_left) = 0;

    /// Makes the controller read its configuration. In some releases an invalid configuration
    /// terminates it: check with `ping`.
    virtual Result<void> reconfigure() = 0;
    virtual Result<void> ping() = 0;
    /// Starts a controller that has terminated.
    virtual Result<void> start_controller() = 0;

    /// The version of the job_submit.lua that the controller has loaded, found out by submitting a
    /// job that the script refuses; nullopt when the loaded script is not gpuq's.
    virtual Result<std::optional<std::string>> loaded_script() = 0;

    /// Starts a separate controller with these texts in its own directory, without access to nodes
    /// or accounting, and stops it again. `usage` with its messages if it does not stay up.
    virtual Result<void> rehearse(const std::string& include, const std::string& script) = 0;

    // Files, by name. `job_submit.lua` and `slurm.conf` are where Slurm expects them; all others
    // are in the policy's directory next to them, `gpuq`, which `write` creates.

    /// Path of a file, for messages.
    virtual std::string path(const std::string& name) = 0;
    /// nullopt when the file does not exist. An absolute path is accepted too, e.g. for a file
    /// included by slurm.conf.
    virtual Result<std::optional<std::string>> read(const std::string& name) = 0;
    /// nullopt when the file does not exist.
    virtual Result<std::optional<FileRights>> rights(const std::string& name) = 0;
    /// Replaces a file atomically; readable for all users, writable for this one. A script always
    /// gets a new modification time, by which the controller detects the change. Refuses
    /// `slurm.conf`.
    virtual Result<void> write(const std::string& name, const std::string& text) = 0;
    virtual Result<void> erase(const std::string& name) = 0;
    /// Appends a line to the audit log, `audit.log`, with the time and the calling user.
    virtual Result<void> record(const std::string& text) = 0;
    /// Makes the policy's directory owned and writable by this user only, and readable for all.
    virtual Result<void> claim_directory() = 0;

    /// Lock held while a policy is applied; `busy` while another process holds it.
    class Hold {
    public:
        virtual ~Hold() = default;
    };
    virtual Result<std::unique_ptr<Hold>> hold() = 0;
};

} // namespace gpuq
