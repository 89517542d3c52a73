// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/file.h"

#include "policy/calendar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

namespace gpuq::cli {
namespace {

constexpr const char* k_installed = "/etc/gpuq/policy.yaml";

/// As sudo requires for sudoers(5): users who can write to it could give themselves every GPU.
Result<void> check_owner(const std::string& path, const TextFile& file)
{
    constexpr std::uint32_t k_group_and_others_write = 022;
    if (file.owner != 0) {
        return fail(Error::Kind::denied,
                    fmt::format("{} belongs to user {}, not to root: chown root {}", path,
                                file.owner, path));
    }
    if ((file.mode & k_group_and_others_write) != 0) {
        return fail(
            Error::Kind::denied,
            fmt::format("{} is writable by users other than root (mode {:04o}): chmod 644 {}", path,
                        file.mode, path));
    }
    return {};
}

} // namespace

Result<LoadedPolicy> load_policy(Services& services, const std::optional<std::string>& path)
{
    const auto variable = services.variable("GPUQ_POLICY");
    LoadedPolicy loaded;
    loaded.path = path ? *path : variable && !variable->empty() ? *variable : k_installed;
    auto file = services.text_file(loaded.path, policy::k_most_bytes);
    if (!file) {
        const bool none = file.error().kind == Error::Kind::missing && loaded.path == k_installed;
        return none ? fail(Error::Kind::missing,
                           fmt::format("{}: not found; name the policy file, or set GPUQ_POLICY",
                                       k_installed))
                    : file.error();
    }
    if (loaded.path == k_installed) {
        TRY(check_owner(loaded.path, *file));
    }
    if (file->distrust && !path) { // it was not named by the caller
        return *std::move(file->distrust);
    }
    loaded.distrust = std::move(file->distrust);
    loaded.text = std::move(file->text);
    TRY_ASSIGN(loaded.reading, policy::read_policy(loaded.text, loaded.path));
    return loaded;
}

Result<LoadedPolicy> load_valid_policy(Services& services, const std::optional<std::string>& path)
{
    TRY_ASSIGN(LoadedPolicy loaded, load_policy(services, path));
    if (has_errors(loaded.reading.findings)) {
        std::vector<std::string> lines;
        for (const policy::Finding& finding : loaded.reading.findings) {
            lines.push_back(to_line(finding, loaded.path));
        }
        return fail(Error::Kind::usage, fmt::format("{}", fmt::join(lines, "\n")));
    }
    return loaded;
}

Result<LoadedPolicy> load_obeyed_policy(Services& services, const std::optional<std::string>& path)
{
    TRY_ASSIGN(LoadedPolicy loaded, load_valid_policy(services, path));
    if (loaded.distrust) {
        return *std::move(loaded.distrust);
    }
    return loaded;
}

Result<std::optional<std::string>> named_policy(const Invocation& invocation)
{
    const auto& arguments = invocation.arguments;
    const auto option = invocation.options.value("policy");
    if (arguments.size() > 2 || (arguments.size() == 2 && option)) {
        return fail(Error::Kind::usage, "one policy file at a time");
    }
    return arguments.size() == 2 ? std::optional(arguments[1]) : option;
}

Result<OutputFile> new_policy_file(const std::string& path)
{
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
        return fail(Error::Kind::usage,
                    fmt::format("{} exists; --output names another file", path));
    }
    return OutputFile::at(path);
}

std::string local_time(Time now)
{
    return policy::as_written(policy::to_local(now));
}

} // namespace gpuq::cli
