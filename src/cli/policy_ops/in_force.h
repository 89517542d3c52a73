// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "policy/submission.h"
#include "runs/idle.h"
#include "runs/plan.h"
#include "runs/queues/start_forecast.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::cli {

/// The copy that `gpuq policy apply` keeps of the policy in force, with its calendar; nothing if
/// there is none, or if it was applied by an older gpuq and is no longer valid.
Result<std::optional<policy::Policy>> applied_policy(Admin& admin);

/// The policy that `gpuq policy apply` has put in force, if this process can read it: the copy
/// beside slurm.conf, else the file that load_policy (policy_file.h) finds; as its calendar has it
/// at `moment`, by default now. Nothing if there is no valid one: Slurm's enforcement does not
/// depend on it.
std::optional<policy::Policy> policy_in_force(Services& queue_partitions,
                                              std::optional<Time> moment = {});

/// The limits of chains in each queue.
std::map<std::string, ChainLimits> chains_of(const policy::Policy& policy);

/// Which queues accept runs of this user, charged to this account if one was given, with these GPUs
/// if they are known: some queues give only shares of GPUs, most only whole ones.
std::map<std::string, SiteContext::Entry> entry_of(const policy::Policy& policy,
                                                   const std::string& user,
                                                   const std::optional<std::string>& account,
                                                   const std::optional<GpuRequest>& gpus = {});

/// The GPUs of each queue. Queues with a pool whose models are not specified are left out.
QueueGpus gpus_of(const policy::Policy& policy);

/// How long a notebook in a queue may be unused.
struct NotebookIdle {
    std::string queue;
    std::chrono::seconds most{0};
    std::string text; ///< `20 min (policy.yaml:12)`
};

/// The policy's rules for runs that do not use their GPUs.
struct UnusedRules {
    IdleRules idle;
    std::vector<NotebookIdle> notebooks;
};

/// Adds the policy in force to the input of a plan, for a run charged to `account`, with `gpus` if
/// the queue is still to be chosen. Does nothing if it manages none of `partitions`.
UnusedRules take_policy(SiteContext& here, Services& queue_partitions,
                        const std::vector<Partition>& partitions,
                        const std::optional<std::string>& account,
                        const std::optional<GpuRequest>& gpus = {});

/// When, within a week, the calendar of the policy in force lets a queue that is open to this user
/// take runs of `walltime`: `from Mon 20:00 on, queue gpu takes 12 h`. Empty: now, never, or not
/// known.
std::string allowed_later(Services& services, const std::optional<std::string>& account,
                          const GpuRequest& gpus, std::chrono::minutes walltime);

/// The forecast for a run or job in these queues, as far as the calendar of the policy in force
/// lets it start: when the hours of all their pools end before it starts, it waits for the next
/// hours.
StartForecast within_hours(Services& services, const std::string& queues, StartForecast forecast);

/// The result of checking a request against the policy in force, if that can be read: the text of
/// `gpuq policy explain`, except for the GPUs that the user holds now.
struct PolicyAnswer {
    bool refuses = false; ///< certain: false if it depends on an account that was not given
    std::vector<std::string> lines;
};
std::optional<PolicyAnswer> policy_answer(Services& queue_partitions, const Request& request,
                                          const std::string& user);

/// The rules for idle GPUs, by partition, of the queues that have any.
IdleRules idle_of(const policy::Policy& policy);
/// Those for notebooks, of the queues that have one.
std::vector<NotebookIdle> notebook_idle_of(const policy::Policy& policy);

/// A run's request as the input of a policy decision.
policy::Submission submission_of(const Request& request, const std::string& user);

} // namespace gpuq::cli
