// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The text of a slurm.conf, line by line: comments gone, names of keys in lower case.
namespace gpuq::govern {

struct ConfLine {
    int number = 0;
    std::string key;     ///< of the first word: `partitionname`, `include`
    std::string value;   ///< of the first word
    std::string text;    ///< the whole line
    std::string comment; ///< behind `#`
};

std::vector<ConfLine> lines_of(std::string_view conf);

} // namespace gpuq::govern
