// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/git.h"

#include "io/subprocess.h"

#include <string_view>
#include <unistd.h>

namespace gpuq::snapshots {

std::optional<std::string> git(const std::string& directory,
                               const std::vector<std::string>& arguments)
{
    Subprocess plan{
        .argv = {"git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", directory}};
    plan.argv.insert(plan.argv.end(), arguments.begin(), arguments.end());
    plan.environment.emplace();
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!std::string_view(*variable).starts_with("GIT_")) { // another repository
            plan.environment->emplace_back(*variable);
        }
    }
    auto finished = run(std::move(plan), {.streams = Capture::Streams::apart});
    if (!finished || finished->error != 0 || finished->status != 0) {
        return std::nullopt;
    }
    return std::move(finished->out);
}

} // namespace gpuq::snapshots
