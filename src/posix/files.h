// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/files.h"

namespace gpuq {

/// Files of the local machine.
class PosixFiles : public Files {
public:
    Result<std::vector<File>>
    changed_since(const std::string& directory, Time since,
                  const std::function<bool(std::string_view name)>& wanted) override;
    Result<std::uint64_t> size(const std::string& directory, const std::string& path) override;
    Result<std::string> read_at(const std::string& directory, const std::string& path,
                                std::uint64_t offset, std::size_t size) override;
};

} // namespace gpuq
