// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/run.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Texts about runs for users. Not sanitised.
namespace gpuq {

/// `2 h`, `1 h 30 min`, `45 s`, `2 days 3 h`: the two largest units.
std::string describe(std::chrono::seconds duration);

/// `16:40`, with the date if it is not today's. Local time of this machine.
std::string clock_text(Time at, Time now);
/// The same in at most 11 columns: `11-28 16:40`; `2025-11-28` if it is half a year away or more.
std::string short_clock_text(Time at, Time now);

/// `16:40:07`, with the date if it is not today's.
std::string moment_text(Time at, Time now);

/// `11-28 16:40:07`: always as long.
std::string short_moment_text(Time at);
/// `2026-11-28 16:40:07`: always as long.
std::string full_moment_text(Time at);

/// Why a run ended, in one sentence without a full stop: `reached its time limit of 2 h`.
std::string ending_text(const Ending& ending, const Request& request);

/// Whether it failed: neither succeeded nor was stopped by its user or an operator.
bool is_failure(const Ending& ending);

/// Whether it was stopped because its GPUs were idle (runs/idle.h).
bool was_released(const Ending& ending);

/// The messages at the end of a run: none if it succeeded; else why it ended, the last lines of
/// output if it was killed, and the next command to type.
std::vector<std::string> farewell(const Run& run, JobId job, const Ending& ending,
                                  std::string_view last_lines);

} // namespace gpuq
