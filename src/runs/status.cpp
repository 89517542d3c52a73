// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/status.h"

#include "ports/accounting.h"
#include "runs/queues/queues.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace gpuq {
namespace {

/// Slurm's times are whole seconds, and the clocks of two hosts differ.
constexpr std::chrono::seconds k_clock_slack{5};

int number(ExitStatus status)
{
    return static_cast<int>(status);
}

const Event* last_event(const Evidence& evidence, Event::Kind kind)
{
    const auto found = std::find_if(evidence.journal.rbegin(), evidence.journal.rend(),
                                    [&](const Event& event) { return event.kind == kind; });
    return found == evidence.journal.rend() ? nullptr : &*found;
}

bool is_running_allocation(const Evidence& evidence)
{
    const auto* job = std::get_if<Job>(&evidence.slurm);
    return job != nullptr && job->state == JobState::running && !job->batch;
}

/// The last time at which the run is known to have been alive.
Time last_sign_of_life(const Evidence& evidence)
{
    Time last = evidence.key.made_at();
    if (evidence.job) {
        last = std::max(last, evidence.job->submitted_at);
    }
    if (evidence.heartbeat) {
        last = std::max(last, evidence.heartbeat->at);
    }
    for (const Event& event : evidence.journal) {
        last = std::max(last, event.at);
    }
    return last;
}

std::string by_whom(const StopRequest& stop)
{
    return stop.by.empty() ? std::string() : "by " + stop.by;
}

/// Slurm cancels a job that depends on a run (`--after`) which did not end well; accounting then
/// has neither a user nor a reason.
bool could_never_start(const Evidence& evidence, std::optional<std::uint32_t> cancelled_by)
{
    if (const auto* job = std::get_if<Job>(&evidence.slurm)) {
        return job->reason == "DependencyNeverSatisfied";
    }
    return evidence.run && evidence.run->request.after && !cancelled_by &&
           !had_supervisor(evidence);
}

Ending stopped_or_cancelled(const Evidence& evidence, std::optional<std::uint32_t> by, Time at)
{
    if (evidence.stop && evidence.stop->at <= at + k_clock_slack) {
        return {number(ExitStatus::stopped), Cause::stopped, by_whom(*evidence.stop), at};
    }
    if (could_never_start(evidence, by)) {
        const auto after = evidence.run ? evidence.run->request.after : std::nullopt;
        return {number(ExitStatus::internal), Cause::not_started,
                fmt::format("{}, which it was to follow, did not succeed",
                            after ? fmt::format("run {}", after->value) : "the run"),
                at};
    }
    const std::string who = !by ? "" : *by == 0 ? "by root" : fmt::format("by user id {}", *by);
    return {number(ExitStatus::stopped), Cause::cancelled, who, at};
}

std::string last_line_of(std::string_view text)
{
    constexpr std::size_t k_longest = 300;
    text = text.substr(0, text.find_last_not_of("\r\n \t") + 1);
    text.remove_prefix(text.find_last_of('\n') + 1); // npos + 1 is 0
    return sanitised(text.substr(0, k_longest));
}

/// For FAILED jobs. The job's exit status is the program's if the supervisor lived to pass it on.
Ending failed(const Evidence& evidence, std::optional<int> exit_status, Time at)
{
    const int status = exit_status.value_or(number(ExitStatus::lost));
    const std::string last_line = last_line_of(evidence.slurm_log);
    if (!had_supervisor(evidence) &&
        evidence.link > LinkNumber{1}) { // the previous links could start
        return {number(ExitStatus::lost), Cause::lost,
                "its job failed without a record" +
                    (last_line.empty() ? last_line : ": " + last_line),
                at};
    }
    if (!had_supervisor(evidence) && !last_line.empty()) {
        return {number(ExitStatus::internal), Cause::not_started,
                "its supervisor left no record, but its job printed: " + last_line, at};
    }
    if (!had_supervisor(evidence)) {
        // "Signal 53": Slurm could not start the script.
        return {status > 128 ? number(ExitStatus::internal) : status, Cause::not_started,
                "its supervisor left no record; do the nodes see the state directory?", at};
    }
    if (status == number(ExitStatus::lost) || status > 128) {
        return {number(ExitStatus::lost), Cause::lost, "its supervisor died", at};
    }
    return {status, Cause::finished, "as reported by Slurm; its supervisor could not write", at};
}

/// As counted by the supervisor.
std::optional<std::uint64_t> memory_kills_in(const Evidence& evidence)
{
    const Event* end = last_event(evidence, Event::Kind::ended);
    std::optional<std::uint64_t> kills = end != nullptr ? end->to : std::nullopt;
    if (!kills) {
        for (const Event& event : evidence.journal) {
            if (event.kind == Event::Kind::memory_kill) {
                kills = kills.value_or(0) + event.to.value_or(1);
            }
        }
    }
    return kills;
}

/// Sets the queue from Slurm's partition. If that belongs to none of the run's queues, an operator
/// has moved the job: the partition is used unless it is a list.
void set_queue(RunStatus& status, const std::string& partition)
{
    if (const std::string queue = queue_of(status.queue, partition); !queue.empty()) {
        status.queue = queue;
    } else if (!partition.empty() && partition.find(',') == std::string::npos) {
        status.queue = partition;
    }
}

/// The end of the link as its supervisor has recorded it; supervisors of older versions did not.
std::optional<Time> recorded_end(const std::vector<Event>& journal)
{
    const auto found = std::find_if(journal.rbegin(), journal.rend(), [](const Event& event) {
        return event.kind == Event::Kind::limit_changed ||
               event.kind == Event::Kind::supervisor_started;
    });
    return found == journal.rend() ? std::nullopt : end_of_link(*found);
}

RunStatus blank(const Evidence& evidence)
{
    RunStatus status{evidence.key};
    status.run = evidence.run;
    status.queue = evidence.run ? evidence.run->request.queue : "";
    if (const auto* job = std::get_if<Job>(&evidence.slurm);
        status.run && !status.run->request.chain && job != nullptr && job->walltime) {
        status.run->request.walltime = *job->walltime; // it may have been changed since
    }
    status.memory_kills = memory_kills_in(evidence);
    status.link = evidence.link;
    status.job = evidence.job;
    status.stop = evidence.stop;
    status.next_job = evidence.next ? std::optional(evidence.next->job) : std::nullopt;
    status.first_job = evidence.first_job ? std::optional(evidence.first_job->job) : std::nullopt;
    status.links = evidence.links;
    if (status.links.empty()) {
        status.links.push_back(link_past(evidence.link, evidence.journal));
    }
    if (const Event* event = last_event(evidence, Event::Kind::supervisor_started)) {
        status.started_at = event->at;
        status.host = event->host.value_or("");
        status.address = event->address.value_or("");
        set_queue(status, event->detail.value_or(""));
    }
    if (status.run && status.run->request.chain) {
        if (status.started_at) {
            status.ends_at = recorded_end(evidence.journal)
                                 .value_or(*status.started_at +
                                           length_of(*status.run->request.chain, status.link));
        }
        return status;
    }
    if (status.started_at && status.run && status.run->request.walltime.count() > 0) {
        status.ends_at = *status.started_at + status.run->request.walltime;
    }
    return status;
}

RunStatus ended(const Evidence& evidence, std::optional<Ending> ending)
{
    RunStatus status = blank(evidence);
    status.state = RunState::ended;
    status.ending = std::move(ending);
    return status;
}

RunStatus unknown(const Evidence& evidence, std::string why)
{
    RunStatus status = blank(evidence);
    status.state = RunState::unknown;
    status.why_unknown = std::move(why);
    return status;
}

RunStatus running(const Evidence& evidence)
{
    RunStatus status = blank(evidence);
    status.state = RunState::running;
    return status;
}

RunStatus ended_by_journal(const Evidence& evidence, const Event& event)
{
    Ending ending{event.status.value_or(number(ExitStatus::lost)),
                  event.cause.value_or(Cause::lost), event.detail.value_or(""), event.at};
    RunStatus status = ended(evidence, std::move(ending));
    status.last_lines = event.tail.value_or("");
    return status;
}

/// No source could be queried.
RunStatus without_answer(const Evidence& evidence, Time now, const std::string& why)
{
    if (!evidence.job && now - evidence.key.made_at() < k_never_submitted) {
        RunStatus status = blank(evidence);
        status.state = RunState::submitting;
        return status;
    }
    return unknown(evidence, why);
}

RunStatus from_accounting(const Evidence& evidence, Time now)
{
    const Ending lost{number(ExitStatus::lost), Cause::lost,
                      "neither Slurm nor its accounting knows the job", now};
    if (const auto* past = std::get_if<PastJob>(&evidence.past); past && is_over(past->state)) {
        RunStatus status =
            ended(evidence, ending_from_slurm(evidence, past->state, past->exit_status,
                                              past->cancelled_by, past->ended_at.value_or(now)));
        if (!status.started_at && past->started_at < past->ended_at) {
            status.started_at = past->started_at;
        }
        return status;
    }
    if (std::holds_alternative<NoSuchJob>(evidence.past)) {
        return ended(evidence, lost);
    }
    // The job is gone, but accounting, which may be late or not responding, may still have the
    // cause.
    const std::chrono::seconds patience = std::holds_alternative<PastJob>(evidence.past)
                                              ? k_forgotten_patience
                                              : k_accounting_patience;
    const bool waited_enough = !std::holds_alternative<NotAsked>(evidence.past) &&
                               now - last_sign_of_life(evidence) > patience;
    return ended(evidence, waited_enough ? std::optional(lost) : std::nullopt);
}

RunStatus not_in_slurm(const Evidence& evidence, Time now)
{
    if (evidence.job) {
        return from_accounting(evidence, now);
    }
    if (now - evidence.key.made_at() < k_never_submitted) {
        return without_answer(evidence, now, "");
    }
    if (evidence.stop) {
        return ended(evidence, Ending{number(ExitStatus::stopped), Cause::stopped,
                                      by_whom(*evidence.stop), evidence.stop->at});
    }
    return ended(evidence,
                 Ending{number(ExitStatus::lost), Cause::lost, "never reached Slurm", now});
}

RunStatus waiting(const Evidence& evidence, const Job& job)
{
    RunStatus status = blank(evidence);
    status.state = RunState::waiting;
    status.reason = job.reason;
    status.expected_start = job.started_at;
    return status;
}

RunStatus running_by_slurm(const Evidence& evidence, const Job& job)
{
    RunStatus status = running(evidence);
    set_queue(status, job.partition);
    status.started_at = status.started_at ? status.started_at : job.started_at;
    status.ends_at = job.ends_at ? job.ends_at : status.ends_at;
    status.suspended = job.state == JobState::suspended;
    status.host = status.host.empty() ? job.batch_host : status.host;
    return status;
}

RunStatus submitting(const Evidence& evidence)
{
    RunStatus status = blank(evidence);
    status.state = RunState::submitting;
    status.job.reset();
    return status;
}

RunStatus from_job(const Evidence& evidence, const Job& job, Time now)
{
    if (job.state == JobState::pending) {
        return waiting(evidence, job);
    }
    if (job.state == JobState::unknown) {
        return unknown(evidence, "Slurm reports a state that this gpuq does not know");
    }
    if (!is_over(job.state)) {
        return running_by_slurm(evidence, job);
    }
    if (may_be_asked_for_again(evidence, now)) {
        return submitting(evidence);
    }
    if (const auto* past = std::get_if<PastJob>(&evidence.past); past && is_over(past->state)) {
        return from_accounting(evidence, now);
    }
    RunStatus status =
        ended(evidence, ending_from_slurm(evidence, job.state, job.exit_status, std::nullopt,
                                          std::min(job.ends_at.value_or(now), now)));
    if (!status.started_at && !job.nodes.empty()) { // otherwise it never left the queue
        status.started_at = job.started_at;
    }
    return status;
}

template <typename... Cases>
struct Overload : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

/// For a link that ended according to Slurm without recording how: the next link determines that
/// when it starts. Nothing if there is no next link, or no longer.
std::optional<RunStatus> handed_on(const Evidence& evidence)
{
    const auto* next = std::get_if<Job>(&evidence.next_slurm);
    const auto* job = std::get_if<Job>(&evidence.slurm);
    const bool is_gone = std::holds_alternative<NoSuchJob>(evidence.slurm);
    const auto* past = std::get_if<PastJob>(&evidence.past);
    const bool was_cancelled = past != nullptr && past->state == JobState::cancelled;
    const bool lost = (is_gone && !was_cancelled) ||
                      (job != nullptr && is_over(job->state) && job->state != JobState::cancelled);
    if (const auto* none = std::get_if<NoAnswer>(&evidence.next_slurm); none && lost) {
        return unknown(evidence, none->why);
    }
    if (next == nullptr || is_over(next->state) || !lost) {
        return std::nullopt;
    }
    return next->state == JobState::pending ? waiting(evidence, *next)
                                            : running_by_slurm(evidence, *next);
}

} // namespace

