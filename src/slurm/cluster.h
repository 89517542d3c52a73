// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"
#include "ports/use_records.h"

#include <memory>
#include <optional>
#include <string>

namespace gpuq {

/// The configuration of the Slurm to talk to: `path`, else $SLURM_CONF, else
/// /etc/slurm/slurm.conf, else /run/slurm/conf/slurm.conf, else `SLURM_CONF_SERVER=HOST` where that
/// variable has libslurm fetch it. `usage` when there is none or it can't be read.
Result<std::string> slurm_configuration(const std::optional<std::string>& path);

/// A real Slurm through libslurm; steps and their streams through srun, which must be in PATH.
///
/// One cluster per process: libslurm holds its configuration in globals, read (a millisecond) at
/// the first question. Opening sets SLURM_CONF in the environment, so open before starting threads.
/// A configuration that libslurm can't use ends the process with exit status 2 and libslurm's words
/// then: it calls exit() itself.
class SlurmCluster : public Cluster {
public:
    /// Finds the configuration, asks nobody. `usage` as above, and when it includes a file that is
    /// not there.
    static Result<std::unique_ptr<SlurmCluster>> open(const std::optional<std::string>& path = {});

    Result<std::string> name() override;
    Result<Controller> controller() override;
    Result<std::vector<Partition>> partitions() override;
    Result<std::vector<Node>> nodes() override;
    Result<Inventory> inventory() override;
    Result<std::vector<Job>> own_jobs() override;
    Result<std::vector<Job>> own_jobs_within(std::chrono::seconds patience) override;
    Result<AllJobs> all_jobs() override;
    Result<Job> job(JobId id) override;
    Result<bool> has_first_step(JobId id) override;
    Result<Started> start_now(const JobSpec& spec, const std::vector<std::string>& step,
                              bool with_input, const Before& before) override;
    Result<JobId> submit(const JobSpec& spec, const std::string& script,
                         const std::vector<std::string>& environment) override;
    Result<StepProcess> start_step(JobId id, const std::vector<std::string>& step,
                                   bool with_input) override;
    Result<StepProcess> start_step_elsewhere(JobId id, const std::vector<std::string>& step,
                                             int nodes) override;
    void abandon(const StepProcess& process) override;
    Result<void> cancel(JobId id) override;
    Result<void> cancel_called(const std::string& called) override;
    Result<void> set_walltime(JobId id, std::chrono::minutes walltime) override;
    Result<void> complete(JobId id, int exit_status) override;

    /// NodeAddr: how Slurm, and with it the other nodes, reach a node. One RPC.
    Result<std::string> address_of_node(const std::string& name);
    /// Slurm would bind a step's tasks to cores, unless `--cpu-bind=none` says otherwise. No RPC.
    bool binds_cpus();

    /// Gives a job of the caller another comment, for accounting to keep at its end; when it turns
    /// out to be over, as note_in_accounting() does. Where accounting keeps none
    /// (AccountingStoreFlags), nobody is asked.
    Result<void> note(JobId id, const std::string& comment);
    /// The same of a job that Slurm has called over: in the record that slurmdbd has of it, once
    /// slurmctld has told of the end there. Waits up to three seconds for that.
    Result<void> note_in_accounting(JobId id, const std::string& comment);

private:
    SlurmCluster() = default;
};

/// slurmdbd as sacct sees it.
class SlurmAccounting : public Accounting, public UseRecords {
public:
    /// As SlurmCluster::open. Each question connects anew and takes ten seconds at most.
    static Result<std::unique_ptr<SlurmAccounting>>
    open(const std::optional<std::string>& path = {});

    Result<PastJob> past_job(JobId id) override;
    Result<std::vector<JobUse>> use(const UseQuestion& question) override;
    Result<std::vector<UseRecord>> use_records(const UseQuestion& question, Steps steps) override;
    Result<std::vector<AccountGrants>> grants(const std::string& user) override;
    Result<NodeHistory> node_failures(Time from, Time to) override;

private:
    SlurmAccounting() = default;
};

} // namespace gpuq
