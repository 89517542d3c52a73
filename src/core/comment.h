// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace gpuq {

/// Prefix of the comment of every job that gpuq submits.
inline constexpr std::string_view k_comment_prefix = "gpuq:";

/// The part of a job comment that was set at submission: everything up to the first blank, e.g.
/// `gpuq:KEY:2`. Notes appended when the job ends follow the blank (telemetry/noted_use.h).
constexpr std::string_view without_notes(std::string_view comment)
{
    return comment.substr(0, comment.find(' '));
}

} // namespace gpuq