RunStatus conclude(const Evidence& evidence, Time now)
{
    const Event* const end = last_event(evidence, Event::Kind::ended);
    if (end == nullptr && !evidence.ended && evidence.next &&
        !(evidence.heartbeat && is_fresh(*evidence.heartbeat, now))) {
        if (auto status = handed_on(evidence)) {
            return *std::move(status);
        }
    }
    if (end != nullptr && !end->continues) {
        return ended_by_journal(evidence, *end);
    }
    if (end != nullptr && !evidence.ended) { // the next link could not be submitted
        if (evidence.stop) {
            return ended(evidence, Ending{number(ExitStatus::stopped), Cause::stopped,
                                          by_whom(*evidence.stop), evidence.stop->at});
        }
        RunStatus status = blank(evidence);
        status.state = RunState::waiting;
        status.reason = k_no_next_link;
        return status;
    }
    if (evidence.ended) {
        return ended(evidence, evidence.ended);
    }
    if (evidence.heartbeat && is_fresh(*evidence.heartbeat, now)) {
        return running(evidence);
    }
    if (!evidence.trouble.empty()) {
        return without_answer(evidence, now, evidence.trouble);
    }
    return std::visit(
        Overload{
            [&](const NotAsked&) { return without_answer(evidence, now, "Slurm was not asked"); },
            [&](const NoAnswer& none) { return without_answer(evidence, now, none.why); },
            [&](const NoSuchJob&) { return not_in_slurm(evidence, now); },
            [&](const Job& job) { return from_job(evidence, job, now); },
        },
        evidence.slurm);
}

