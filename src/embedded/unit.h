// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/places.h"

#include <string>

/// The machine's own cluster as a service of systemd: it comes back at boot, does not depend on
/// anybody's login session, and Slurm gets a delegated part of the cgroup tree.
namespace gpuq::embedded {

constexpr const char* k_unit_name = "gpuq-cluster.service";
constexpr const char* k_people_unit_name = "gpuq-cluster-people.path";

/// Set in the environment of what the unit starts.
constexpr const char* k_in_unit = "GPUQ_CLUSTER_UNIT";

/// The unit; `gpuq` and `dir` are absolute paths of plain characters. Pure.
std::string unit_text(const std::string& gpuq, const std::string& dir);
/// Units that give people who get a login later an account: a watch on /etc/passwd. Pure.
std::string people_path_text();
std::string people_service_text(const std::string& gpuq, const std::string& dir);

/// True when systemd is to run the cluster of `places`: root's own, on a host that systemd
/// runs, and we are not inside the unit already.
bool belongs_to_systemd(const Places& places);

/// Installs and starts the units; returns when the cluster is up. The caller holds no lock.
Result<void> start_unit(const Places& places);
/// Stops them and keeps them from coming back at boot. Success also when there are none.
Result<void> stop_unit();

} // namespace gpuq::embedded
