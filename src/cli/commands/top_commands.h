// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "tui/app.h"

#include <string>
#include <vector>

namespace gpuq::cli {

/// The gpuq commands that the user gives in `gpuq top`, each executed as a child process. May be
/// used by several threads.
class TopCommands {
public:
    explicit TopCommands(Services& services)
        : m_services(services)
        , m_host(services.host())
    {
    }

    /// Executes a command: with its output captured as the message, or on the terminal, perhaps in
    /// a pager.
    tui::Done run(const tui::Command& command);
    /// The messages of a dry run, without the script that it prints.
    tui::Done try_out(const tui::Try& attempt);

private:
    Result<std::vector<std::string>> command_line(const std::vector<std::string>& of_gpuq);
    tui::Done captured(const std::vector<std::string>& arguments);
    /// The same for a command that starts a run and exits: reports its key.
    tui::Done started(std::vector<std::string> arguments);
    tui::Done on_terminal(const std::vector<std::string>& arguments, bool to_pager);

    Services& m_services;
    Host& m_host;
};

} // namespace gpuq::cli
