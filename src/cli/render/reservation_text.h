// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "report/json.h"
#include "report/table.h"
#include "runs/queues/reservations.h"

#include <string>
#include <string_view>
#include <vector>

/// Text and JSON of reservations. Pure; not sanitised.
namespace gpuq::cli {

/// Parses the start of a reservation: `now`, `14:00` (the next one), `2026-12-07T13:00` or
/// `2026-12-07`, `2h` (from now). `usage` for anything else, and for a time in the past.
Result<Time> parse_start(std::string_view text, Time now);

/// `8 GPUs on class[1-2]: reserved until 16:00 by ada (ml) for bob, carol, dan and 17 others`.
std::string reservation_line(const ReservedGpus& reserved, Time now);

/// `reserved until 16:00 by ada (ml)`.
std::string reserved_text(const Reservation& reservation, Time now);

/// Columns name, by, from, until, gpus, nodes, for.
report::Table reservation_table(const std::vector<ReservedGpus>& reserved, Time now);

/// For --json.
report::Json reservations_json(const std::vector<ReservedGpus>& reserved, Time now);
report::Json::Members reservation_document(const std::vector<ReservedGpus>& reserved, Time now);

} // namespace gpuq::cli
