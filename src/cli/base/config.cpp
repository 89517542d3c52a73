// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/config.h"

#include "core/split_arguments.h"
#include "core/walltime.h"
#include "yaml/document.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

const std::vector<std::string> k_names = {
    "state_dir",     "cluster",         "container", "keep",          "detach_key", "direct",
    "handover",      "credentials_dir", "aklog",     "token_command", "host",       "remote",
    "host_patience", "transport",       "snapshot",  "notify",        "theme",      "overview_dir"};

Result<std::optional<std::string>> text_in(const yaml::Node& root, const std::string& name)
{
    const yaml::Node* node = root.find(name);
    if (node == nullptr) {
        return std::optional<std::string>{};
    }
    TRY_ASSIGN(std::string text, yaml::text_of(*node, name));
    if (text.empty()) {
        return yaml::error_at(*node, fmt::format("{} is empty", name));
    }
    return std::optional<std::string>{std::move(text)};
}

Result<std::optional<std::vector<std::string>>> strings_in(const yaml::Node& root,
                                                           const std::string& name)
{
    const yaml::Node* node = root.find(name);
    if (node == nullptr) {
        return std::optional<std::vector<std::string>>{};
    }
    TRY_ASSIGN(std::vector<std::string> arguments, yaml::texts_of(*node, name));
    return std::optional<std::vector<std::string>>{std::move(arguments)};
}

Result<Direct> direct_from(std::string_view text)
{
    if (text == "no") {
        return Direct::no;
    }
    if (text == "yes") {
        return Direct::node;
    }
    if (text == "network") {
        return Direct::network;
    }
    return fail(Error::Kind::usage, fmt::format("'{}' is not yes, no or network", text));
}

Result<SnapshotPolicy> snapshot_from(std::string_view text)
{
    if (text == "auto") {
        return SnapshotPolicy::automatic;
    }
    if (text == "always") {
        return SnapshotPolicy::always;
    }
    if (text == "never") {
        return SnapshotPolicy::never;
    }
    return fail(Error::Kind::usage, fmt::format("'{}' is not auto, always or never", text));
}

Result<ColourTheme> theme_from(std::string_view text)
{
    if (text == "auto") {
        return ColourTheme::automatic;
    }
    if (text == "16") {
        return ColourTheme::basic;
    }
    if (text == "256") {
        return ColourTheme::palette;
    }
    if (text == "truecolor") {
        return ColourTheme::direct;
    }
    return fail(Error::Kind::usage, fmt::format("'{}' is not auto, 16, 256 or truecolor", text));
}

Result<std::string> overview_dir_from(std::string_view text)
{
    if (text != k_no_overview_dir && !text.starts_with('/')) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is neither an absolute path nor off", text));
    }
    return std::string(text);
}

Result<std::string> transport_from(std::string_view text)
{
    if (text != "auto" && text != "libssh" && text != "openssh") {
        return fail(Error::Kind::usage, fmt::format("'{}' is not auto, libssh or openssh", text));
    }
    return std::string(text);
}

/// Reads a setting of a file with `parse`, whose error messages do not name the setting.
template <typename Value>
Result<std::optional<Value>> value_in(const yaml::Node& root, const std::string& name,
                                      Result<Value> (*parse)(std::string_view))
{
    TRY_ASSIGN(const auto text, text_in(root, name));
    if (!text) {
        return std::optional<Value>{};
    }
    auto value = parse(*text);
    if (!value) {
        return yaml::error_at(*root.find(name), fmt::format("{}: {}", name, value.error().text));
    }
    return std::optional<Value>{*std::move(value)};
}

/// The value of a variable; nothing if it is unset or empty.
std::optional<std::string> variable(const SettingSources& sources, const std::string& name)
{
    const auto value = sources.variable(name);
    return value && !value->empty() ? value : std::nullopt;
}

Result<std::optional<std::vector<std::string>>> strings_of_variable(const SettingSources& sources,
                                                                    const std::string& name)
{
    const auto line = variable(sources, name);
    if (!line) {
        return std::optional<std::vector<std::string>>{};
    }
    auto arguments = split_arguments(*line);
    if (!arguments || arguments->empty()) {
        return fail(
            Error::Kind::usage,
            fmt::format("{}: {}", name, arguments ? "empty command" : arguments.error().text));
    }
    return std::optional(*std::move(arguments));
}

/// Reads a setting of a variable, as value_in() does.
template <typename Value>
Result<std::optional<Value>> value_of(const SettingSources& sources, const std::string& name,
                                      Result<Value> (*parse)(std::string_view))
{
    const auto text = variable(sources, name);
    if (!text) {
        return std::optional<Value>{};
    }
    auto value = parse(*text);
    if (!value) {
        return fail(Error::Kind::usage, fmt::format("{}: {}", name, value.error().text));
    }
    return std::optional<Value>{*std::move(value)};
}

