// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "core/retention.h"
#include "term/escape_keys.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::cli {

/// How a client may connect to a run, besides a Slurm step.
enum class Direct {
    no,
    node,    ///< on the run's own node, by a local socket
    network, ///< also over the network
};

/// Which runs get a snapshot of their code.
enum class SnapshotPolicy {
    automatic, ///< chains, sweeps, and runs that wait in the queue
    always,    ///< every run, except shells
    never,
};

/// The colours of `gpuq top`.
enum class ColourTheme {
    automatic, ///< as many as the terminal has
    basic,     ///< the 16 of the terminal's own theme
    palette,   ///< also gradients, of a palette of 256
    direct,    ///< also gradients, of 24-bit colours
};

/// Settings of users and sites. Unset: gpuq's own default.
struct Settings {
    std::optional<std::string> state_dir; ///< `%u` expands to the user's name
    std::optional<std::string> cluster;   ///< as for --cluster
    std::optional<std::vector<std::string>>
        container;                 ///< command in front of a program, with `{image}` in it
    std::optional<Retention> keep; ///< which ended runs `gpuq clean` keeps
    std::optional<DetachKey> detach_key;
    std::optional<Direct> direct;
    std::optional<std::chrono::seconds> handover; ///< age of a run at its handover
    std::optional<std::string> credentials_dir;   ///< as state_dir, for runs' tickets
    std::optional<std::string> aklog;             ///< executed after each renewal of a ticket
    std::optional<std::vector<std::string>> token_command; ///< prints a fresh bearer token
    std::optional<std::string> host;                       ///< as for --host
    std::optional<std::string> remote_program;             ///< path of gpuq on the host
    /// How long a verb on the host waits for a client that was cut off.
    std::optional<std::chrono::seconds> host_patience;
    std::optional<SnapshotPolicy> snapshot;
    std::optional<std::string> transport;           ///< to the host: `auto`, `libssh` or `openssh`
    std::optional<std::vector<std::string>> notify; ///< command for events of runs (notices.h)
    std::optional<ColourTheme> theme;
    /// Where a service of the site writes an overview for all users, or k_no_overview_dir.
    std::optional<std::string> overview_dir;

    bool operator==(const Settings&) const = default;
};

/// Parses one configuration file. `usage` with file, line and column of an error.
Result<Settings> settings_in(std::string_view text, const std::string& file);

/// Sources of settings other than options.
struct SettingSources {
    std::function<std::optional<std::string>(const std::string& name)> variable;
    /// The content of a file; `missing` if it does not exist.
    std::function<Result<std::string>(const std::string& path)> file;
};

/// Reads GPUQ_STATE_DIR, GPUQ_CLUSTER, GPUQ_CONTAINER, GPUQ_KEEP, GPUQ_DETACH_KEY, GPUQ_DIRECT,
/// GPUQ_HANDOVER, GPUQ_CREDENTIALS_DIR, GPUQ_AKLOG, GPUQ_TOKEN_COMMAND, GPUQ_HOST, GPUQ_REMOTE,
/// GPUQ_HOST_PATIENCE, GPUQ_TRANSPORT, GPUQ_SNAPSHOT, GPUQ_NOTIFY, GPUQ_THEME,
/// GPUQ_OVERVIEW_DIR, then $XDG_CONFIG_HOME/gpuq/config.yaml (or ~/.config/...), then
/// /etc/gpuq/config.yaml. Each setting comes from the first source that has it. Empty variables are
/// ignored. Every file that exists must be valid.
Result<Settings> load_settings(const SettingSources& sources);

/// The value of `overview_dir` that disables it.
constexpr const char* k_no_overview_dir = "off";

constexpr const char* k_site_config = "/etc/gpuq/config.yaml";

} // namespace gpuq::cli
