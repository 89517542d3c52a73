// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"
#include "embedded/process.h"

#include <string>
#include <vector>

/// The programs of Debian's packages that make a cluster.
namespace gpuq::embedded {

/// Path of a program by name. `not_found` with the Debian package that brings it.
Result<std::string> program(const std::string& name);

enum class Programs {
    of_cluster,    ///< what no cluster starts without
    of_accounting, ///< MariaDB and slurmdbd
};
/// `not_found` names all of these programs that this machine lacks, and their packages.
Result<void> check_programs(Programs programs);

/// The library that keeps daemons on the loopback interface (preload/loopback.cpp): beside gpuq, or
/// where `cmake --install` puts it.
Result<std::string> loopback_library();
/// contrib/gpuq-node-probe, as installed there.
Result<std::string> node_probe();

/// What every process of a cluster gets as its environment. SLURM_CONF in it is what makes
/// the process known as one of this cluster.
std::vector<std::string> environment_of(const Places& places);

/// SLURM_CONF=DIR/slurm.conf
std::string marker_of(const Places& places);

/// Runs a Slurm command against the cluster, without a shell. `unreachable` when it does not
/// answer in time; its own failure is in the status.
Result<Finished> ask(const Places& places, std::vector<std::string> words,
                     std::chrono::milliseconds limit = std::chrono::seconds(10));

} // namespace gpuq::embedded
