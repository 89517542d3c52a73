// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// ISO 8601 in UTC, as in every file and JSON document: `2026-11-20T13:11:58.042000Z`.
std::string to_iso8601(Time time);

/// The time that `text` spells, with none to six digits after the second; nothing for any other
/// text.
std::optional<Time> time_from_iso8601(std::string_view text);

} // namespace gpuq
