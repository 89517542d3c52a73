// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "core/ids.h"
#include "core/result.h"

#include <optional>
#include <string>

namespace gpuq {

class Store;

namespace cli {

/// The job that a run with `--after WORD` waits for: the newest one of the run, or the plain job,
/// that the word refers to. Nothing if that has already ended well. `usage` if nothing would start
/// after it: it has failed, it is of another cluster, or it is a chain, whose last job is not known
/// yet.
Result<std::optional<JobId>> job_to_await(Services& services, Store& store,
                                          const std::string& word);

} // namespace cli
} // namespace gpuq
