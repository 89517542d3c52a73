// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/plain_jobs.h"

#include "core/comment.h"
#include "core/layout.h"
#include "core/number.h"
#include "ports/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace gpuq {
namespace {

using namespace std::chrono_literals;

constexpr auto k_recent = 24h;
/// Exit status 53, in the form used for signals: Slurm could not start the script.
constexpr int k_could_not_start = 128 + 53;

/// A key that sorts by submission time and is the same in each query. No run has this key.
RunKey key_of(const Job& job, Time now)
{
    const std::uint32_t id = job.id.value;
    const auto byte = [id](unsigned shift) { return static_cast<unsigned char>(id >> shift); };
    return RunKey::make(job.submitted_at.value_or(now),
                        {byte(24), byte(16), byte(8), byte(0), 0, 0, 0, 0});
}

std::string model_of(const Job& job)
{
    if (!job.held.whole.empty()) {
        return job.held.whole.front().model;
    }
    return job.size.gpus.empty() ? "" : job.size.gpus.front().model;
}

int gpus_of(const Job& job)
{
    int count = 0;
    for (const RequestedGpus& gpus : job.size.gpus) {
        count += gpus.count;
    }
    return job.gpus > 0 ? job.gpus : count;
}

/// Converts Slurm's job data to a gpuq request. Unevenly distributed GPUs count as one node's.
Request request_of(const Job& job)
{
    Request request;
    request.name = job.name;
    request.work_dir = job.files.work_dir;
    if (!job.files.script.empty()) {
        request.program = {job.files.script};
    }
    request.walltime = job.walltime.value_or(0min);
    request.queue = job.partition;
    request.nodes = std::max(1, job.size.nodes);
    if (job.size.share) {
        request.gpus.share = job.size.share;
        return request;
    }
    request.gpus.count = gpus_of(job);
    if (request.gpus.count % request.nodes != 0) {
        request.nodes = 1;
    }
    request.gpus.count /= request.nodes;
    if (const std::string model = model_of(job); !model.empty()) {
        request.gpus.model = model;
    }
    return request;
}

Ending ending_of(const Job& job, const RunKey& key, Time now)
{
    const Time at = std::min(job.ends_at.value_or(now), now);
    const int status = job.exit_status.value_or(static_cast<int>(ExitStatus::lost));
    if (job.state == JobState::failed && status == k_could_not_start) {
        return {static_cast<int>(ExitStatus::internal), Cause::not_started,
                "Slurm could not start it: its working directory or its output file is not usable "
                "on the node",
                at};
    }
    if (job.state == JobState::failed) {
        return {status, status > 128 ? Cause::crashed : Cause::finished, "", at};
    }
    if (job.state == JobState::cancelled) {
        return {static_cast<int>(ExitStatus::stopped), Cause::cancelled, "", at};
    }
    Evidence none{key};
    return ending_from_slurm(none, job.state, job.exit_status, std::nullopt, at);
}

RunState state_of(const Job& job)
{
    switch (job.state) {
    case JobState::pending:
        return RunState::waiting;
    case JobState::running:
    case JobState::suspended:
    case JobState::completing:
        return RunState::running;
    case JobState::unknown:
        return RunState::unknown;
    default:
        return RunState::ended;
    }
}

/// True if a list of array task ids in Slurm's form, `1,4-9,20-30:5%2`, contains `task`. A list
/// truncated by Slurm (`...`) may contain any task.
bool has_task(std::string_view list, std::uint64_t task)
{
    if (list.find("...") != list.npos) {
        return true;
    }
    list = list.substr(0, list.find('%'));
    while (!list.empty()) {
        std::string_view item = list.substr(0, list.find(','));
        list.remove_prefix(std::min(item.size() + 1, list.size()));
        std::uint64_t step = 1;
        if (const auto colon = item.find(':'); colon != item.npos) {
            step = std::max<std::uint64_t>(1, whole_number(item.substr(colon + 1)).value_or(1));
            item = item.substr(0, colon);
        }
        const auto dash = item.find('-');
        const auto first = whole_number(item.substr(0, dash));
        const auto last = dash == item.npos ? first : whole_number(item.substr(dash + 1));
        if (first && last && task >= *first && task <= *last && (task - *first) % step == 0) {
            return true;
        }
    }
    return false;
}

/// `20` for `20_3`, `20_[4-9]` and `20+1`.
std::string_view leader(std::string_view called)
{
    return called.substr(0, called.find_first_of("_+"));
}

} // namespace

