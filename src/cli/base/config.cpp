// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/config.h"

#include "core/split_arguments.h"
#include "core/walltime.h"
#include "yaml/document.h"

#include <fmt/format.h>

namespace gpuq::cli {
namespace {

const std::vector<std::string> k_names = {
    "state_dir",       "cluster",  "container",     "keep",  "detach_key",  "direct",
    "credentials_dir", "aklog",    "token_command", "host",  "remote",      "host_patience",
    "transport",       "snapshot", "notify",        "theme", "overview_dir"};

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

Result<std::optional<Retention>> retention_in(const yaml::Node& root, const std::string& name)
{
    TRY_ASSIGN(const auto text, text_in(root, name));
    if (!text) {
        return std::optional<Retention>{};
    }
    auto retention = parse_retention(*text);
    if (!retention) {
        return yaml::error_at(*root.find(name),
                              fmt::format("{}: {}", name, retention.error().text));
    }
    return std::optional<Retention>{*retention};
}

Result<std::optional<DetachKey>> detach_key_in(const yaml::Node& root)
{
    TRY_ASSIGN(const auto text, text_in(root, "detach_key"));
    if (!text) {
        return std::optional<DetachKey>{};
    }
    const auto key = detach_key_from(*text);
    if (!key) {
        return yaml::error_at(*root.find("detach_key"), key.error().text);
    }
    return std::optional{*key};
}

Result<Direct> direct_from(const std::string& text)
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
    return fail(Error::Kind::usage, fmt::format("direct: '{}' is not yes, no or network", text));
}

Result<std::optional<Direct>> direct_in(const yaml::Node& root)
{
    TRY_ASSIGN(const auto text, text_in(root, "direct"));
    if (!text) {
        return std::optional<Direct>{};
    }
    const auto answer = direct_from(*text);
    if (!answer) {
        return yaml::error_at(*root.find("direct"), answer.error().text);
    }
    return std::optional{*answer};
}

Result<SnapshotPolicy> snapshot_from(const std::string& text)
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
    return fail(Error::Kind::usage,
                fmt::format("snapshot: '{}' is not auto, always or never", text));
}

Result<std::optional<SnapshotPolicy>> snapshot_in(const yaml::Node& root)
{
    TRY_ASSIGN(const auto text, text_in(root, "snapshot"));
    if (!text) {
        return std::optional<SnapshotPolicy>{};
    }
    const auto policy = snapshot_from(*text);
    if (!policy) {
        return yaml::error_at(*root.find("snapshot"), policy.error().text);
    }
    return std::optional{*policy};
}

Result<ColourTheme> theme_from(const std::string& text)
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
    return fail(Error::Kind::usage,
                fmt::format("theme: '{}' is not auto, 16, 256 or truecolor", text));
}

Result<std::string> overview_dir_from(const std::string& text)
{
    if (text != k_no_overview_dir && !text.starts_with('/')) {
        return fail(Error::Kind::usage,
                    fmt::format("overview_dir: '{}' is neither an absolute path nor off", text));
    }
    return text;
}

Result<std::optional<std::string>> overview_dir_in(const yaml::Node& root)
{
    TRY_ASSIGN(const auto text, text_in(root, "overview_dir"));
    if (!text) {
        return std::optional<std::string>{};
    }
    auto directory = overview_dir_from(*text);
    if (!directory) {
        return yaml::error_at(*root.find("overview_dir"), directory.error().text);
    }
    return std::optional<std::string>{*std::move(directory)};
}

Result<std::optional<ColourTheme>> theme_in(const yaml::Node& root)
{
    TRY_ASSIGN(const auto text, text_in(root, "theme"));
    if (!text) {
        return std::optional<ColourTheme>{};
    }
    const auto theme = theme_from(*text);
    if (!theme) {
        return yaml::error_at(*root.find("theme"), theme.error().text);
    }
    return std::optional{*theme};
}

Result<std::optional<std::chrono::seconds>> time_in(const yaml::Node& root, const std::string& name)
{
    TRY_ASSIGN(const auto text, text_in(root, name));
    if (!text) {
        return std::optional<std::chrono::seconds>{};
    }
    const auto time = parse_duration(*text);
    if (!time) {
        return yaml::error_at(*root.find(name), fmt::format("{}: {}", name, time.error().text));
    }
    return std::optional<std::chrono::seconds>{*time};
}

