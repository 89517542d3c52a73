// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "io/private_dir.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuq::cli {

/// TensorBoard on a local socket in a private directory of this host, with links to event files,
/// and a gate (remote/gate.h) that keeps the connections to it. All of it ends with this object.
class TensorboardServer {
public:
    /// Makes the directory.
    static Result<TensorboardServer> make();
    TensorboardServer(TensorboardServer&& other) noexcept;
    TensorboardServer& operator=(TensorboardServer&&) = delete;
    ~TensorboardServer();

    /// Shows event files below `title`, in the directories that they have below `base`. Files that
    /// are shown already stay.
    Result<void> show(const std::string& title, const std::string& base,
                      const std::vector<std::string>& files);

    /// `environment`: NAME=VALUE. `supervisor`: the executable of the gate. `gate`: its name.
    /// `not_found` if there is no Python.
    Result<void> start(std::vector<std::string> environment, const std::string& supervisor,
                       const std::string& gate);

    /// Why TensorBoard has ended; nullopt while it runs. `not_found`: it is not installed.
    std::optional<Error> ended();

private:
    explicit TensorboardServer(PrivateDir directory)
        : m_directory(std::move(directory))
    {
    }
    std::string path(const std::string& name) const { return m_directory.path + "/" + name; }
    std::string last_line() const;

    PrivateDir m_directory;
    pid_t m_server = -1;
    pid_t m_gate = -1;
};

} // namespace gpuq::cli
