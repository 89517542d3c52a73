// SPDX-License-Identifier: GPL-2.0-or-later
// The contract of Cluster held against the Slurm of SLURM_CONF: tests/live/test_slurm.py runs it.
#include "contract/cluster_contract.h"
#include "slurm/cluster.h"

namespace gpuq {
namespace {

std::shared_ptr<Cluster> open_slurm()
{
    auto cluster = SlurmCluster::open();
    if (!cluster) {
        ADD_FAILURE() << cluster.error().text;
        return nullptr;
    }
    return std::move(*cluster);
}

INSTANTIATE_TEST_SUITE_P(Slurm, ClusterContract,
                         ::testing::Values(ClusterMaker{"slurm", open_slurm}));

} // namespace
} // namespace gpuq