Result<Settings> settings_of_variables(const SettingSources& sources)
{
    Settings settings;
    settings.state_dir = variable(sources, "GPUQ_STATE_DIR");
    settings.cluster = variable(sources, "GPUQ_CLUSTER");
    TRY_ASSIGN(settings.container, strings_of_variable(sources, "GPUQ_CONTAINER"));
    TRY_ASSIGN(settings.keep, value_of(sources, "GPUQ_KEEP", parse_retention));
    TRY_ASSIGN(settings.detach_key, value_of(sources, "GPUQ_DETACH_KEY", detach_key_from));
    TRY_ASSIGN(settings.direct, value_of(sources, "GPUQ_DIRECT", direct_from));
    TRY_ASSIGN(settings.handover, value_of(sources, "GPUQ_HANDOVER", parse_duration));
    settings.credentials_dir = variable(sources, "GPUQ_CREDENTIALS_DIR");
    settings.aklog = variable(sources, "GPUQ_AKLOG");
    TRY_ASSIGN(settings.token_command, strings_of_variable(sources, "GPUQ_TOKEN_COMMAND"));
    settings.host = variable(sources, "GPUQ_HOST");
    settings.remote_program = variable(sources, "GPUQ_REMOTE");
    TRY_ASSIGN(settings.host_patience, value_of(sources, "GPUQ_HOST_PATIENCE", parse_duration));
    TRY_ASSIGN(settings.transport, value_of(sources, "GPUQ_TRANSPORT", transport_from));
    TRY_ASSIGN(settings.snapshot, value_of(sources, "GPUQ_SNAPSHOT", snapshot_from));
    TRY_ASSIGN(settings.notify, strings_of_variable(sources, "GPUQ_NOTIFY"));
    TRY_ASSIGN(settings.theme, value_of(sources, "GPUQ_THEME", theme_from));
    TRY_ASSIGN(settings.overview_dir, value_of(sources, "GPUQ_OVERVIEW_DIR", overview_dir_from));
    return settings;
}

/// The user's configuration file. Relative paths in $XDG_CONFIG_HOME are ignored, as its
/// specification requires.
std::optional<std::string> own_config(const SettingSources& sources)
{
    const auto directory = variable(sources, "XDG_CONFIG_HOME");
    if (directory && directory->starts_with('/')) {
        return *directory + "/gpuq/config.yaml";
    }
    const auto home = variable(sources, "HOME");
    return home ? std::optional(*home + "/.config/gpuq/config.yaml") : std::nullopt;
}

Result<Settings> settings_of_file(const SettingSources& sources, const std::string& path)
{
    const auto text = sources.file(path);
    if (text) {
        return settings_in(*text, path);
    }
    if (text.error().kind == Error::Kind::missing) {
        return Settings{};
    }
    return text.error();
}

/// `upper`, with unset values taken from `lower`.
Settings over(Settings upper, const Settings& lower)
{
    upper.state_dir = upper.state_dir ? upper.state_dir : lower.state_dir;
    upper.cluster = upper.cluster ? upper.cluster : lower.cluster;
    upper.container = upper.container ? upper.container : lower.container;
    upper.keep = upper.keep ? upper.keep : lower.keep;
    upper.detach_key = upper.detach_key ? upper.detach_key : lower.detach_key;
    upper.direct = upper.direct ? upper.direct : lower.direct;
    upper.handover = upper.handover ? upper.handover : lower.handover;
    upper.credentials_dir = upper.credentials_dir ? upper.credentials_dir : lower.credentials_dir;
    upper.aklog = upper.aklog ? upper.aklog : lower.aklog;
    upper.token_command = upper.token_command ? upper.token_command : lower.token_command;
    upper.host = upper.host ? upper.host : lower.host;
    upper.remote_program = upper.remote_program ? upper.remote_program : lower.remote_program;
    upper.host_patience = upper.host_patience ? upper.host_patience : lower.host_patience;
    upper.snapshot = upper.snapshot ? upper.snapshot : lower.snapshot;
    upper.transport = upper.transport ? upper.transport : lower.transport;
    upper.notify = upper.notify ? upper.notify : lower.notify;
    upper.theme = upper.theme ? upper.theme : lower.theme;
    upper.overview_dir = upper.overview_dir ? upper.overview_dir : lower.overview_dir;
    return upper;
}

} // namespace

Result<Settings> settings_in(std::string_view text, const std::string& file)
{
    TRY_ASSIGN(const yaml::Node root, yaml::parse(text, file));
    TRY(yaml::expect_map(root, k_names));
    Settings settings;
    TRY_ASSIGN(settings.state_dir, text_in(root, "state_dir"));
    TRY_ASSIGN(settings.cluster, text_in(root, "cluster"));
    TRY_ASSIGN(settings.container, strings_in(root, "container"));
    TRY_ASSIGN(settings.keep, value_in(root, "keep", parse_retention));
    TRY_ASSIGN(settings.detach_key, value_in(root, "detach_key", detach_key_from));
    TRY_ASSIGN(settings.direct, value_in(root, "direct", direct_from));
    TRY_ASSIGN(settings.handover, value_in(root, "handover", parse_duration));
    TRY_ASSIGN(settings.credentials_dir, text_in(root, "credentials_dir"));
    TRY_ASSIGN(settings.aklog, text_in(root, "aklog"));
    TRY_ASSIGN(settings.token_command, strings_in(root, "token_command"));
    TRY_ASSIGN(settings.host, text_in(root, "host"));
    TRY_ASSIGN(settings.remote_program, text_in(root, "remote"));
    TRY_ASSIGN(settings.host_patience, value_in(root, "host_patience", parse_duration));
    TRY_ASSIGN(settings.transport, value_in(root, "transport", transport_from));
    TRY_ASSIGN(settings.snapshot, value_in(root, "snapshot", snapshot_from));
    TRY_ASSIGN(settings.notify, strings_in(root, "notify"));
    TRY_ASSIGN(settings.theme, value_in(root, "theme", theme_from));
    TRY_ASSIGN(settings.overview_dir, value_in(root, "overview_dir", overview_dir_from));
    return settings;
}

Result<Settings> load_settings(const SettingSources& sources)
{
    TRY_ASSIGN(Settings settings, settings_of_variables(sources));
    if (const auto path = own_config(sources)) {
        TRY_ASSIGN(const Settings own, settings_of_file(sources, *path));
        settings = over(std::move(settings), own);
    }
    TRY_ASSIGN(const Settings site, settings_of_file(sources, k_site_config));
    return over(std::move(settings), site);
}

} // namespace gpuq::cli
