// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/accounting.h"
#include "ports/cluster.h"
#include "ports/use_records.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuq {

/// The configuration of the Slurm to use: `path`, else $SLURM_CONF, else /etc/slurm/slurm.conf,
/// else /run/slurm/conf/slurm.conf, else `SLURM_CONF_SERVER=HOST` if that variable makes libslurm
/// fetch it. `usage` if there is none or it can't be read.
Result<std::string> slurm_configuration(const std::optional<std::string>& path);

/// Cancels those of the jobs that have not started, by scancel: for a process that must not wait
/// for a silent controller longer than `limit`. `not_found`: there is no scancel; `unreachable`: it
/// gave no answer. A job that runs or has ended is no error.
Result<void> withdraw(const std::vector<JobId>& jobs, std::chrono::milliseconds limit);

/// A real Slurm through libslurm; steps and their streams through srun, which must be in PATH.
///
/// One cluster per process: libslurm keeps its configuration in global variables, read (1 ms) at
/// the first request. open() sets SLURM_CONF in the environment, so call it before starting
/// threads. If libslurm can't use the configuration, it calls exit() itself; the process then
/// prints libslurm's message and ends with exit status 2.
class SlurmCluster : public Cluster {
public:
    /// Finds the configuration; makes no request. `usage` as above, and if it includes a missing
    /// file.
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
    Result<std::vector<Reservation>> reservations() override;
    Result<void> reserve(const ReservationSpec& spec) override;
    Result<void> remove_reservation(const std::string& name) override;
    Result<void> end_reservation(const std::string& name) override;
    Result<void> complete(JobId id, int exit_status) override;

    /// NodeAddr: the address by which Slurm, and hence the other nodes, reach a node. One RPC.
    Result<std::string> address_of_node(const std::string& name);
    /// True if Slurm binds a step's tasks to cores unless `--cpu-bind=none` is given. No RPC.
    bool binds_cpus();

    /// Changes the comment of a job of the calling user, for accounting to store at its end; if the
    /// job has already ended, like note_in_accounting(). Makes no request if accounting stores no
    /// comments (AccountingStoreFlags).
    Result<void> note(JobId id, const std::string& comment);
    /// The same for a job that Slurm reports as ended: changes its record in slurmdbd, once
    /// slurmctld has reported the end to slurmdbd. Waits up to three seconds for that.
    Result<void> note_in_accounting(JobId id, const std::string& comment);

private:
    SlurmCluster() = default;
};

/// slurmdbd, as accessed by sacct.
class SlurmAccounting : public Accounting, public UseRecords {
public:
    /// Like SlurmCluster::open. Each request executes `program` (see slurm/query.h), with a timeout
    /// of 10 to 60 seconds. The program's main() must call answer_query().
    static Result<std::unique_ptr<SlurmAccounting>>
    open(const std::optional<std::string>& path = {},
         const std::string& program = "/proc/self/exe");

    Result<PastJob> past_job(JobId id) override;
    Result<std::vector<JobUse>> use(const UseQuestion& question) override;
    Result<std::vector<UseRecord>> use_records(const UseQuestion& question, Steps steps) override;
    Result<std::vector<AccountGrants>> grants(const std::string& user) override;
    Result<NodeHistory> node_failures(Time from, Time to) override;

private:
    explicit SlurmAccounting(std::string program)
        : m_program(std::move(program))
    {
    }
    const std::string m_program;
};

/// Whether this process was executed for a request of SlurmAccounting, in which case main() only
/// has to return the result of answer_query(), which reads the request from stdin and writes the
/// answer to stdout.
bool is_accounting_process(std::string_view argv_0);
int answer_query();

} // namespace gpuq
