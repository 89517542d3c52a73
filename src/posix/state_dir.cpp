// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/state_dir.h"

#include <fmt/format.h>

#include <string_view>

namespace gpuq {
namespace {

bool given(const std::optional<std::string>& word)
{
    return word && !word->empty();
}

Result<std::string> absolute(const std::string& path, std::string_view origin)
{
    if (!path.starts_with('/')) {
        return fail(
            Error::Kind::usage,
            fmt::format("{}: the state directory '{}' is not an absolute path", origin, path));
    }
    return path;
}

Result<std::string> with_user(const std::string& path, const std::string& user)
{
    if (path.find("%u") != std::string::npos &&
        (user.empty() || user.starts_with('.') || user.find('/') != std::string::npos)) {
        return fail(Error::Kind::usage,
                    fmt::format("state_dir: no directory can be named after user '{}'", user));
    }
    std::string expanded;
    for (std::size_t at = 0; at < path.size(); ++at) {
        if (path.compare(at, 2, "%u") == 0) {
            expanded += user;
            ++at;
        } else {
            expanded += path[at];
        }
    }
    return expanded;
}

} // namespace

Result<std::string> choose_state_dir(const StateDirInputs& arguments)
{
    if (given(arguments.flag)) {
        return absolute(*arguments.flag, "--state-dir");
    }
    if (given(arguments.variable)) {
        return absolute(*arguments.variable, "GPUQ_STATE_DIR");
    }
    if (given(arguments.config)) {
        TRY_ASSIGN(const std::string path, with_user(*arguments.config, arguments.user));
        return absolute(path, "state_dir");
    }
    if (given(arguments.state_home) && arguments.state_home->starts_with('/')) {
        return *arguments.state_home + "/gpuq";
    }
    if (!arguments.home.starts_with('/')) {
        return fail(Error::Kind::usage,
                    "no home directory to keep runs in: set HOME or GPUQ_STATE_DIR");
    }
    return arguments.home + "/.local/state/gpuq";
}

} // namespace gpuq
