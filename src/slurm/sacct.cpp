// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm/sacct.h"

#include "core/timestamp.h"
#include "slurm/command.h"
#include "slurm/errors.h"
#include "slurm/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

namespace gpuq::slurm {
namespace {

/// slurmdbd sends a few thousand jobs per second.
constexpr std::chrono::minutes k_patience{5};

/// The submit time is first, for submitted_since.
constexpr std::string_view k_columns = "Submit,JobID,User,Account,Partition,State,Eligible,Start,"
                                       "End,Elapsed,Timelimit,ReqTRES,AllocTRES";

/// `2026-11-20T13:11:58`, as printed by sacct in UTC.
std::string moment(Time time)
{
    return to_iso8601(time).substr(0, 19);
}

} // namespace

std::vector<std::string> sacct_command(Time since)
{
    return {"sacct",
            "--allusers",
            "--allocations",
            "--parsable2",
            "--noconvert",
            fmt::format("--starttime={}", moment(since)),
            fmt::format("--format={}", k_columns)};
}

std::string submitted_since(const std::string& text, Time since)
{
    const std::string from = moment(since);
    std::string kept;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        // Times have the same length and sort as text; the header and `Unknown` are not times.
        const std::string_view submitted = line.substr(0, from.size());
        if (kept.empty() || (submitted >= from && submitted < "A")) {
            kept.append(line).append("\n");
        }
    }
    return kept;
}

Result<std::string> jobs_since(Time since)
{
    TRY(needs_accounting());
    // Repeated or skipped hours of local time would distort waits.
    const auto answer = run_command(sacct_command(since), k_patience, {}, {"TZ=UTC0"});
    if (!answer) {
        return fail(Error::Kind::unreachable, answer.error().text);
    }
    if (answer->status != 0) {
        return fail(Error::Kind::unreachable,
                    fmt::format("Slurm's accounting does not answer: {}", tidy(answer->err)));
    }
    return submitted_since(answer->out, since);
}

} // namespace gpuq::slurm
