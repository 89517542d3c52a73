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

/// The contents of a file, as far as they are valid, and all findings. The policy may be used only
/// if there is no error among them.
struct Reading {
    Policy policy;
    std::vector<Finding> findings; ///< in the order of the file
};

/// `file` is only used in messages. `usage`, with the position, if the text is not in the strict
/// subset of YAML that yaml/document.h accepts, or is larger than 256 KiB.
Result<Reading> read_policy(std::string_view text, const std::string& file);

} // namespace gpuq::policy
