// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/candidate.h"

#include "govern/plan.h"
#include "govern/values.h"
#include "policy/course_times.h"
#include "policy/lua.h"
#include "policy/objects.h"
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

/// As Slurm shows it.
std::string text_of(LocalMinutes time)
{
    return as_written(time) + ":00";
}

constexpr const char* k_time_after = "next"; ///< of a course that is on; no field of Slurm's

/// As Slurm has it now; false when it is over.
bool place_in_time(SlurmObject& course, const std::string& now)
{
    auto& fields = course.fields;
    const std::string first = fields["StartTime"];
    const int duration = static_cast<int>(as_number(fields["Duration"]).value_or(0));
    fields["StartTime"] = next_start(first, fields["Flags"], duration, now);
    if (!fields["Flags"].empty() && fields["StartTime"] <= now + ":00") {
        fields[k_time_after] = next_start(first, fields["Flags"], 0, now);
    }
    return !fields["StartTime"].empty();
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

Candidate placed_beside(const SlurmState& there, Candidate candidate)
{
    for (SlurmObject& object : candidate.objects) {
        auto after = object.fields.extract(k_time_after);
        if (object.kind != Kind::reservation || after.empty()) {
            continue;
        }
        const SlurmObject* const found = find(there.objects, Kind::reservation, object.name);
        const bool is_on =
            found != nullptr && found->fields.at("StartTime") == object.fields["StartTime"];
        if (!is_on) {
            object.fields["StartTime"] = after.mapped();
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
                                                    "tells all that is wrong",
                                                    to_line(*error, file)));
    }
    Candidate candidate{text, file, policy::objects_of(reading.policy),
                        policy::job_submit_lua(reading.policy),
                        policy::lua_version(reading.policy)};
    std::erase_if(candidate.objects, [&](SlurmObject& object) {
        return object.kind == Kind::reservation && !place_in_time(object, now);
    });
    return candidate;
}

} // namespace gpuq::govern
