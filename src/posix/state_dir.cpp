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

Result<std::string> choose_state_dir(const StateDirWords& words)
{
    if (given(words.flag)) {
        return absolute(*words.flag, "--state-dir");
    }
    if (given(words.variable)) {
        return absolute(*words.variable, "GPUQ_STATE_DIR");
    }
    if (given(words.config)) {
        TRY_ASSIGN(const std::string path, with_user(*words.config, words.user));
        return absolute(path, "state_dir");
    }
    if (given(words.state_home) && words.state_home->starts_with('/')) {
        return *words.state_home + "/gpuq";
    }
    if (!words.home.starts_with('/')) {
        return fail(Error::Kind::usage,
                    "no home directory to keep runs in: set HOME or GPUQ_STATE_DIR");
    }
    return words.home + "/.local/state/gpuq";
}

} // namespace gpuq