bool may_be_asked_for_again(const Evidence& evidence, Time now)
{
    const auto* job = std::get_if<Job>(&evidence.slurm);
    return job != nullptr && job->state == JobState::failed && !evidence.job_recorded &&
           !had_supervisor(evidence) && !evidence.stop &&
           now - evidence.key.made_at() < k_never_submitted;
}

bool has_ended_on_disk(const Evidence& evidence)
{
    const Event* const end = last_event(evidence, Event::Kind::ended);
    return evidence.ended || (end != nullptr && !end->continues);
}

bool had_supervisor(const Evidence& evidence)
{
    return evidence.heartbeat || last_event(evidence, Event::Kind::supervisor_started) != nullptr;
}

bool needs_slurm(const Evidence& evidence, Time now)
{
    return !has_ended_on_disk(evidence) &&
           !(evidence.heartbeat && is_fresh(*evidence.heartbeat, now));
}

bool needs_accounting(const Evidence& evidence)
{
    if (has_ended_on_disk(evidence) || !evidence.job) {
        return false;
    }
    if (const auto* job = std::get_if<Job>(&evidence.slurm)) {
        // Slurm itself reports every cause except who cancelled a job.
        return job->state == JobState::cancelled && !evidence.stop;
    }
    return std::holds_alternative<NoSuchJob>(evidence.slurm);
}

