// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/render/training_text.h"
#include "report/json.h"
#include "report/table.h"
#include "runs/status.h"
#include "telemetry/advice.h"
#include "telemetry/profile.h"

#include <optional>
#include <string>
#include <vector>

/// Text and JSON of the GPU usage of a run. Pure; not sanitised.
namespace gpuq::cli {

struct WholeProfile {
    RunStatus status;
    std::optional<telemetry::Profile> profile; ///< unset: the run has not started
    GpuTime gpu_time;
    WholeTraining training;
    std::vector<std::string> warnings;
};

/// GPU time in whole seconds that add up: total, busy, idle with its parts, unknown.
struct SplitTime {
    std::chrono::seconds all{0}, busy{0}, idle{0}, unknown{0};
    std::array<std::chrono::seconds, telemetry::k_phases> phases{};
};
SplitTime split(const WholeProfile& whole);

std::vector<telemetry::ProfileAdvice> advice_of(const WholeProfile& whole);

/// The part, 0 to 1, of the time of all GPUs or nodes of the run for which the measure is known.
double known_part(const WholeProfile& whole, telemetry::Measure measure);

/// `62`, `10.2`: with the number of decimals that suits the measure.
std::string value_text(telemetry::Measure measure, double value);

/// `07:50:00 to 07:59:00 on node1, 2 GPUs (k80), 3 links`.
std::string life_text(const WholeProfile& whole, Time now);

/// One row per known measure: measure, unit, min, mean, p95, max, known.
report::Table measures_table(const WholeProfile& whole);
/// One row per GPU, if there are several: gpu, busy, memory, power, temperature.
report::Table gpus_table(const WholeProfile& whole);
/// One row per link.
report::Table links_table(const WholeProfile& whole, Time now);

/// Measures without any known value, by reason: `unknown: GPU power, GPU clock (not measured by
/// this GPU)`.
std::vector<std::string> unknown_lines(const WholeProfile& whole);
/// Why there is no data; empty if there is some.
std::string nothing_text(const WholeProfile& whole);

/// The lines above and below the table.
std::vector<std::string> profile_head(const WholeProfile& whole, Time now);
std::vector<std::string> profile_foot(const WholeProfile& whole);

report::Json::Members profile_document(const WholeProfile& whole, Time now);

} // namespace gpuq::cli
