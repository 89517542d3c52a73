// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/cluster.h"
#include "slurm/compat.h"
#include "slurm/errors.h"
#include "slurm/job_request.h"
#include "slurm/jobs.h"
#include "slurm/launch.h"
#include "slurm/nodes.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

namespace gpuq {
namespace slurm {
namespace {

using namespace std::chrono_literals;

/// A node whose last job is still completing accepts no jobs, for tens of milliseconds up to three
/// seconds.
constexpr std::chrono::milliseconds k_pauses[] = {50ms, 100ms, 200ms, 400ms, 800ms, 1450ms};

struct FreeAllocation {
    void operator()(resource_allocation_response_msg_t* answer) const
    {
        slurm_free_resource_allocation_response_msg(answer);
    }
};

struct Answer {
    int code = 0; ///< SLURM_SUCCESS: the job is allocated
    JobId job;
    std::string output;
};

Answer allocate_once(job_desc_msg_t* message)
{
    const MessageCapture output{"allocate"};
    resource_allocation_response_msg_t* raw = nullptr;
    errno = 0;
    const int rc = slurm_allocate_resources(message, &raw);
    const int code = errno;
    const std::unique_ptr<resource_allocation_response_msg_t, FreeAllocation> response(raw);
    if (rc != SLURM_SUCCESS || !response) {
        return {code == SLURM_SUCCESS ? int(SLURM_UNEXPECTED_MSG_ERROR) : code, {}, output.text()};
    }
    const std::uint32_t job = job_id_of(*response);
    if (response->node_cnt == 0) { // queued after all: cancel it
        kill_job(std::to_string(job), SIGKILL);
        return {ESLURM_CAN_NOT_START_IMMEDIATELY, {}, output.text()};
    }
    return {SLURM_SUCCESS, JobId{job}, {}};
}

/// Asks a second time when no node is completing a job any more, but not more often: accounting
/// records every refused request as a failed job.
Answer allocate_patiently(job_desc_msg_t* message, const std::string& partition)
{
    Answer answer = allocate_once(message);
    if (answer.code != ESLURM_NODES_BUSY || !is_a_node_completing(partition)) {
        return answer;
    }
    for (const auto pause : k_pauses) {
        std::this_thread::sleep_for(pause);
        if (!is_a_node_completing(partition)) {
            break;
        }
    }
    return allocate_once(message);
}

/// One allocation or the reason for failure. If the response is lost, the job, if it was created,
/// is recognized by its comment.
Result<JobId> allocate(const JobSpec& spec)
{
    JobRequest request(spec);
    const Answer answer = allocate_patiently(request.allocation(), spec.partition);
    if (answer.code == SLURM_SUCCESS) {
        return answer.job;
    }
    const Error error =
        error_of(answer.code, Question::start, "Slurm did not start the job", answer.output);
    if (error.kind == Error::Kind::unreachable && !never_sent(answer.code)) {
        if (const auto granted = granted_with(spec.comment)) {
            return *granted;
        }
    }
    return error;
}

Result<StepProcess> start_step_of(JobId id, const Step& step)
{
    TRY_ASSIGN(const Launched launched,
               launch({{}, [&] { return Result<JobId>(id); }, [](JobId) {}}, step));
    return launched.process;
}

} // namespace
} // namespace slurm

Result<Cluster::Started> SlurmCluster::start_now(const JobSpec& spec,
                                                 const std::vector<std::string>& step,
                                                 bool with_input, const Before& before)
{
    const auto give_up = [](JobId id) { slurm::complete_job(id.value, 126U << 8); };
    TRY_ASSIGN(const slurm::Launched launched,
               slurm::launch({before, [&] { return slurm::allocate(spec); }, give_up},
                             {step, with_input}));
    return Started{launched.job, launched.process};
}

Result<StepProcess> SlurmCluster::start_step(JobId id, const std::vector<std::string>& step,
                                             bool with_input)
{
    return slurm::start_step_of(id, {step, with_input});
}

Result<StepProcess>
SlurmCluster::start_step_elsewhere(JobId id, const std::vector<std::string>& step, int nodes)
{
    return slurm::start_step_of(
        id, {step, /*with_input=*/false, /*first_node=*/1, /*nodes=*/nodes - 1});
}

void SlurmCluster::abandon(const StepProcess& process)
{
    slurm::orphan_step_of(process);
}

} // namespace gpuq
