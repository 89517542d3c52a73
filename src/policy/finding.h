// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace gpuq::policy {

/// Something about a policy file that its author has to know.
struct Finding {
    enum class Weight {
        error,   ///< the file can not be used
        warning, ///< it can, and does not do what it seems to say
        note,    ///< what follows from it
    };
    Weight weight = Weight::error;
    int line = 0; ///< 0: of the whole file
    int column = 0;
    std::string code; ///< stable, for scripts: `unknown-name`
    std::string text; ///< for people
    bool operator==(const Finding&) const = default;
};

inline bool has_errors(const std::vector<Finding>& findings)
{
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.weight == Finding::Weight::error;
    });
}

/// `FILE:LINE:COLUMN: error: TEXT`, without what is 0.
std::string to_line(const Finding& finding, const std::string& file);

} // namespace gpuq::policy
