// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"
#include "policy/reader.h"
#include "yaml/document.h"

#include <string>
#include <vector>

/// The parts of read_policy(): each function reads one section of the file and records the errors
/// in it in the reader; the value is then incomplete.
namespace gpuq::policy {

// read_times.cpp

/// The value of `when`: one map or a list of them. Empty after an error.
Hours when_in(Reader& reader, const yaml::Node& node);
/// A date with a time, as accepted by scontrol(1): `2026-11-03T13:00`. Empty after an error.
std::string local_time_in(Reader& reader, const yaml::Node& node);

// read_queue.cpp

/// A queue with its limits, access, calendar and rules. `place` is the position of its name.
Queue queue_in(Reader& reader, const std::string& name, const yaml::Node& place,
               const yaml::Node& node);

// read_sweeps.cpp

/// Adds queue `sweeps`, which the section of this name stands for, after the file's other queues;
/// in pools that are not lent, it gives way
/// to their jobs within the soft limits.
void add_sweep_queue(Reader& reader, Policy& policy, const yaml::Node& node);

// read_site.cpp

/// The objects that the site manages itself.
Site site_in(Reader& reader, const yaml::Node& node);

// read_tests.cpp

/// The file's own tests.
std::vector<Case> tests_in(Reader& reader, const yaml::Node& node);

} // namespace gpuq::policy
