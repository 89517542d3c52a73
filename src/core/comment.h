// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace gpuq {

/// Prefix of the comment of every job that gpuq submits.
inline constexpr std::string_view k_comment_prefix = "gpuq:";

/// The end of the comment of a sweep's worker: `gpuq:KEY:sweep`, `gpuq:KEY:2:sweep`.
inline constexpr std::string_view k_worker_suffix = ":sweep";

/// The part of a job comment that was set at submission: everything up to the first blank. Notes
/// appended when the job ends follow the blank (telemetry/noted_use.h).
constexpr std::string_view without_notes(std::string_view comment)
{
    return comment.substr(0, comment.find(' '));
}

/// The part that is job_comment() of a run and its link: `gpuq:KEY:2`.
constexpr std::string_view link_in_comment(std::string_view comment)
{
    comment = without_notes(comment);
    return comment.substr(0, comment.size() -
                                 (comment.ends_with(k_worker_suffix) ? k_worker_suffix.size() : 0));
}

/// The command that submitted a job, according to its comment, which users can set as well.
enum class Submitter { other, run, sweep };

constexpr Submitter submitter_in(std::string_view comment)
{
    return !comment.starts_with(k_comment_prefix)              ? Submitter::other
           : without_notes(comment).ends_with(k_worker_suffix) ? Submitter::sweep
                                                               : Submitter::run;
}

} // namespace gpuq
