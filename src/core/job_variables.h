// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Environment variables that are not passed from the client to a run, because they refer to the
/// login host or to the job the client runs in. man gpuq-run, ENVIRONMENT OF THE PROGRAM, lists the
/// same rows; a test compares the two.
struct KeptBack {
    std::string_view what;  ///< the feature they belong to
    std::string_view names; ///< separated by blanks; a trailing `*` matches any suffix
};
std::span<const KeptBack> kept_back();

/// The variables (NAME=VALUE) of a client's environment that are passed to its jobs.
std::vector<std::string> variables_for_job(const std::vector<std::string>& environment);

} // namespace gpuq
