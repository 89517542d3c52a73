// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <optional>
#include <string>

namespace gpuq {

/// Everything that may say where the state folder is.
struct StateDirWords {
    std::optional<std::string> flag;       ///< --state-dir
    std::optional<std::string> variable;   ///< GPUQ_STATE_DIR
    std::optional<std::string> config;     ///< state_dir of the configuration
    std::optional<std::string> state_home; ///< XDG_STATE_HOME
    std::string home;                      ///< from HOME, else the password database
    std::string user;                      ///< what %u stands for in `config`
};

/// The state folder: the first of flag, variable, configuration, $XDG_STATE_HOME/gpuq,
/// ~/.local/state/gpuq. A relative XDG_STATE_HOME does not count, as its specification says;
/// any other relative path is `usage`. Empty values do not count.
Result<std::string> choose_state_dir(const StateDirWords& words);

} // namespace gpuq
