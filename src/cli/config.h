// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cli/escape_keys.h"
#include "core/result.h"
#include "core/retention.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// What people and sites may set. Unset: gpuq's own default.
struct Settings {
    std::optional<std::string> state_dir; ///< `%u` stands for the user
    std::optional<std::string> cluster;   ///< as for --cluster
    std::optional<std::vector<std::string>>
        container;                 ///< words before a program, `{image}` in them
    std::optional<Retention> keep; ///< what `gpuq clean` leaves of ended runs
    std::optional<DetachKey> detach_key;
    std::optional<bool> direct; ///< no step of Slurm's where gpuq is on the run's own node
    std::optional<std::string> credentials_dir; ///< of runs' tickets, as state_dir; else in the run
    std::optional<std::string> aklog;           ///< executed after each renewal of a ticket
    std::optional<std::vector<std::string>> token_command; ///< prints a fresh bearer token
    std::optional<std::string> host;                       ///< as for --host
    std::optional<std::string> remote_program;             ///< gpuq's path there
    /// So long a verb there waits for a client that was cut off.
    std::optional<std::chrono::seconds> host_patience;

    bool operator==(const Settings&) const = default;
};

/// The settings of one configuration file. `usage` with file, line and column for what is wrong.
Result<Settings> settings_in(std::string_view text, const std::string& file);

/// Where settings come from, besides flags.
struct SettingSources {
    std::function<std::optional<std::string>(const std::string& name)> variable;
    /// The whole of a file; `missing` when there is none.
    std::function<Result<std::string>(const std::string& path)> file;
};

/// GPUQ_STATE_DIR, GPUQ_CLUSTER, GPUQ_CONTAINER, GPUQ_KEEP, GPUQ_DETACH_KEY,
/// GPUQ_DIRECT, GPUQ_CREDENTIALS_DIR, GPUQ_AKLOG, GPUQ_TOKEN_COMMAND, GPUQ_HOST, GPUQ_REMOTE,
/// GPUQ_HOST_PATIENCE, then
/// $XDG_CONFIG_HOME/gpuq/config.yaml (or
/// ~/.config/...), then /etc/gpuq/config.yaml: for each setting the first that has it. Empty
/// variables do not count. Every file that exists has to be right.
Result<Settings> load_settings(const SettingSources& sources);

constexpr const char* k_site_config = "/etc/gpuq/config.yaml";

} // namespace gpuq::cli
