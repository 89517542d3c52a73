// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// ISO 8601 in UTC, as used in all files and JSON documents: `2026-11-20T13:11:58.042000Z`.
std::string to_iso8601(Time time);

/// Parses such a time, with zero to six fractional digits; nullopt for any other text.
std::optional<Time> time_from_iso8601(std::string_view text);

} // namespace gpuq
