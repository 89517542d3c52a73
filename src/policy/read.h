// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "policy/finding.h"
#include "policy/policy.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::policy {

constexpr std::size_t k_most_bytes = 256 * 1024;

/// What a file says, as far as it can be understood, and everything that is wrong with it. The
/// policy is for use only when there is no error among the findings.
struct Reading {
    Policy policy;
    std::vector<Finding> findings; ///< in the order of the file
};

/// `file` only serves messages. `usage`, with its place, when the text is no YAML of the strict
/// kind that yaml/document.h reads, larger than 256 KiB, or of a version that is not known.
Result<Reading> read_policy(std::string_view text, const std::string& file);

} // namespace gpuq::policy
