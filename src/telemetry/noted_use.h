// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

#include <optional>
#include <string>
#include <string_view>

/// What the GPUs of a job did, as it is noted in the job's comment, behind a blank. Pure.
namespace gpuq {

/// `busy=3541 idle=20 unknown=39`: GPU-seconds, which add up to those of `use`, rounded down.
std::string to_note(const GpuTime& use);

/// The figures behind the first blank of a job's comment; nothing when there are none. Anybody can
/// write comments for their own jobs: what is no such note, or could be of no job, is nothing.
std::optional<GpuTime> noted_use(std::string_view comment);

} // namespace gpuq
