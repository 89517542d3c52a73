// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::supervisor {

/// Packs texts of arbitrary bytes into one, and unpacks them: the result format of helper
/// processes. A truncated text yields the complete fields before the truncation.
std::string packed_fields(const std::vector<std::string>& fields);
std::vector<std::string> fields_in(std::string_view packed);

} // namespace gpuq::supervisor
