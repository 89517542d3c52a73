// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "report/json.h"
#include "runs/insight/training.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Text and JSON of a run's training. Pure; not sanitised.
namespace gpuq::cli {

struct WholeTraining {
    Training training;
    std::optional<Finish> finish;
    std::vector<TrainingAlarm> alarms;
};

double gpu_hours_of(const Request& request, std::chrono::seconds time);

/// Fields of `gpuq show`: names and texts.
std::vector<std::pair<std::string_view, std::string>>
training_fields(const WholeTraining& whole, const RunStatus& status, Time now);

/// For --json: its progress, and the measures it reports. Null if nothing is known.
report::Json progress_json(const WholeTraining& whole, const RunStatus& status, Time now);
report::Json training_json(const WholeTraining& whole, Time now);

} // namespace gpuq::cli
