// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "embedded/places.h"
#include "embedded/spec.h"

#include <string>

/// The configuration files of a cluster, as text. Pure.
namespace gpuq::embedded {

/// Where Slurm's commands listen for answers while they run; the daemons always on loopback.
enum class ClientsListen {
    on_loopback, ///< needs a host name that resolves to 127.0.0.1
    anywhere,    ///< Slurm's default
};

std::string slurm_conf(const ClusterSpec&, const Ports&, const Places&, ClientsListen);
std::string gres_conf(const ClusterSpec&);
std::string cgroup_conf(const ClusterSpec&);
std::string slurmdbd_conf(const ClusterSpec&, const Ports&, const Places&);

/// What mariadb-install-db runs on a new database: slurmdbd's own tables are in a database of this
/// name. slurmdbd would create it, but with Debian 13's libmariadb (11.8) it ends then: after its
/// first, failed connection every query fails (error 5027).
std::string database_sql();

/// `gpu:k80:4`, `gpu:a100:2,gpu:v100:1`, `gpu:2`; empty without GPUs.
std::string gres_of(const std::vector<GpuDevice>& gpus);

} // namespace gpuq::embedded
