// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuq::supervisor {

/// Texts of any bytes as one, and back: what a helper process hands over. A torn one gives the
/// whole texts before the tear.
std::string packed_fields(const std::vector<std::string>& fields);
std::vector<std::string> fields_in(std::string_view packed);

} // namespace gpuq::supervisor
