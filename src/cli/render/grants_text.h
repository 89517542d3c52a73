// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/accounting.h"
#include "report/json.h"
#include "report/table.h"

#include <string>
#include <vector>

/// Text, CSV and JSON of the remaining granted GPU time. Pure. Unknown values are never shown as
/// numbers.
namespace gpuq::cli {

/// The result of `gpuq usage --left`.
struct GrantsLeft {
    std::string user;
    std::vector<AccountGrants> accounts;
};

/// One row per limit; `no limit` for an account without one, `not shown` for limits that Slurm
/// hides.
report::Table grants_table(const GrantsLeft& grants);

/// RFC 4180 with a header line; GPU-seconds, with an empty field for an unknown number.
std::string grants_csv(const GrantsLeft& grants);

/// For --json.
report::Json::Members grants_document(const GrantsLeft& grants);

} // namespace gpuq::cli
