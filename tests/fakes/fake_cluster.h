// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "fakes/local_step.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "ports/use_records.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpuq::fakes {

/// A small model of Slurm: jobs set by the test, a log of the requests, and switches for faults.
/// Unless `runs_steps` is set, no step is started: an allocation is only recorded.
class FakeCluster : public Cluster {
public:
    std::string cluster_name = "lab";
    std::string reason_when_queued;
    std::vector<Job> jobs;
    std::vector<std::string> requests; ///< `own_jobs`, `cancel 7`, `complete 7 119`, ...
    Controller self{"22.05.8", "22.05.8", {}, "", std::chrono::seconds(30), {}, true};
    std::vector<Partition> queues;
    std::vector<Node> machines; ///< empty: unlimited GPUs
    std::uint32_t next_id = 1;
    std::vector<JobSpec> specs;                  ///< of start_now and submit, in order
    std::vector<std::vector<std::string>> steps; ///< of start_now and start_step, in order
    std::vector<std::string> scripts;            ///< of submit, in order

    std::set<JobId> stepless; ///< running allocations whose first step has ended

    bool may_lengthen = false; ///< running jobs may be extended, as by an operator
    bool silent = false;       ///< no response to any request to slurmctld
    int silent_for = 0;        ///< no response to the next N requests
    int lost_answers = 0;      ///< the next N requests are carried out, their responses are lost
    bool no_gpu_free = false;  ///< no immediate start
    std::string refusal;       ///< if set, start_now and submit fail with this message
    bool runs_steps = false;   ///< steps run as local processes
    bool hides_others = false; ///< PrivateData=jobs

    std::vector<Reservation> kept;           ///< reservations
    std::vector<ReservationSpec> reserved;   ///< as requested, in order
    std::set<std::string> reservations_used; ///< by running jobs
    bool is_operator = true;                 ///< the calling user

    FakeCluster() = default;
    FakeCluster(const FakeCluster&) = delete;
    FakeCluster& operator=(const FakeCluster&) = delete;
    ~FakeCluster() override
    {
        for (const StepProcess& process : m_processes) {
            if (::kill(-process.pid, SIGKILL) != 0) {
                ::kill(process.pid, SIGKILL); // not yet a session leader
            }
            ::waitpid(process.pid, nullptr, 0);
        }
    }

