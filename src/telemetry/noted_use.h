// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "telemetry/sample.h"

#include <optional>
#include <string>
#include <string_view>

/// The GPU use of a job as noted in the job's comment, after a blank. Pure.
namespace gpuq {

/// `busy=3541 idle=20 unknown=39`: GPU-seconds, whose sum is that of `use`, rounded down.
std::string to_note(const GpuTime& use);

/// The figures after the first blank of a job's comment; nothing if there are none. Users can write
/// any comment to their own jobs: other texts and impossible numbers give nothing.
std::optional<GpuTime> noted_use(std::string_view comment);

} // namespace gpuq