bool is_of_a_run(Store& store, const Job& job)
{
    const auto key = key_in_comment(job.comment);
    return key && store.size(layout::run_json(*key));
}

RunStatus plain_status(const OwnJob& own, const std::string& cluster, Time now)
{
    const Job& job = own.job;
    RunStatus status{key_of(job, now)};
    status.plain = job;
    status.run = Run{status.key};
    status.run->cluster = cluster;
    status.run->submitted_at = job.submitted_at.value_or(now);
    status.run->request = request_of(job);
    status.job = LinkJob{cluster, job.id, status.run->submitted_at, job.batch};
    status.state = state_of(job);
    status.queue = job.partition;
    status.host = job.batch_host;
    status.suspended = job.state == JobState::suspended;
    if (status.state == RunState::waiting) {
        status.reason = job.reason;
        status.expected_start = job.started_at;
        status.estimate = own.estimate;
        return status;
    }
    if (!job.nodes.empty()) {
        status.started_at = job.started_at;
    }
    if (status.state == RunState::ended) {
        status.ending = ending_of(job, status.key, now);
    } else {
        status.ends_at = job.ends_at;
    }
    if (status.state == RunState::unknown) {
        status.why_unknown = "Slurm reports a state that this gpuq does not know";
    }
    return status;
}

std::vector<RunStatus> plain_statuses(Store& store, const std::vector<OwnJob>& jobs,
                                      const std::string& cluster, Time now)
{
    std::vector<RunStatus> list;
    for (const OwnJob& own : jobs) {
        const bool is_old =
            is_over(own.job.state) && own.job.ends_at && now - *own.job.ends_at > k_recent;
        // gpuq has refused the run, whose job could never start.
        const bool is_withdrawn =
            is_over(own.job.state) && own.job.nodes.empty() && key_in_comment(own.job.comment);
        if (!is_old && !is_withdrawn && !is_of_a_run(store, own.job)) {
            list.push_back(plain_status(own, cluster, now));
        }
    }
    std::sort(list.begin(), list.end(),
              [](const RunStatus& one, const RunStatus& other) { return one.key > other.key; });
    return list;
}

bool spells_a_job(std::string_view word)
{
    const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
    const auto id = whole_number(word.substr(0, digits));
    if (!id || *id == 0 || *id > UINT32_MAX) {
        return false;
    }
    std::string_view part = word.substr(digits);
    if (part.empty()) {
        return true;
    }
    const bool is_array = part.front() == '_';
    if (!is_array && part.front() != '+') {
        return false;
    }
    part.remove_prefix(1);
    if (is_array && part.size() > 2 && part.front() == '[' && part.back() == ']') {
        return part.substr(1, part.size() - 2).find_first_not_of("0123456789,-:%") == part.npos;
    }
    return whole_number(part).has_value();
}

bool is_called(const Job& job, std::string_view word)
{
    const std::string id = std::to_string(job.id.value);
    if (word == id || word == job.called) {
        return true;
    }
    if (job.called.empty() || leader(word) != leader(job.called)) {
        return false;
    }
    const std::string_view part = word.substr(leader(word).size());
    if (part.empty()) {
        return true;
    }
    const std::string_view own = std::string_view(job.called).substr(leader(word).size());
    const auto task = part.starts_with('_') ? whole_number(part.substr(1)) : std::nullopt;
    if (task && own.starts_with("_[")) {
        return has_task(own.substr(2, own.size() - 3), *task);
    }
    if (part.starts_with("_[") && own.starts_with('_')) {
        const auto mine = whole_number(own.substr(1));
        return mine ? has_task(part.substr(2, part.size() - 3), *mine) : true;
    }
    return false;
}

} // namespace gpuq
