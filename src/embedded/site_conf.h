// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/result.h"
#include "embedded/spec.h"

#include <string>
#include <string_view>
#include <vector>

/// A site's slurm.conf, as far as it can be reproduced on one machine. Pure.
namespace gpuq::embedded {

struct SiteConf {
    std::vector<NamedNode> nodes;   ///< their GPUs have no device files
    std::vector<std::string> lines; ///< partitions, node sets and settings, unchanged
    std::vector<std::string> qos;   ///< named by partitions: slurmctld requires them to exist
    bool has_script = false;        ///< JobSubmitPlugins contains lua
    bool operator==(const SiteConf&) const = default;
};

/// Leaves out the properties of the site's machines: hosts, ports, paths, programs, authentication,
/// accounting, process tracking, topology, and GRES other than GPUs. `usage` for a file without
/// nodes or partitions, for one that includes another, and for node names that are not valid;
/// `file` is used in messages.
Result<SiteConf> site_conf_in(std::string_view text, const std::string& file);

/// Gives the cluster these nodes, partitions and settings.
void use_conf(ClusterSpec& spec, const SiteConf& conf, const std::vector<GpuDevice>& stand_ins);

/// The largest number of GPUs on a node.
int most_gpus(const SiteConf& conf);

} // namespace gpuq::embedded
