// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/slurm_object.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpuq {

/// A limit that somebody has set on an account, or on a user in one (`ada@lab`), and not on a QOS.
struct AssociationLimit {
    std::string who;
    std::string limit; ///< `GrpTRES=gres/gpu=2`
    bool operator==(const AssociationLimit&) const = default;
};

struct FileRights {
    std::string owner; ///< a user's name, or a number that is nobody's
    unsigned mode = 0; ///< 0644
    bool operator==(const FileRights&) const = default;
};

/// What there is of Slurm, as far as a policy may decide it.
struct SlurmState {
    std::string release; ///< of the controller: `22.05.8`
    /// Every setting that the controller shows, every partition, QOS and reservation; for each QOS
    /// that anybody has, who; the shares of every account, and of every user in each (`ada@lab`).
    /// No requirement, script or file.
    std::vector<SlurmObject> objects;
    std::vector<std::string> nodes;
    std::vector<std::string> gpu_nodes; ///< of these, those with GPUs
    /// ThreadsPerCore of each node that Slurm shows it for.
    std::map<std::string, int> threads_per_core;
    std::vector<AssociationLimit> limits; ///< as accounting gives them
    std::vector<std::string> accounts;    ///< that accounting knows for this cluster
    std::vector<std::string> users;
};

/// A running job shows the partition it runs in. It keeps the list it was submitted with, which
/// nobody is told, and is killed when the controller reads a file that lacks one of that list
/// (seen with 22.05).
struct QueuedJob {
    std::vector<std::string> partitions;
    std::string submitted; ///< local time: `2026-11-22T17:09:20`
};

/// Slurm as its administrator sees it: what a policy is applied through. One object at a time, each
/// read back; nothing here passes through a shell. On the controller's host, with the rights of
/// SlurmUser or root. `unreachable` when the controller or the accounting does not answer, `denied`
/// with Slurm's words when it refuses; what happened then is to be read with `state`.
class Admin {
public:
    virtual ~Admin() = default;

    virtual Result<SlurmState> state() = 0;

    /// Makes a QOS, an access, a share, a limit or a reservation exactly so: what is not there is
    /// made, and a field that the object does not have goes back to Slurm's default. Accounts and
    /// users have to be there.
    virtual Result<void> set(const SlurmObject& object) = 0;
    /// A QOS or a reservation; one that is not there is no error.
    virtual Result<void> remove(SlurmObject::Kind kind, const std::string& name) = 0;

    /// All jobs that run or wait.
    virtual Result<std::vector<QueuedJob>> jobs() = 0;

    /// Has the controller read its configuration. One that is not sound ends it in some releases:
    /// `ping` tells.
    virtual Result<void> reconfigure() = 0;
    virtual Result<void> ping() = 0;
    /// Starts a controller that has ended.
    virtual Result<void> start_controller() = 0;

    /// The version of the job_submit.lua that the controller has loaded, by a job that it refuses;
    /// nothing when what it has loaded is none of ours.
    virtual Result<std::optional<std::string>> loaded_script() = 0;

    /// Starts a controller of its own on these texts, in a folder of its own, that reaches neither
    /// nodes nor accounting; ends it. `usage` with its words when it would not live on them.
    virtual Result<void> rehearse(const std::string& include, const std::string& script) = 0;

    // Files, by name. `job_submit.lua` and `slurm.conf` lie where Slurm wants them, all others in
    // the policy's folder beside them, which `write` makes. That is `gpuq`.

    /// Where a file lies, for messages.
    virtual std::string path(const std::string& name) = 0;
    /// Nothing when there is none. A whole path is read as it is, as of what slurm.conf includes.
    virtual Result<std::optional<std::string>> read(const std::string& name) = 0;
    /// Nothing when there is no such file.
    virtual Result<std::optional<FileRights>> rights(const std::string& name) = 0;
    /// The old text or the new one, whatever happens; for all to read, and this user's to write. A
    /// script is given a time of change by which the controller sees that it is new. Never
    /// `slurm.conf`.
    virtual Result<void> write(const std::string& name, const std::string& text) = 0;
    virtual Result<void> erase(const std::string& name) = 0;
    /// The policy's folder is this user's again, for all to read, and nobody else's to write.
    virtual Result<void> take_folder() = 0;

    /// Held while a policy is applied; `busy` while somebody else does.
    class Hold {
    public:
        virtual ~Hold() = default;
    };
    virtual Result<std::unique_ptr<Hold>> hold() = 0;
};

} // namespace gpuq
