// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "snapshots/manifest.h"

#include <optional>
#include <string>
#include <sys/stat.h>

namespace gpuq::snapshots {

struct RegularFile {
    std::string content;
    struct stat status; ///< before it was read
};

/// Reads a file below `directory`; nullopt if it is not a regular file or can't be read.
std::optional<RegularFile> read_regular_file(int directory, const std::string& path);

Stamp stamp_of(const struct stat& status);

} // namespace gpuq::snapshots
