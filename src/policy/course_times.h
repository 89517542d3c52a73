// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <chrono>
#include <optional>
#include <string>

/// Computes when courses take place, in the local time of the controller. Pure.
namespace gpuq::policy {

using LocalMinutes = std::chrono::local_time<minutes>;

/// Converts a time such as `2026-11-03T13:00`, which policy/read.cpp has validated.
LocalMinutes local_time_of(const std::string& text);
/// `2026-11-03T13:00`.
std::string as_written(LocalMinutes time);

bool is_workday(LocalMinutes time);

/// The first time at which both take place, with all repetitions; nullopt if there is none.
std::optional<LocalMinutes> both_on(const Course& one, const Course& other);

} // namespace gpuq::policy
