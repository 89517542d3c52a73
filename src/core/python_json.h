// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace gpuq {

/// `text` with NaN, Infinity and -Infinity, which Python's json module writes but JSON does not
/// allow, replaced by `null`.
std::string json_of_python(std::string_view text);

} // namespace gpuq
