// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/process.h"

#include <string>
#include <vector>

/// The programs that make up a cluster, with their Debian packages.
namespace gpuq::embedded {

/// Path of a program by name. `not_found` with the Debian package that contains it.
Result<std::string> program(const std::string& name);

enum class Programs {
    of_cluster,    ///< required by every cluster
    of_accounting, ///< MariaDB and slurmdbd
};
/// `not_found` lists all of these programs that are missing, with their packages.
Result<void> check_programs(Programs programs);

/// The library that keeps daemons on the loopback interface (preload/loopback.cpp): in the
/// directory of gpuq, or where `cmake --install` puts it.
Result<std::string> loopback_library();
/// The installed contrib/gpuq-node-probe, in one of the same directories.
Result<std::string> node_probe();

/// The environment of all processes of a cluster. Its SLURM_CONF identifies them as such.
std::vector<std::string> environment_of(const Places& places);

/// SLURM_CONF=DIR/slurm.conf
std::string marker_of(const Places& places);

/// Runs a Slurm command against the cluster, without a shell. `unreachable` when it does not finish
/// in time; a failure of the command is in the status.
Result<Finished> run_tool(const Places& places, std::vector<std::string> arguments,
                          std::chrono::milliseconds limit = std::chrono::seconds(10));

} // namespace gpuq::embedded
