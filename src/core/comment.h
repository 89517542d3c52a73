// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace gpuq {

/// How the comment of a job begins that gpuq has submitted.
inline constexpr std::string_view k_comment_prefix = "gpuq:";

/// What a job was submitted with of its comment, up to the first blank: `gpuq:KEY:2`. What follows
/// was noted at its end (telemetry/noted_use.h).
constexpr std::string_view without_notes(std::string_view comment)
{
    return comment.substr(0, comment.find(' '));
}

} // namespace gpuq