Result<std::string> transport_from(const std::string& text)
{
    if (text != "auto" && text != "libssh" && text != "openssh") {
        return fail(Error::Kind::usage,
                    fmt::format("transport: '{}' is not auto, libssh or openssh", text));
    }
    return text;
}

Result<std::optional<std::string>> transport_in(const yaml::Node& root)
{
    TRY_ASSIGN(auto text, text_in(root, "transport"));
    if (text) {
        if (const auto known = transport_from(*text); !known) {
            return yaml::error_at(*root.find("transport"), known.error().text);
        }
    }
    return text;
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

Result<Settings> settings_of_variables(const SettingSources& sources)
{
    Settings settings;
    settings.state_dir = variable(sources, "GPUQ_STATE_DIR");
    settings.cluster = variable(sources, "GPUQ_CLUSTER");
    settings.credentials_dir = variable(sources, "GPUQ_CREDENTIALS_DIR");
    settings.aklog = variable(sources, "GPUQ_AKLOG");
    TRY_ASSIGN(settings.container, strings_of_variable(sources, "GPUQ_CONTAINER"));
    TRY_ASSIGN(settings.token_command, strings_of_variable(sources, "GPUQ_TOKEN_COMMAND"));
    if (const auto text = variable(sources, "GPUQ_KEEP")) {
        auto retention = parse_retention(*text);
        if (!retention) {
            return fail(Error::Kind::usage, "GPUQ_KEEP: " + retention.error().text);
        }
        settings.keep = *retention;
    }
    TRY_ASSIGN(settings.notify, strings_of_variable(sources, "GPUQ_NOTIFY"));
    settings.host = variable(sources, "GPUQ_HOST");
    settings.remote_program = variable(sources, "GPUQ_REMOTE");
    if (const auto text = variable(sources, "GPUQ_HOST_PATIENCE")) {
        const auto time = parse_duration(*text);
        if (!time) {
            return fail(Error::Kind::usage, "GPUQ_HOST_PATIENCE: " + time.error().text);
        }
        settings.host_patience = *time;
    }
    if (const auto text = variable(sources, "GPUQ_TRANSPORT")) {
        TRY_ASSIGN(settings.transport, transport_from(*text));
    }
    if (const auto text = variable(sources, "GPUQ_DETACH_KEY")) {
        TRY_ASSIGN(settings.detach_key, detach_key_from(*text));
    }
    if (const auto text = variable(sources, "GPUQ_DIRECT")) {
        TRY_ASSIGN(settings.direct, direct_from(*text));
    }
    if (const auto text = variable(sources, "GPUQ_SNAPSHOT")) {
        TRY_ASSIGN(settings.snapshot, snapshot_from(*text));
    }
    if (const auto text = variable(sources, "GPUQ_THEME")) {
        TRY_ASSIGN(settings.theme, theme_from(*text));
    }
    if (const auto text = variable(sources, "GPUQ_OVERVIEW_DIR")) {
        TRY_ASSIGN(settings.overview_dir, overview_dir_from(*text));
    }
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
    TRY_ASSIGN(settings.keep, retention_in(root, "keep"));
    TRY_ASSIGN(settings.detach_key, detach_key_in(root));
    TRY_ASSIGN(settings.direct, direct_in(root));
    TRY_ASSIGN(settings.credentials_dir, text_in(root, "credentials_dir"));
    TRY_ASSIGN(settings.aklog, text_in(root, "aklog"));
    TRY_ASSIGN(settings.token_command, strings_in(root, "token_command"));
    TRY_ASSIGN(settings.host, text_in(root, "host"));
    TRY_ASSIGN(settings.remote_program, text_in(root, "remote"));
    TRY_ASSIGN(settings.host_patience, time_in(root, "host_patience"));
    TRY_ASSIGN(settings.transport, transport_in(root));
    TRY_ASSIGN(settings.snapshot, snapshot_in(root));
    TRY_ASSIGN(settings.notify, strings_in(root, "notify"));
    TRY_ASSIGN(settings.theme, theme_in(root));
    TRY_ASSIGN(settings.overview_dir, overview_dir_in(root));
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
