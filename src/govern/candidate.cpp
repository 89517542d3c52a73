// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/candidate.h"

#include "govern/values.h"
#include "policy/lua.h"
#include "policy/objects.h"
#include "policy/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace gpuq::govern {
namespace {

using LocalMinutes = std::chrono::local_time<std::chrono::minutes>;
using Kind = SlurmObject::Kind;

LocalMinutes local_time_of(const std::string& text)
{
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    int hour = 0;
    int minute = 0;
    // policy/read.h has looked at it.
    (void)std::sscanf(text.c_str(), "%d-%u-%uT%d:%d", &year, &month, &day, &hour, &minute);
    return std::chrono::local_days(std::chrono::year(year) / std::chrono::month(month) /
                                   std::chrono::day(day)) +
           std::chrono::hours(hour) + std::chrono::minutes(minute);
}

std::string text_of(LocalMinutes time)
{
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const auto minutes = (time - day).count();
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:00", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       minutes / 60, minutes % 60);
}

bool is_workday(LocalMinutes time)
{
    return std::chrono::weekday(std::chrono::floor<std::chrono::days>(time)).iso_encoding() <= 5;
}

/// As Slurm has it now; false when it is over.
bool place_in_time(SlurmObject& course, const std::string& now)
{
    auto& fields = course.fields;
    const int duration = static_cast<int>(as_number(fields["Duration"]).value_or(0));
    fields["StartTime"] = next_start(fields["StartTime"], fields["Flags"], duration, now);
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
