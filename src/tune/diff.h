// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq::tune {

/// The differences between two texts with the same number of lines, in the unified format with
/// three lines of context, as patch(1) reads it; empty if there are none.
std::string unified_diff(std::string_view before, std::string_view after,
                         const std::string& before_name, const std::string& after_name);

} // namespace gpuq::tune
