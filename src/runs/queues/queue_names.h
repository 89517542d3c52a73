// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace gpuq {

/// Whether two lists of queues, separated by commas, have one in common: a pending job may name
/// several (Job::partition).
bool share_a_queue(std::string_view one, std::string_view other);

} // namespace gpuq
