// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"
#include "core/ids.h"
#include "core/result.h"
#include "ports/job.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuq {

/// A finished job, from slurmdbd.
struct PastJob {
    JobId id;
    std::string name;
    std::uint32_t uid = 0;
    std::string comment;
    JobState state = JobState::unknown;
    int exit_status = 0;                       ///< 128+N for signal N
    std::optional<std::uint32_t> cancelled_by; ///< uid
    std::optional<Time> started_at;
    std::optional<Time> ended_at;
};

/// Selects the jobs that ran between `from` and `to`; of all users if `users` is empty.
struct UseQuestion {
    Time from;
    Time to;
    std::vector<std::string> users;
    std::vector<std::string> accounts;
    bool with_labs = false; ///< set JobUse::lab, which takes a further request
};

/// Resources of one job within the time span of a question. A requeued job has one entry for each
/// time it ran, a job array one for each task.
struct JobUse {
    JobId id;
    std::string user;
    std::string account;
    std::string queue;
    std::chrono::seconds elapsed{0}; ///< within the span, not counting suspension
    int gpus = 0;                    ///< allocated, all models together
    /// Per model, if the site accounts for models (AccountingStorageTRES=gres/gpu:k80).
    std::vector<std::pair<std::string, int>> models;
    /// Shares of GPUs, of all nodes together, if the site accounts for them (gres/shard);
    /// `per_gpu` is not in accounting.
    std::optional<GpuShare> share{};
    /// The account directly below the root of Slurm's tree that contains `account`, often that of a
    /// lab; empty: not requested, or not shown to the caller.
    std::string lab{};
    bool operator==(const JobUse&) const = default;
};

/// A limit on accumulated GPU time (GrpTRESMins=gres/gpu).
struct GpuGrant {
    std::string holder; ///< owner of the limit: the account, a parent account, or `USER in ACCOUNT`
    std::chrono::minutes granted{0};
    std::optional<std::chrono::seconds> used; ///< nullopt where Slurm does not count it
    bool operator==(const GpuGrant&) const = default;
};

/// GPU time limits of one account of a user; the tightest one is effective.
struct AccountGrants {
    std::string account;
    bool complete = true; ///< false: Slurm hides some of the parent accounts (PrivateData)
    std::vector<GpuGrant> limits;
    bool operator==(const AccountGrants&) const = default;
};

/// Node failures recorded in accounting.
struct NodeHistory {
    struct Failure {
        std::string node;
        Time at;
        bool operator==(const Failure&) const = default;
    };
    Time since; ///< start of the recorded period: the requested time or the cluster's first day
    std::vector<Failure> failures;
};

class Accounting {
public:
    virtual ~Accounting() = default;
    /// The record of `id`; `missing` when accounting responds but has no record; `unreachable` when
    /// the cluster has no accounting or it is down.
    virtual Result<PastJob> past_job(JobId id) = 0;

    /// Allocated resources of all jobs of the cluster that ran in the span; running jobs count up
    /// to `to` or now. Accounting shows each user only the jobs that the site permits
    /// (PrivateData). An
    /// unknown user or account is `missing`, so that it is not reported as zero use; `unreachable`
    /// as above.
    virtual Result<std::vector<JobUse>> use(const UseQuestion& question) = 0;

    /// The GPU time limits of each account of `user`, as counted by the controller, in one RPC.
    /// `missing` when Slurm has no account of `user`; `unreachable` as above.
    virtual Result<std::vector<AccountGrants>> grants(const std::string& user) = 0;

    /// Nodes of this cluster that went down between the two times for any reason, ending the jobs
    /// on them. `unreachable` as above.
    virtual Result<NodeHistory> node_failures(Time from, Time to) = 0;
};

} // namespace gpuq
