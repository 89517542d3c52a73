// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace gpuq::policy {

/// Information about a policy file for its author.
struct Finding {
    enum class Weight {
        error,   ///< the file can't be used
        warning, ///< it can be used, but may not have the intended effect
        note,    ///< a consequence of the policy
    };
    Weight weight = Weight::error;
    int line = 0; ///< 0: the whole file
    int column = 0;
    std::string code; ///< stable, for scripts: `unknown-name`
    std::string text; ///< for users
    bool operator==(const Finding&) const = default;
};

inline bool has_errors(const std::vector<Finding>& findings)
{
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.weight == Finding::Weight::error;
    });
}

/// `FILE:LINE:COLUMN: error: TEXT`; line and column are left out if they are 0.
std::string to_line(const Finding& finding, const std::string& file);

} // namespace gpuq::policy
