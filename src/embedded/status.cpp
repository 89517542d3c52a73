// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/cluster.h"
#include "embedded/directory.h"
#include "embedded/machine.h"
#include "embedded/tools.h"
#include "io/trusted_path.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace gpuq::embedded {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::vector<NodeStatus> node_states(const Places& places)
{
    std::vector<NodeStatus> nodes;
    const auto answer = run_tool(places, {"sinfo", "-a", "-h", "-N", "-o", "%N %T"}, seconds(5));
    std::istringstream lines(answer && answer->status == 0 ? answer->output : "");
    NodeStatus node;
    while (lines >> node.name >> node.state) {
        if (nodes.empty() || nodes.back().name != node.name) { // there is one line per partition
            nodes.push_back(node);
        }
    }
    return nodes;
}

Result<Status> status(const std::string& dir)
{
    std::error_code failed;
    const fs::path real = fs::canonical(dir, failed);
    Places places;
    places.dir = failed ? dir : real.string();
    TRY_ASSIGN(State state, read_state(places));
    TRY(open_trusted_directory(places.dir)); // slurm.conf names plugins
    Status status;
    status.slurm_conf = places.slurm_conf();
    const bool same_boot = state.boot == boot_id();
    for (const Daemon& daemon : state.daemons) {
        if (!same_boot || !is_alive(daemon.process)) {
            status.dead.push_back(daemon.name);
        }
    }
    if (state.up) {
        status.nodes = node_states(places);
    }
    status.up = state.up && status.dead.empty() && !status.nodes.empty();
    const auto runs = [&](const char* name) {
        const auto& dead = status.dead;
        return std::any_of(state.daemons.begin(), state.daemons.end(),
                           [&](const Daemon& daemon) { return daemon.name == name; }) &&
               std::find(dead.begin(), dead.end(), name) == dead.end();
    };
    status.accounting = runs("slurmdbd") && runs("mariadbd");
    status.state = std::move(state);
    return status;
}

std::optional<std::string> accounting_failure(const std::string& slurm_conf)
{
    const Places places{fs::path(slurm_conf).parent_path().string(), ""};
    const auto state = read_state(places);
    return state && !state->accounting_failure.empty() ? std::optional(state->accounting_failure)
                                                       : std::nullopt;
}

} // namespace gpuq::embedded
