// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The text of a slurm.conf, line by line, as Slurm reads it: without comments, continued lines
/// joined, values without quotes, keys in lower case.
namespace gpuq::govern {

struct ConfLine {
    int number = 0;      ///< of its first part, if it is continued
    std::string key;     ///< the first key: `partitionname`, `include`
    std::string value;   ///< of the first key
    std::string text;    ///< the whole line
    std::string comment; ///< the text after `#`
};

std::vector<ConfLine> lines_of(std::string_view conf);

/// The partitions in a line `PartitionName=...`. For a list, the unsplit list is included, too,
/// because releases differ in whether they split it.
std::vector<std::string> partitions_in(const ConfLine& line);

/// The file named by a line `include ...` in the file `from`; `%c` is replaced by `cluster`.
std::string included_file(const ConfLine& line, const std::string& from,
                          const std::string& cluster);

} // namespace gpuq::govern
