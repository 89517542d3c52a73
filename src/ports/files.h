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

/// What a person's programs leave in folders that gpuq knows little of. Reads only: regular files
/// of the calling user, no symbolic link followed below the folder that is named. Every call may
/// hang as long as the file system does: ask from Host::apart.
class Files {
public:
    struct File {
        std::string path; ///< from the folder on
        std::uint64_t bytes = 0;
        Time modified;
        bool operator==(const File&) const = default;
    };

    virtual ~Files() = default;

    /// Files whose names are wanted and that have changed since, the newest first. Of a large tree
    /// only what is near its top is looked at: 6 folders deep, 20,000 names, 64 files. `missing`
    /// and `io` of the folder itself; what can't be read below it is left out.
    virtual Result<std::vector<File>>
    changed_since(const std::string& folder, Time since,
                  const std::function<bool(std::string_view name)>& wanted) = 0;

    /// Size in bytes of a file below the folder.
    virtual Result<std::uint64_t> size(const std::string& folder, const std::string& path) = 0;

    /// Up to `size` bytes of a file below the folder, from `offset` on; shorter at its end.
    virtual Result<std::string> read_at(const std::string& folder, const std::string& path,
                                        std::uint64_t offset, std::size_t size) = 0;
};

} // namespace gpuq
