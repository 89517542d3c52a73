// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/cluster.h"
#include "embedded/directory.h"
#include "embedded/machine.h"
#include "embedded/process.h"
#include "io/trusted_path.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

/// slurm.conf names plugins, so it must belong to the caller or root.
bool is_trusted(const std::string& dir)
{
    return static_cast<bool>(open_trusted_directory(dir));
}

bool is_up(const Places& places)
{
    const auto state = read_state(places);
    return state && state->up && state->boot == boot_id() &&
           std::any_of(state->daemons.begin(), state->daemons.end(), [](const Daemon& daemon) {
               return is_alive(daemon.process); // a single daemon may have died and be restarted
           });
}

} // namespace

Result<std::string> find_cluster_conf()
{
    std::vector<std::string> dirs{k_machine_dir};
    if (const auto own =
            default_dir(geteuid(), std::getenv("XDG_STATE_HOME"), std::getenv("HOME"))) {
        dirs.insert(dirs.begin(), *own);
    }
    for (const std::string& dir : dirs) {
        const Places places{dir, ""};
        if (is_trusted(dir) && is_up(places)) {
            return places.slurm_conf();
        }
    }
    return fail(Error::Kind::missing, "no cluster of `gpuq cluster up` is up on this machine");
}

} // namespace gpuq::embedded