    Job* find(JobId id)
    {
        const auto found =
            std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.id == id; });
        return found == jobs.end() ? nullptr : &*found;
    }

    Result<std::string> name() override { return cluster_name; }

    Result<Controller> controller() override
    {
        TRY(ask("controller"));
        return self;
    }

    Result<std::vector<Partition>> partitions() override
    {
        TRY(ask("partitions"));
        return queues;
    }

    Result<std::vector<Node>> nodes() override
    {
        TRY(ask("nodes"));
        return machines_now();
    }

    Result<Inventory> inventory() override
    {
        TRY(ask("inventory"));
        return Inventory{queues, machines_now()};
    }

    Result<AllJobs> all_jobs() override
    {
        TRY(ask("all_jobs"));
        AllJobs all{jobs, !hides_others};
        for (Job& job : all.jobs) {
            if (job.held.whole.empty() && job.state == JobState::running && job.gpus > 0) {
                job.held.whole = {{job.nodes, model_on(job.nodes), job.gpus}};
            }
        }
        return all;
    }

    Result<std::vector<Job>> own_jobs() override
    {
        TRY(ask("own_jobs"));
        return jobs;
    }

    Result<Job> job(JobId id) override
    {
        TRY(ask("job " + std::to_string(id.value)));
        if (const Job* job = find(id)) {
            return *job;
        }
        return fail(Error::Kind::missing, "Slurm does not know job " + std::to_string(id.value));
    }

    Result<bool> has_first_step(JobId id) override
    {
        TRY(ask("has_first_step " + std::to_string(id.value)));
        if (find(id) == nullptr) {
            return fail(Error::Kind::missing, "Slurm does not know the job");
        }
        return !is_over(find(id)->state) && !stepless.contains(id);
    }

    Result<Started> start_now(const JobSpec& spec, const std::vector<std::string>& step,
                              bool with_input, const Before& before) override
    {
        if (before) {
            TRY(before());
        }
        TRY(ask("start_now"));
        TRY(admit(spec));
        const std::string node = free_node(spec);
        if (no_gpu_free || (node.empty() && !machines.empty())) {
            return fail(Error::Kind::busy, "Requested nodes are busy");
        }
        const JobId id = add(spec, JobState::running, /*batch=*/false);
        find(id)->nodes = find(id)->batch_host = node;
        TRY(answer());
        return Started{id, run(step, with_input)};
    }

    Result<JobId> submit(const JobSpec& spec, const std::string& script,
                         const std::vector<std::string>&) override
    {
        TRY(ask("submit"));
        TRY(admit(spec));
        scripts.push_back(script);
        const JobId id = add(spec, JobState::pending, /*batch=*/true);
        find(id)->reason = reason_when_queued;
        TRY(answer());
        return id;
    }

    Result<StepProcess> start_step(JobId id, const std::vector<std::string>& step,
                                   bool with_input) override
    {
        requests.push_back("start_step " + std::to_string(id.value)); // srun sends the request
        return run(step, with_input);
    }

    Result<StepProcess> start_step_elsewhere(JobId id, const std::vector<std::string>& step,
                                             int nodes) override
    {
        requests.push_back("start_step_elsewhere " + std::to_string(id.value) + " " +
                           std::to_string(nodes));
        return run(step, /*with_input=*/false);
    }

    void abandon(const StepProcess& process) override
    {
        requests.emplace_back("abandon");
        abandon_local_step(process);
    }

    Result<void> cancel(JobId id) override
    {
        TRY(ask("cancel " + std::to_string(id.value)));
        if (Job* job = find(id); job != nullptr && !is_over(job->state)) {
            job->state = JobState::cancelled;
        }
        return answer();
    }

    Result<void> cancel_called(const std::string& called) override
    {
        TRY(ask("cancel_called " + called));
        for (Job& job : jobs) {
            const bool is_meant = job.called == called || std::to_string(job.id.value) == called ||
                                  job.called.starts_with(called + "_");
            if (is_meant && !is_over(job.state)) {
                job.state = JobState::cancelled;
            }
        }
        return answer();
    }

    Result<void> set_walltime(JobId id, std::chrono::minutes walltime) override
    {
        TRY(ask("set_walltime " + std::to_string(id.value) + " " +
                std::to_string(walltime.count())));
        Job* job = find(id);
        if (job == nullptr) {
            return fail(Error::Kind::missing, "Slurm does not know the job");
        }
        const bool is_longer = job->walltime && walltime > *job->walltime;
        if (is_over(job->state) ||
            (job->state != JobState::pending && is_longer && !may_lengthen)) {
            return fail(Error::Kind::denied, "Access/permission denied");
        }
        if (!refusal.empty()) {
            return fail(Error::Kind::denied, refusal);
        }
        job->walltime = walltime;
        return answer();
    }

    Result<std::vector<Reservation>> reservations() override
    {
        TRY(ask("reservations"));
        return kept;
    }

    Result<void> reserve(const ReservationSpec& spec) override
    {
        TRY(ask("reserve " + spec.name));
        TRY(admit_operator());
        reserved.push_back(spec);
        kept.push_back({spec.name,
                        spec.start,
                        spec.start + spec.duration,
                        nodes_for(spec.partition, spec.nodes),
                        spec.partition,
                        spec.users,
                        {}});
        return answer();
    }

    Result<void> remove_reservation(const std::string& name) override
    {
        TRY(ask("remove_reservation " + name));
        TRY(admit_operator());
        if (reservations_used.contains(name)) {
            return fail(Error::Kind::busy, "Requested reservation is in use");
        }
        std::erase_if(kept, [&](const Reservation& one) { return one.name == name; });
        return answer();
    }

    Result<void> end_reservation(const std::string& name) override
    {
        TRY(ask("end_reservation " + name));
        TRY(admit_operator());
        std::erase_if(kept, [&](const Reservation& one) { return one.name == name; });
        return answer();
    }

    Result<void> complete(JobId id, int exit_status) override
    {
        TRY(ask("complete " + std::to_string(id.value) + " " + std::to_string(exit_status)));
        if (Job* job = find(id); job != nullptr && !is_over(job->state)) {
            job->state = exit_status == 0 ? JobState::completed : JobState::failed;
            job->exit_status = exit_status;
        }
        return answer();
    }

