// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/base/verb.h"
#include "cli/host/ssh_config.h"

#include <optional>
#include <string>
#include <vector>

/// `gpuq code`: an editor on this machine, connected to a run by ssh.
namespace gpuq::cli {

/// The command line of `gpuq code`.
struct Editing {
    std::string run = "last";
    std::string directory;  ///< on the node, absolute; empty: none
    std::string editor;     ///< empty: the first installed one
    std::string ssh_config; ///< absolute; empty: ~/.ssh/config
    bool yes = false;       ///< change ssh_config without asking
    bool json = false;
    bool operator==(const Editing&) const = default;
};

/// `usage` for an unknown editor, a relative path, or too many arguments.
Result<Editing> editing_from(const Options& options, const std::vector<std::string>& arguments);

/// The names of a run for an editor: its id, the name that the user called it by, and its key,
/// which no other run can have.
std::vector<std::string> editor_names(std::string id, const std::string& called, const RunKey& key);

/// Writes the lines for ssh into a file of the run's own, beside ssh_config, which must include it:
/// if ssh does not find the run there, offers to add the line. Then opens the editor, or prints how
/// to. Executes ssh -G and the editor. `usage`: ssh does not find the run; `io`.
Result<int> open_editor(const Editing& editing, const SshHost& host);

/// The address that an editor opens a directory of a host by; without a directory, its home. Empty
/// for an unknown editor.
std::string editor_url(const std::string& editor, const std::string& host,
                       const std::string& directory);

} // namespace gpuq::cli
