// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Environment variables that do not go along with a run: they name something of the login host or
/// of the job around the client. man gpuq-run, ENVIRONMENT OF THE PROGRAM, lists the same rows; a
/// test compares the two.
struct KeptBack {
    std::string_view what;  ///< what they belong to
    std::string_view names; ///< separated by blanks; one that ends in `*` stands for all such names
};
std::span<const KeptBack> kept_back();

/// The variables (NAME=VALUE) of a client's environment that its jobs get.
std::vector<std::string> variables_for_job(const std::vector<std::string>& environment);

} // namespace gpuq
