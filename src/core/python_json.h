// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq {

/// The text with `null` for the NaN, Infinity and -Infinity that Python's json module writes and
/// JSON does not know.
std::string json_of_python(std::string_view text);

} // namespace gpuq
