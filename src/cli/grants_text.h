// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/cluster.h"
#include "report/json.h"
#include "report/table.h"

#include <string>
#include <vector>

/// What is left of granted GPU time, as people and scripts are shown it. Pure. Nothing unknown is
/// shown as a number.
namespace gpuq::cli {

/// All that `gpuq usage --left` found out.
struct GrantsLeft {
    std::string user;
    std::vector<AccountGrants> accounts;
};

/// A row for each limit; `no limit` for an account without, `not shown` for what Slurm hides.
report::Table grants_table(const GrantsLeft& grants);

/// RFC 4180 with a header; in GPU-seconds, with an empty field where there is no number.
std::string grants_csv(const GrantsLeft& grants);

/// For --json.
report::Json::Members grants_document(const GrantsLeft& grants);

} // namespace gpuq::cli
