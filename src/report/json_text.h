// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuq::report {

/// The text that a JSON document of another gpuq has as this member; nothing if it has none, or is
/// no document.
std::optional<std::string> text_member(std::string_view document, std::string_view name);

} // namespace gpuq::report
