// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"

#include <optional>
#include <string>

namespace gpuq {

/// All sources for the location of the state directory.
struct StateDirInputs {
    std::optional<std::string> flag;       ///< --state-dir
    std::optional<std::string> variable;   ///< GPUQ_STATE_DIR
    std::optional<std::string> config;     ///< state_dir in the configuration
    std::optional<std::string> state_home; ///< XDG_STATE_HOME
    std::string home;                      ///< from HOME, else the password database
    std::string user;                      ///< replaces %u in `config`
};

/// The state directory: the first one set of flag, variable, configuration, $XDG_STATE_HOME/gpuq,
/// ~/.local/state/gpuq. Empty values are ignored, and so is a relative XDG_STATE_HOME, as its
/// specification requires; any other relative path is `usage`.
Result<std::string> choose_state_dir(const StateDirInputs& arguments);

} // namespace gpuq
