// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"
#include "ports/host.h"

#include <map>

namespace gpuq {

/// The local machine. `apart` forks: call it only while the process is single-threaded.
class PosixHost : public Host {
public:
    Result<DirectoryFacts> directory(const std::string& path) override;
    bool hold(const std::string& name) override;
    Result<Descriptor> connect_to(const std::vector<std::string>& names) override;
    std::optional<std::string> program(const std::string& name) override;
    using Host::run;
    Result<Ended> run(const std::vector<std::string>& arguments, Heard heard) override;
    Result<int> run_here(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& pager) override;
    Result<void> leave_running(const std::vector<std::string>& arguments) override;
    Result<void> leave_running(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& variables,
                               std::chrono::seconds limit) override;
    std::vector<Answer> apart(const std::vector<std::function<std::string()>>& work,
                              std::chrono::milliseconds limit) override;

private:
    std::map<std::string, Descriptor> m_held;
};

} // namespace gpuq
