// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/jobs.h"

#include "core/comment.h"
#include "core/size.h"
#include "ports/job.h"
#include "slurm/cluster.h"
#include "slurm/command.h"
#include "slurm/compat.h"
#include "slurm/connection.h"
#include "slurm/errors.h"
#include "slurm/gres.h"
#include "slurm/job_request.h"
#include "slurm/sbatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace gpuq {
namespace slurm {
namespace {

// Without SHOW_LOCAL, each request is preceded by one about federations.
constexpr std::uint16_t k_show = SHOW_ALL | SHOW_LOCAL;

struct FreeJobs {
    void operator()(job_info_msg_t* jobs) const { slurm_free_job_info_msg(jobs); }
};
using Jobs = std::unique_ptr<job_info_msg_t, FreeJobs>;

struct FreeSteps {
    void operator()(job_step_info_response_msg_t* steps) const
    {
        slurm_free_job_step_info_response_msg(steps);
    }
};

struct FreeSubmitted {
    void operator()(submit_response_msg_t* answer) const
    {
        slurm_free_submit_response_response_msg(answer);
    }
};

std::string text(const char* value)
{
    return value == nullptr ? std::string() : std::string(value);
}

std::string first_host(const char* nodes)
{
    if (nodes == nullptr) {
        return {};
    }
    auto* const list = slurm_hostlist_create(nodes);
    char* const host = slurm_hostlist_shift(list);
    std::string name = text(host);
    std::free(host);
    slurm_hostlist_destroy(list);
    return name;
}

/// The value of one TRES in `cpu=4,mem=16G,node=1`; empty if absent.
std::string_view tres_value(std::string_view tres, std::string_view kind)
{
    while (!tres.empty()) {
        const std::string_view item = tres.substr(0, tres.find(','));
        if (item.size() > kind.size() && item.starts_with(kind) && item[kind.size()] == '=') {
            return item.substr(kind.size() + 1);
        }
        tres.remove_prefix(std::min(item.size() + 1, tres.size()));
    }
    return {};
}

bool is_set(std::uint32_t number)
{
    return number != NO_VAL && number != INFINITE;
}

/// Adds the GPUs in one of the strings of a request, multiplied by `times`.
void add_gpus(std::vector<RequestedGpus>& list, const char* tres, int times)
{
    for (const Gres& gres : parse_gres(text(tres))) {
        list.push_back({gres.model, gres.count * times});
    }
}

std::vector<RequestedGpus> requested_gpus(const slurm_job_info_t& info, int nodes)
{
    std::vector<RequestedGpus> list;
    const int tasks = is_set(info.num_tasks) ? std::max<int>(1, info.num_tasks) : nodes;
    add_gpus(list, info.tres_per_node, nodes);
    if (list.empty()) {
        add_gpus(list, info.tres_per_job, 1);
    }
    if (list.empty()) {
        add_gpus(list, info.tres_per_task, tasks);
    }
    if (list.empty()) {
        add_gpus(list, info.tres_per_socket, nodes); // at least one socket of each node
    }
    return list;
}

/// The shares of GPUs that a job requests on each node; nullopt if none, or several kinds.
std::optional<GpuShare> requested_share(const slurm_job_info_t& info, int nodes)
{
    std::optional<GpuShare> share;
    for (const auto kind : {GpuShare::Kind::shard, GpuShare::Kind::mps}) {
        int each = 0;
        for (const auto& [tres, parts] :
             {std::pair(info.tres_per_node, 1), std::pair(info.tres_per_job, nodes)}) {
            for (const Gres& gres : parse_gres(text(tres), word(kind))) {
                each = std::max(each, (gres.count + parts - 1) / parts);
            }
        }
        if (each > 0 && share) {
            return std::nullopt;
        }
        if (each > 0) {
            share = GpuShare{kind, each, {}, {}, {}};
        }
    }
    return share;
}

/// A short description of a request that gpuq does not match against nodes.
std::string other_wishes(const slurm_job_info_t& info, const JobSize& size)
{
    const auto has = [](const char* value) { return value != nullptr && *value != '\0'; };
    if (has(info.resv_name)) {
        return "a reservation";
    }
    if (has(info.features)) {
        return "node features";
    }
    if (has(info.licenses)) {
        return "licences";
    }
    const std::string each = text(info.tres_per_node);
    return size.gpus.empty() && !size.share && !each.empty()
               ? "generic resources other than whole GPUs"
               : "";
}

JobSize size_of(const slurm_job_info_t& info, JobState state)
{
    const std::string tres =
        text(state == JobState::pending ? info.tres_req_str : info.tres_alloc_str);
    JobSize size;
    size.nodes = is_set(info.num_nodes) ? std::max<int>(1, info.num_nodes) : 1;
    size.cpus = is_set(info.num_cpus) ? static_cast<int>(info.num_cpus) : 0;
    const auto memory = parse_memory_mib(tres_value(tres, "mem"));
    size.memory_mib = memory ? *memory : 0;
    size.gpus = requested_gpus(info, size.nodes);
    size.share = size.gpus.empty() ? requested_share(info, size.nodes) : std::nullopt;
    size.spreads = parse_gres(text(info.tres_per_node)).empty() && !size.share;
    size.whole_nodes = info.shared == 0; // JOB_SHARED_NONE
    size.only_nodes = text(info.req_nodes);
    size.excluded_nodes = text(info.exc_nodes);
    size.other = other_wishes(info, size);
    return size;
}

std::string called(const slurm_job_info_t& info)
{
    if (info.array_job_id != 0) {
        return info.array_task_str != nullptr
                   ? fmt::format("{}_[{}]", info.array_job_id, info.array_task_str)
               : is_set(info.array_task_id)
                   ? fmt::format("{}_{}", info.array_job_id, info.array_task_id)
                   : std::string();
    }
    if (info.het_job_id != 0) {
        return fmt::format("{}+{}", info.het_job_id, info.het_job_offset);
    }
    return {};
}

/// Replaces the patterns in a batch job's file name that libslurm leaves for slurmstepd: node,
/// task, step.
std::string with_node(std::string path, const std::string& host)
{
    for (std::size_t at = 0; (at = path.find('%', at)) != std::string::npos;) {
        const char letter = at + 1 < path.size() ? path[at + 1] : '\0';
        const std::string value = letter == 'N'                    ? host
                                  : letter == 'n' || letter == 't' ? "0"
                                  : letter == 's'                  ? "batch"
                                                                   : path.substr(at, 2);
        path.replace(at, 2, value);
        at += value.size();
    }
    return path;
}

/// As resolved by Slurm's own commands; `info` is not modified.
std::string file_of(void (*resolve)(char*, int, slurm_job_info_t*), const slurm_job_info_t& info)
{
    std::array<char, PATH_MAX> path{};
    auto copy = info;
    resolve(path.data(), static_cast<int>(path.size()), &copy);
    return with_node(path.data(), text(info.batch_host));
}

JobFiles files_of(const slurm_job_info_t& info)
{
    JobFiles files{text(info.command), text(info.work_dir), "", ""};
    if (info.batch_flag != 0) { // otherwise its output went to a terminal
        files.output = file_of(slurm_get_job_stdout, info);
        files.error = file_of(slurm_get_job_stderr, info);
        if (files.error.empty()) { // 26.05: the same file
            files.error = files.output;
        }
    }
    return files;
}

int gpus_of(const slurm_job_info_t& info)
{
    // TRES strings include GPUs only if the site accounts for them.
    if (const auto allocated = gpus_in_tres(text(info.tres_alloc_str))) {
        return *allocated;
    }
    if (const auto asked = gpus_in_tres(text(info.tres_req_str))) {
        return *asked;
    }
    int per_node = 0;
    for (const Gres& gres : parse_gres(text(info.tres_per_node))) {
        per_node += gres.count;
    }
    return per_node * static_cast<int>(info.num_nodes);
}

Job job_of(const slurm_job_info_t& info)
{
    Job job;
    job.id = JobId{info.job_id};
    job.name = text(info.name);
    job.partition = text(info.partition);
    job.comment = text(info.comment);
    job.state = state_of(info.job_state);
    job.reason = info.state_reason == WAIT_NO_REASON ? "" : reason_word(info.state_reason);
    job.submitted_at = time_of(info.submit_time);
    job.started_at = time_of(info.start_time);
    job.nodes = text(info.nodes);
    job.batch_host = info.batch_host == nullptr ? first_host(info.nodes) : text(info.batch_host);
    job.gpus = gpus_of(info);
    job.batch = info.batch_flag != 0;
    job.uid = info.user_id;
    job.called = called(info);
    job.size = size_of(info, job.state);
    job.files = files_of(info);
    job.account = text(info.account);
    job.qos = text(info.qos);
    if (info.time_limit != INFINITE && info.time_limit != NO_VAL) {
        job.walltime = std::chrono::minutes(info.time_limit);
    }
    if (job.state == JobState::pending) {
        job.priority = info.priority;
    } else if (is_over(job.state) || info.time_limit != INFINITE) { // else a year from start
        job.ends_at = time_of(info.end_time);
    }
    if (job.state == JobState::completing) {
        job.outcome = state_of(info.job_state & JOB_STATE_BASE);
    }
    if (is_over(state_of(info.job_state & JOB_STATE_BASE))) {
        job.exit_status = exit_status_of_wait(info.exit_code);
    }
    return job;
}

std::vector<std::string> hosts_in(const char* nodes)
{
    std::vector<std::string> names;
    auto* const list = slurm_hostlist_create(nodes);
    while (char* const host = slurm_hostlist_shift(list)) {
        names.emplace_back(host);
        std::free(host);
    }
    slurm_hostlist_destroy(list);
    return names;
}

/// From the strings that SHOW_DETAIL adds, one per node: `gpu:k80:2(IDX:0-1)`.
void set_held(Job& job, const slurm_job_info_t& info)
{
    if (info.nodes == nullptr || info.gres_detail_str == nullptr) {
        return;
    }
    const std::vector<std::string> hosts = hosts_in(info.nodes);
    for (std::size_t i = 0; i < std::min<std::size_t>(hosts.size(), info.gres_detail_cnt); ++i) {
        const std::string detail = text(info.gres_detail_str[i]);
        for (const Gres& gres : parse_gres(detail)) {
            job.held.whole.push_back({hosts[i], gres.model, gres.count});
        }
        for (HeldShares& shares : shares_of_job(detail, hosts[i])) {
            job.held.shares.push_back(std::move(shares));
        }
    }
}

/// False if the site hides other users' jobs (PrivateData=jobs), except from root and SlurmUser.
bool sees_jobs_of_others()
{
    return (slurm_conf.private_data & PRIVATE_DATA_JOBS) == 0 || ::getuid() == 0 ||
           ::getuid() == slurm_conf.slurm_user_id;
}

/// slurmctld keeps a record of every immediate request that it refused, although it never was a
/// job.
bool is_refused_request(const slurm_job_info_t& info)
{
    return (info.job_state & JOB_STATE_BASE) == JOB_FAILED && info.batch_flag == 0 &&
           (info.nodes == nullptr || *info.nodes == '\0') && info.start_time == info.end_time;
}

Result<Jobs> load_own()
{
    const MessageCapture capture{"own jobs"};
    job_info_msg_t* answer = nullptr;
    if (slurm_load_job_user(&answer, ::getuid(), k_show | SHOW_DETAIL) != SLURM_SUCCESS) {
        return error_of(errno, Question::other, "can't ask Slurm for your jobs", capture.text());
    }
    return Jobs(answer);
}

std::vector<Job> jobs_in(const job_info_msg_t& message)
{
    std::vector<Job> jobs;
    for (std::uint32_t i = 0; i < message.record_count; ++i) {
        if (!is_refused_request(message.job_array[i])) {
            jobs.push_back(job_of(message.job_array[i]));
            set_held(jobs.back(), message.job_array[i]);
        }
    }
    return jobs;
}

/// 0, or Slurm's error code.
int change_comment(JobId id, std::string comment)
{
    job_desc_msg_t message;
    slurm_init_job_desc_msg(&message);
    set_job_id(message, id.value);
    message.comment = comment.data();
    const MessageCapture capture{
        "change the comment of a job"}; // unused; keeps output off the terminal
    errno = 0;
    return slurm_update_job(&message) == SLURM_SUCCESS ? 0 : errno;
}

} // namespace

JobState state_of(std::uint32_t state)
{
    if ((state & JOB_COMPLETING) != 0) {
        return JobState::completing;
    }
    switch (state & JOB_STATE_BASE) {
    case JOB_PENDING:
        return JobState::pending;
    case JOB_RUNNING:
        return JobState::running;
    case JOB_SUSPENDED:
        return JobState::suspended;
    case JOB_COMPLETE:
        return JobState::completed;
    case JOB_CANCELLED:
        return JobState::cancelled;
    case JOB_FAILED:
        return JobState::failed;
    case JOB_TIMEOUT:
        return JobState::timeout;
    case JOB_NODE_FAIL:
        return JobState::node_fail;
    case JOB_PREEMPTED:
        return JobState::preempted;
    case JOB_BOOT_FAIL:
        return JobState::boot_fail;
    case JOB_DEADLINE:
        return JobState::deadline;
    case JOB_OOM:
        return JobState::out_of_memory;
    default:
        return JobState::unknown;
    }
}

int exit_status_of_wait(std::uint32_t wait_status)
{
    const int status = static_cast<int>(wait_status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::optional<Time> time_of(std::int64_t seconds)
{
    if (seconds <= 0 || seconds == NO_VAL || seconds == INFINITE) {
        return std::nullopt;
    }
    return Time(std::chrono::seconds(seconds));
}

std::optional<int> gpus_in_tres(std::string_view tres, std::string_view name)
{
    const std::string total = fmt::format("gres/{}=", name);
    while (!tres.empty()) {
        const std::string_view item = tres.substr(0, tres.find(','));
        if (item.starts_with(total)) {
            int count = 0;
            std::from_chars(item.data() + total.size(), item.data() + item.size(), count);
            return count;
        }
        tres.remove_prefix(std::min(item.size() + 1, tres.size()));
    }
    return std::nullopt;
}

Result<JobId> granted_with(const std::string& comment)
{
    TRY_ASSIGN(const Jobs jobs, load_own());
    for (const Job& job : jobs_in(*jobs)) {
        if (job.state == JobState::running && !job.batch && without_notes(job.comment) == comment) {
            return job.id;
        }
    }
    return fail(Error::Kind::missing, "no job with this comment");
}

} // namespace slurm

Result<std::vector<Job>> SlurmCluster::own_jobs()
{
    TRY_ASSIGN(const slurm::Jobs message, slurm::load_own());
    return slurm::jobs_in(*message);
}

Result<std::vector<Job>> SlurmCluster::own_jobs_within(std::chrono::seconds patience)
{
    slurm::load_configuration();
    const auto usual = slurm_conf.msg_timeout;
    slurm_conf.msg_timeout =
        std::min<std::uint16_t>(usual, static_cast<std::uint16_t>(patience.count()));
    auto jobs = own_jobs();
    slurm_conf.msg_timeout = usual;
    return jobs;
}

Result<AllJobs> SlurmCluster::all_jobs()
{
    const slurm::MessageCapture capture{"all jobs"};
    job_info_msg_t* answer = nullptr;
    if (slurm_load_jobs(0, &answer, slurm::k_show | SHOW_DETAIL) != SLURM_SUCCESS) {
        return slurm::error_of(errno, slurm::Question::other, "can't ask Slurm for its jobs",
                               capture.text());
    }
    const slurm::Jobs message(answer);
    return AllJobs{slurm::jobs_in(*message), slurm::sees_jobs_of_others()};
}

Result<Job> SlurmCluster::job(JobId id)
{
    const slurm::MessageCapture capture{"a job"};
    job_info_msg_t* answer = nullptr;
    if (slurm::load_job(&answer, id.value, slurm::k_show | SHOW_DETAIL) != SLURM_SUCCESS) {
        return slurm::error_of(errno, slurm::Question::other,
                               fmt::format("can't ask Slurm for job {}", id.value), capture.text());
    }
    const slurm::Jobs message(answer);
    std::vector<Job> jobs = slurm::jobs_in(*message);
    const auto exact =
        std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.id == id; });
    if (exact != jobs.end()) {
        return *exact;
    }
    if (!jobs.empty()) { // the tasks of an array
        return jobs.front();
    }
    return fail(Error::Kind::missing, fmt::format("Slurm does not know job {}", id.value));
}

