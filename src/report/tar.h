// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"

#include <string>
#include <vector>

namespace gpuq::report {

struct ArchiveFile {
    std::string name; ///< relative; fewer than 100 bytes
    std::string content;
};

/// A tar archive (ustar) of files that only their owner may read.
std::string tar_of(const std::vector<ArchiveFile>& files, Time at);

} // namespace gpuq::report
