// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/candidate.h"

#include "govern/plan.h"
#include "govern/values.h"
#include "policy/calendar.h"
#include "policy/course_times.h"
#include "policy/lua.h"
#include "policy/objects.h"
#include "policy/queue_partitions.h"
#include "policy/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace gpuq::govern {
namespace {

using policy::as_written;
using policy::is_workday;
using policy::local_time_of;
using policy::LocalMinutes;
using Kind = SlurmObject::Kind;

/// As displayed by Slurm.
std::string text_of(LocalMinutes time)
{
    return as_written(time) + ":00";
}

/// Sets the start to that of the current or next occurrence; false if the course is over.
bool place_in_time(SlurmObject& course, const std::string& now)
{
    auto& fields = course.fields;
    const int duration = static_cast<int>(as_number(fields["Duration"]).value_or(0));
    fields["StartTime"] = next_start(fields["StartTime"], fields["Flags"], duration, now);
    return !fields["StartTime"].empty();
}

LocalMinutes begin_of(const SlurmObject& course)
{
    return local_time_of(course.fields.at("StartTime"));
}

LocalMinutes end_of(const SlurmObject& course)
{
    return begin_of(course) +
           std::chrono::minutes(as_number(course.fields.at("Duration")).value_or(0));
}

/// For a course in progress: takes start and duration from an existing reservation that ends with
/// it; otherwise starts the rest of the course now or, if it repeats, moves it to its next
/// occurrence.
void place_beside(const SlurmObject* actual, SlurmObject& course, const std::string& now)
{
    auto& fields = course.fields;
    if (actual != nullptr && actual->fields.at("StartTime") == fields["StartTime"]) {
        return;
    }
    const LocalMinutes end = end_of(course);
    if (actual != nullptr && begin_of(*actual) <= local_time_of(now) && end_of(*actual) == end) {
        fields["StartTime"] = actual->fields.at("StartTime");
        fields["Duration"] = actual->fields.at("Duration");
    } else if (!fields["Flags"].empty()) {
        fields["StartTime"] = next_start(fields["StartTime"], fields["Flags"], 0, now);
    } else {
        fields["StartTime"] = text_of(local_time_of(now));
        fields["Duration"] = std::to_string((end - local_time_of(now)).count());
    }
}

constexpr std::string_view k_from = "# gpuq policy apply took this from: ";

} // namespace

std::string kept(const Candidate& candidate)
{
    std::string file = candidate.file;
    std::replace(file.begin(), file.end(), '\n', ' ');
    const bool ends = candidate.text.ends_with('\n');
    return fmt::format("{}{}{}{}\n", candidate.text, ends ? "" : "\n", k_from, file);
}

Result<Candidate> candidate_of_kept(const std::string& kept, const std::string& now)
{
    const auto at = kept.rfind(k_from);
    if (at == std::string::npos) {
        return candidate_of(kept, "policy.yaml", now);
    }
    const std::string name = kept.substr(at + k_from.size());
    return candidate_of(kept.substr(0, at), name.substr(0, name.find('\n')), now);
}

std::string next_start(const std::string& start, const std::string& flag, int duration,
                       const std::string& now)
{
    const LocalMinutes present = local_time_of(now);
    const std::chrono::minutes length(duration);
    LocalMinutes time = local_time_of(start);
    const std::chrono::days step(flag == "WEEKLY" ? 7 : 1);
    if (flag.empty()) {
        return time + length > present ? text_of(time) : "";
    }
    if (time + length <= present) {
        time += ((present - time - length) / step + 1) * step;
    }
    while (flag == "WEEKDAY" && !is_workday(time)) {
        time += step;
    }
    return text_of(time);
}

Candidate placed_next_to(const SlurmState& actual, Candidate candidate)
{
    for (SlurmObject& object : candidate.objects) {
        if (object.kind == Kind::reservation && begin_of(object) <= local_time_of(candidate.now)) {
            place_beside(find(actual.objects, Kind::reservation, object.name), object,
                         candidate.now);
        }
    }
    return candidate;
}

Result<Candidate> candidate_of(const std::string& text, const std::string& file,
                               const std::string& now)
{
    TRY_ASSIGN(const policy::Reading reading, policy::read_policy(text, file));
    const auto error = std::find_if(reading.findings.begin(), reading.findings.end(),
                                    [](const policy::Finding& finding) {
                                        return finding.weight == policy::Finding::Weight::error;
                                    });
    if (error != reading.findings.end()) {
        return fail(Error::Kind::usage, fmt::format("{}; nothing was changed. `gpuq policy check` "
                                                    "lists all errors",
                                                    to_line(*error, file)));
    }
    const policy::Policy policy = policy::policy_at(reading.policy, local_time_of(now));
    Candidate candidate;
    candidate.text = text;
    candidate.file = file;
    candidate.objects = policy::objects_of(policy);
    candidate.now = now;
    candidate.site = policy.site;
    candidate.has_queues = !policy.queues.empty();
    candidate.open_hours = policy::open_hours(reading.policy, local_time_of(now));
    for (const policy::Queue& queue : policy.queues) {
        for (const policy::QueuePartition& one : policy::partitions_of(policy, queue)) {
            if (one.closed) {
                candidate.closed.emplace(one.partition, one.pool->notice());
            }
        }
    }
    if (candidate.has_queues) {
        candidate.script = policy::job_submit_lua(policy);
        candidate.generated = candidate.script;
        candidate.version = policy::lua_version(policy);
    }
    std::erase_if(candidate.objects, [&](SlurmObject& object) {
        return object.kind == Kind::reservation && !place_in_time(object, now);
    });
    return candidate;
}

} // namespace gpuq::govern
