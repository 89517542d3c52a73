// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "core/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq {

/// Read access to files of a user's programs in directories that gpuq does not manage: regular
/// files of the calling user; symbolic links below the named directory are not followed. Every call
/// can block as long as the file system does: use Host::apart.
class Files {
public:
    struct File {
        std::string path; ///< relative to the directory
        std::uint64_t bytes = 0;
        Time modified;
        bool operator==(const File&) const = default;
    };

    virtual ~Files() = default;

    /// Files accepted by `wanted` and modified since `since`, newest first. The search is limited
    /// to 6 directory levels, 20,000 names and 64 files. `missing` and `io` refer to the directory
    /// itself; unreadable entries below it are skipped.
    virtual Result<std::vector<File>>
    changed_since(const std::string& directory, Time since,
                  const std::function<bool(std::string_view name)>& wanted) = 0;

    /// Size in bytes of a file below the directory.
    virtual Result<std::uint64_t> size(const std::string& directory, const std::string& path) = 0;

    /// Up to `size` bytes of a file below the directory, from `offset`; fewer at the end of the
    /// file.
    virtual Result<std::string> read_at(const std::string& directory, const std::string& path,
                                        std::uint64_t offset, std::size_t size) = 0;
};

} // namespace gpuq
