// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/host.h"

namespace gpuq {

/// This machine. `apart` forks: call it while the process has one thread.
class PosixHost : public Host {
public:
    Result<FolderFacts> folder(const std::string& path) override;
    std::optional<std::string> program(const std::string& name) override;
    std::vector<Answer> apart(const std::vector<std::function<std::string()>>& work,
                              std::chrono::milliseconds limit) override;
};

} // namespace gpuq
