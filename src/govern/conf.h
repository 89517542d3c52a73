// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The text of a slurm.conf, line by line, as Slurm reads it: comments gone, lines that go on put
/// together, values without their quotes, names of keys in lower case.
namespace gpuq::govern {

struct ConfLine {
    int number = 0;      ///< of its first line
    std::string key;     ///< the first: `partitionname`, `include`
    std::string value;   ///< of the first
    std::string text;    ///< the whole line
    std::string comment; ///< behind `#`
};

std::vector<ConfLine> lines_of(std::string_view conf);

/// The partitions of a line `PartitionName=...`: of a list the list as it stands, too, as releases
/// differ in whether they cut it.
std::vector<std::string> partitions_in(const ConfLine& line);

/// The file of a line `include ...` in the file `from`; `%c` is the cluster.
std::string included_file(const ConfLine& line, const std::string& from,
                          const std::string& cluster);

} // namespace gpuq::govern