private:
    static Error no_answer() { return fail(Error::Kind::unreachable, "Slurm does not answer"); }

    Result<void> ask(std::string question)
    {
        requests.push_back(std::move(question));
        if (silent || (silent_for > 0 && silent_for-- > 0)) {
            return no_answer();
        }
        return {};
    }

    Result<void> answer()
    {
        if (lost_answers > 0) {
            --lost_answers;
            return no_answer();
        }
        return {};
    }

    Result<void> admit(const JobSpec& spec)
    {
        specs.push_back(spec);
        const bool known = queues.empty() ||
                           std::any_of(queues.begin(), queues.end(), [&](const Partition& queue) {
                               return queue.name == spec.partition;
                           });
        if (!known) {
            return fail(Error::Kind::denied, "Invalid partition name specified");
        }
        if (!refusal.empty()) {
            return fail(Error::Kind::denied, refusal);
        }
        return {};
    }

    Result<void> admit_operator() const
    {
        return is_operator ? Result<void>() : fail(Error::Kind::denied, "Invalid user id");
    }

    std::string nodes_for(const std::string& partition, int count) const
    {
        std::string list;
        for (const Node& node : machines) {
            const auto& in = node.partitions;
            if (count > 0 && std::find(in.begin(), in.end(), partition) != in.end()) {
                list += (list.empty() ? "" : ",") + node.name;
                --count;
            }
        }
        return list;
    }

    int gpus_held_on(const std::string& node) const
    {
        int held = 0;
        for (const Job& job : jobs) {
            held += job.state == JobState::running && job.nodes == node ? job.gpus : 0;
        }
        return held;
    }

    std::vector<Node> machines_now() const
    {
        std::vector<Node> now = machines;
        for (Node& node : now) {
            for (NodeGpus& gpus : node.gpus) {
                const int held = gpus_held_on(node.name);
                if (gpus.in_use || held > 0) { // otherwise it stays unknown, as set by the test
                    gpus.in_use = gpus.in_use.value_or(0) + held;
                }
            }
        }
        return now;
    }

    std::string model_on(const std::string& node) const
    {
        for (const Node& machine : machines) {
            if (machine.name == node && !machine.gpus.empty()) {
                return machine.gpus.front().model;
            }
        }
        return {};
    }

    std::string free_node(const JobSpec& spec) const
    {
        for (const Node& node : machines) {
            int free = -gpus_held_on(node.name);
            for (const NodeGpus& gpus : node.gpus) {
                free += gpus.total - gpus.in_use.value_or(0);
            }
            if (free >= spec.gpus_per_node) {
                return node.name;
            }
        }
        return {};
    }

    StepProcess run(const std::vector<std::string>& step, bool with_input)
    {
        steps.push_back(step);
        if (!runs_steps) {
            return {};
        }
        m_processes.push_back(start_local_step(step, with_input));
        return m_processes.back();
    }

    JobId add(const JobSpec& spec, JobState state, bool batch)
    {
        Job job;
        job.id = JobId{next_id++};
        job.name = spec.name;
        job.partition = spec.partition;
        job.comment = spec.comment;
        job.state = state;
        job.gpus = spec.gpus_per_node * spec.nodes;
        job.batch = batch;
        if (state == JobState::pending) {
            job.priority = 1;
        }
        if (spec.walltime.count() > 0) {
            job.walltime = spec.walltime;
        }
        jobs.push_back(job);
        return job.id;
    }

    std::vector<StepProcess> m_processes;
};

/// Accounting with contents set by the test.
class FakeAccounting : public Accounting, public UseRecords {
public:
    std::map<JobId, PastJob> past;
    std::vector<JobUse> uses;
    std::vector<std::string> known; ///< users and accounts, in addition to those in `uses`
    std::vector<JobId> requests;
    std::vector<UseQuestion> questions;
    std::map<std::string, std::vector<AccountGrants>> granted; ///< by user
    NodeHistory nodes;
    std::map<JobId, UseRecord> records; ///< single job records, independent of `uses`
    std::optional<Steps> asked_steps;
    bool silent = false;

    Result<NodeHistory> node_failures(Time, Time) override
    {
        return silent ? Result<NodeHistory>(
                            fail(Error::Kind::unreachable, "accounting does not answer"))
                      : nodes;
    }

    Result<std::vector<AccountGrants>> grants(const std::string& user) override
    {
        if (silent) {
            return fail(Error::Kind::unreachable, "the controller does not answer");
        }
        const auto found = granted.find(user);
        if (found == granted.end()) {
            return fail(Error::Kind::missing, "nobody knows an account of " + user);
        }
        return found->second;
    }

    /// Ignores the time range.
    Result<std::vector<JobUse>> use(const UseQuestion& question) override
    {
        questions.push_back(question);
        if (silent) {
            return fail(Error::Kind::unreachable, "accounting does not answer");
        }
        const auto has = [](const std::vector<std::string>& names, const std::string& name) {
            return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
        };
        for (const auto* const names : {&question.users, &question.accounts}) {
            for (const std::string& name : *names) {
                const bool is_used = std::any_of(uses.begin(), uses.end(), [&](const JobUse& one) {
                    return name == one.user || name == one.account;
                });
                if (!is_used && std::find(known.begin(), known.end(), name) == known.end()) {
                    return fail(Error::Kind::missing, "nobody knows " + name);
                }
            }
        }
        std::vector<JobUse> found;
        for (const JobUse& one : uses) {
            if (has(question.users, one.user) && has(question.accounts, one.account)) {
                found.push_back(one);
            }
        }
        return found;
    }

    Result<std::vector<UseRecord>> use_records(const UseQuestion& question, Steps steps) override
    {
        asked_steps = steps;
        TRY_ASSIGN(const std::vector<JobUse> found, use(question));
        std::vector<UseRecord> reported;
        for (const JobUse& one : found) {
            reported.push_back(records[one.id]);
            reported.back().use = one;
        }
        return reported;
    }

    Result<PastJob> past_job(JobId id) override
    {
        requests.push_back(id);
        if (silent) {
            return fail(Error::Kind::unreachable, "accounting does not answer");
        }
        const auto found = past.find(id);
        if (found == past.end()) {
            return fail(Error::Kind::missing, "no such job in accounting");
        }
        return found->second;
    }
};

} // namespace gpuq::fakes