bool needs_step(const Evidence& evidence, Time now)
{
    const auto* job = std::get_if<Job>(&evidence.slurm);
    return is_running_allocation(evidence) && needs_slurm(evidence, now) &&
           (had_supervisor(evidence) ||
            (job->started_at && now - *job->started_at > k_no_supervisor &&
             now - evidence.key.made_at() > k_no_supervisor));
}

bool is_abandoned(const Evidence& evidence, Time now)
{
    return needs_step(evidence, now) && evidence.step_is_over;
}

Ending ending_from_slurm(const Evidence& evidence, JobState state, std::optional<int> exit_status,
                         std::optional<std::uint32_t> cancelled_by, Time at)
{
    switch (state) {
    case JobState::completed:
        if (!had_supervisor(evidence) && evidence.link > LinkNumber{1}) {
            return {number(ExitStatus::lost), Cause::lost, "its job ended without a record", at};
        }
        return {exit_status.value_or(0), Cause::finished, "", at};
    case JobState::failed:
        return failed(evidence, exit_status, at);
    case JobState::cancelled:
        return stopped_or_cancelled(evidence, cancelled_by, at);
    case JobState::timeout:
    case JobState::deadline:
        return {number(ExitStatus::time_limit), Cause::time_limit, "", at};
    case JobState::node_fail:
    case JobState::boot_fail:
        return {number(ExitStatus::lost), Cause::node_failed, "", at};
    case JobState::preempted:
        return {number(ExitStatus::lost), Cause::preempted, "", at};
    case JobState::out_of_memory:
        return {128 + 9, Cause::memory, "", at};
    default:
        return {number(ExitStatus::lost), Cause::lost, "", at};
    }
}

std::string_view word(RunState state)
{
    switch (state) {
    case RunState::submitting:
        return "submitting";
    case RunState::waiting:
        return "waiting";
    case RunState::running:
        return "running";
    case RunState::ended:
        return "ended";
    case RunState::unknown:
        return "unknown";
    }
    return "unknown";
}

} // namespace gpuq
