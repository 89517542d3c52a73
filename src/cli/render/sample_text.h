// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "runs/insight/samples.h"

#include <string>
#include <utility>
#include <vector>

/// Text and JSON of the samples of a run. Pure.
namespace gpuq::cli {

/// `87 % busy, 10.2 of 11.4 GiB, 143 W, 61 C`; `unknown (no NVIDIA driver on the node)`.
std::string gpu_text(const GpuSample& gpu);

/// `1.50 GPU-hours: 71.0 % busy, 22.0 % idle, 7.0 % unknown`.
std::string gpu_time_text(const GpuTime& time);

/// Names and texts of lines for users; not sanitised.
std::vector<std::pair<std::string, std::string>>
sample_lines(const std::vector<NodeSample>& samples, Time now);

report::Json samples_json(const std::vector<NodeSample>& samples);
/// In whole seconds that add up.
report::Json gpu_time_json(const GpuTime& time);

} // namespace gpuq::cli