Result<bool> SlurmCluster::has_first_step(JobId id)
{
    const slurm::MessageCapture capture{"the steps of a job"};
    job_step_info_response_msg_t* answer = nullptr;
    if (slurm::load_steps(&answer, id.value, slurm::k_show) != SLURM_SUCCESS) {
        return slurm::error_of(errno, slurm::Question::other,
                               fmt::format("can't ask Slurm for the steps of job {}", id.value),
                               capture.text());
    }
    const std::unique_ptr<job_step_info_response_msg_t, slurm::FreeSteps> message(answer);
    const job_step_info_t* const steps = message->job_steps;
    return std::any_of(steps, steps + message->job_step_count,
                       [](const job_step_info_t& step) { return step.step_id.step_id == 0; });
}

Result<JobId> SlurmCluster::submit(const JobSpec& spec, const std::string& script,
                                   const std::vector<std::string>& environment)
{
    if (spec.by_sbatch) {
        return slurm::submit_by_sbatch(spec, script, environment);
    }
    slurm::JobRequest request(spec);
    const slurm::MessageCapture capture{"submit a batch job"};
    submit_response_msg_t* answer = nullptr;
    errno = 0;
    const int rc = slurm_submit_batch_job(request.batch(script, environment), &answer);
    const std::unique_ptr<submit_response_msg_t, slurm::FreeSubmitted> response(answer);
    if (rc == SLURM_SUCCESS && response) {
        return JobId{slurm::job_id_of(*response)};
    }
    return slurm::error_of(errno, slurm::Question::submit, "Slurm did not take the job",
                           capture.text());
}

