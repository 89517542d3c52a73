// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"

#include <string>

/// The machine's cluster as a systemd service: it is started at boot, does not depend on a login
/// session, and Slurm gets a delegated cgroup subtree.
namespace gpuq::embedded {

constexpr const char* k_unit_name = "gpuq-cluster.service";
constexpr const char* k_users_unit_name = "gpuq-cluster-people.path";

/// Environment variable set for processes started by the unit.
constexpr const char* k_in_unit = "GPUQ_CLUSTER_UNIT";

/// The service unit; `gpuq` and `dir` must be absolute paths without special characters. Pure.
std::string unit_text(const std::string& gpuq, const std::string& dir);
/// Units that create accounts for users added later: a watch on /etc/passwd. Pure.
std::string users_path_text();
std::string users_service_text(const std::string& gpuq, const std::string& dir);

/// True when systemd should run the cluster of `places`: it is root's, systemd is the init system,
/// and this process is not started by the unit.
bool belongs_to_systemd(const Places& places);

/// Installs and starts the units; returns when the cluster is up. The caller must not hold the
/// lock.
Result<void> start_unit(const Places& places);
/// Stops, disables and removes the units. Succeeds if there are none.
Result<void> stop_unit();

} // namespace gpuq::embedded
