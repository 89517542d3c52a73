// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "embedded/places.h"
#include "embedded/spec.h"

#include <string>

/// Generates the configuration files of a cluster. Pure.
namespace gpuq::embedded {

/// The address on which Slurm's commands listen for responses; daemons always listen on loopback.
enum class ClientsListen {
    on_loopback, ///< requires a host name that resolves to 127.0.0.1
    anywhere,    ///< Slurm's default
};

std::string slurm_conf(const ClusterSpec&, const Ports&, const Places&, ClientsListen);
std::string gres_conf(const ClusterSpec&);
std::string cgroup_conf(const ClusterSpec&);
std::string slurmdbd_conf(const ClusterSpec&, const Ports&, const Places&);

/// SQL that mariadb-install-db runs on a new database: creates the database for slurmdbd's tables.
/// slurmdbd would create it, but with Debian 13's libmariadb (11.8) it then exits: after its first
/// failed connection all queries fail (error 5027).
std::string database_sql();

/// `gpu:k80:4`, `gpu:a100:2,gpu:v100:1`, `gpu:2`, `gpu:k80:1,shard:4`; empty without GPUs.
std::string gres_of(const std::vector<GpuDevice>& gpus, int shards);

} // namespace gpuq::embedded