Result<void> SlurmCluster::cancel(JobId id)
{
    return cancel_called(std::to_string(id.value));
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static)
Result<void> SlurmCluster::cancel_called(const std::string& called)
{
    const slurm::MessageCapture capture{"cancel a job"};
    if (slurm::kill_job(called, SIGKILL) == SLURM_SUCCESS || slurm::means_ended(errno)) {
        return {};
    }
    return slurm::error_of(errno, slurm::Question::other,
                           fmt::format("can't cancel job {}", called), capture.text());
}

Result<void> withdraw(const std::vector<JobId>& jobs, std::chrono::milliseconds limit)
{
    std::vector<std::string> arguments{"scancel", "--quiet", "--state=PENDING"};
    for (const JobId job : jobs) {
        arguments.push_back(std::to_string(job.value));
    }
    TRY(slurm::run_command(std::move(arguments), limit));
    return {};
}

Result<void> SlurmCluster::set_walltime(JobId id, std::chrono::minutes walltime)
{
    job_desc_msg_t message;
    slurm_init_job_desc_msg(&message);
    slurm::set_job_id(message, id.value);
    message.time_limit = static_cast<std::uint32_t>(walltime.count());
    const slurm::MessageCapture capture{"change the time limit of a job"};
    if (slurm_update_job(&message) == SLURM_SUCCESS) {
        return {};
    }
    return slurm::error_of(errno, slurm::Question::other,
                           fmt::format("can't change the time limit of job {}", id.value),
                           capture.text());
}

Result<void> SlurmCluster::note(JobId id, const std::string& comment)
{
    if (!slurm::has_accounting() || !slurm::keeps_comments()) {
        return {};
    }
    const int error = slurm::change_comment(id, comment);
    if (slurm::means_ended(error)) {
        return note_in_accounting(id, comment);
    }
    return error == 0
               ? Result<void>()
               : slurm::error_of(error, slurm::Question::other,
                                 fmt::format("can't record the usage of job {}", id.value), "");
}

Result<void> SlurmCluster::complete(JobId id, int exit_status)
{
    const slurm::MessageCapture capture{"complete a job"};
    // As an exit status, even for 128+N: Slurm reports a signal in the status as a launch failure.
    const auto wait_status = static_cast<std::uint32_t>(exit_status & 0xff) << 8;
    if (slurm::complete_job(id.value, wait_status) == SLURM_SUCCESS || slurm::means_ended(errno)) {
        return {};
    }
    return slurm::error_of(errno, slurm::Question::other, fmt::format("can't end job {}", id.value),
                           capture.text());
}

} // namespace gpuq
