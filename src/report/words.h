// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/run.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What happens to runs, in words for people. None of it is sanitised yet.
namespace gpuq {

/// `2 h`, `1 h 30 min`, `45 s`, `2 days 3 h`: the two largest units.
std::string in_words(std::chrono::seconds duration);

/// `16:40`, with the date when it is not today's. Local time of this machine.
std::string clock_text(Time at, Time now);

/// `16:40:07`, with the date when it is not today's.
std::string moment_text(Time at, Time now);

/// Why a run ended, in one sentence without a full stop: `reached its time limit of 2 h`.
std::string ending_in_words(const Ending& ending, const Request& request);

/// It was stopped since its GPUs were idle (runs/idle.h).
bool was_released(const Ending& ending);

/// What to say at the end of a run: nothing when it went well; else why it ended, the last lines
/// of output when something killed it, and the next command to type.
std::vector<std::string> farewell(const Run& run, JobId job, const Ending& ending,
                                  std::string_view last_lines);

} // namespace gpuq
