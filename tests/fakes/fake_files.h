// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/files.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace gpuq::fakes {

/// Files in memory, set by the test.
class FakeFiles : public Files {
public:
    struct Content {
        std::string bytes;
        Time modified;
    };
    std::map<std::string, std::map<std::string, Content>> directories; ///< by directory and path

    Result<std::vector<File>>
    changed_since(const std::string& directory, Time since,
                  const std::function<bool(std::string_view name)>& wanted) override
    {
        const auto found = directories.find(directory);
        if (found == directories.end()) {
            return fail(Error::Kind::missing, directory + ": none");
        }
        std::vector<File> files;
        for (const auto& [path, content] : found->second) {
            if (wanted(path.substr(path.rfind('/') + 1)) && content.modified >= since) {
                files.push_back({path, content.bytes.size(), content.modified});
            }
        }
        std::ranges::stable_sort(files, std::greater{}, &File::modified);
        return files;
    }

    Result<std::uint64_t> size(const std::string& directory, const std::string& path) override
    {
        const auto found = directories[directory].find(path);
        return found == directories[directory].end()
                   ? Result<std::uint64_t>(fail(Error::Kind::missing, path + ": none"))
                   : Result<std::uint64_t>(found->second.bytes.size());
    }

    Result<std::string> read_at(const std::string& directory, const std::string& path,
                                std::uint64_t offset, std::size_t size) override
    {
        const auto found = directories[directory].find(path);
        if (found == directories[directory].end()) {
            return fail(Error::Kind::missing, path + ": none");
        }
        const std::string& bytes = found->second.bytes;
        return bytes.substr(std::min<std::size_t>(offset, bytes.size()), size);
    }
};

} // namespace gpuq::fakes
