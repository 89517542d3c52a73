// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq {

/// ISO 8601 in UTC, as used in all files and JSON documents: `2026-11-20T13:11:58.042000Z`.
std::string to_iso8601(Time time);

/// Parses such a time, with zero to six fractional digits; nullopt for any other text.
std::optional<Time> time_from_iso8601(std::string_view text);

/// Parses a time on the clock of this process: `2026-12-24`, `2026-12-24T18:00` or
/// `2026-12-24T18:00:30`. nullopt for any other text, and for a date that does not exist. A time
/// that the change to daylight saving time skips is the end of the skipped hour.
std::optional<Time> time_from_local(std::string_view text);
/// The same for a broken-down time; `tm_isdst` and the day of the week do not matter.
std::optional<Time> time_from_local(std::tm local);

} // namespace gpuq
