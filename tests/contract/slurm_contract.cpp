// SPDX-License-Identifier: GPL-2.0-or-later
// Checks the contracts of Cluster, Accounting and Admin against the Slurm of SLURM_CONF. Run by
// tests/live/test_slurm.py.
#include "contract/accounting_contract.h"
#include "contract/accounting_program.h"
#include "contract/admin_contract.h"
#include "contract/cluster_contract.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "slurm/admin.h"
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

/// The job of the first call serves all tests: slurmdbd learns of a job's end with a delay.
AccountingMaker::Made open_accounting()
{
    static AccountingMaker::Made made;
    if (made.accounting) {
        return made;
    }
    const auto cluster = open_slurm();
    auto accounting = SlurmAccounting::open({}, accounting_program());
    if (!cluster || !accounting) {
        ADD_FAILURE() << "no Slurm";
        return {};
    }
    JobSpec spec;
    spec.name = "contract";
    spec.work_dir = "/tmp";
    spec.gpus_per_node = 2;
    const auto partitions = cluster->partitions().value();
    for (const Partition& partition : partitions) {
        spec.partition = partition.is_default ? partition.name : spec.partition;
    }
    const auto job = cluster->submit(spec, "#!/bin/sh\nsleep 1.2\n", {"PATH=/usr/bin:/bin"});
    made = {std::move(*accounting), job.value(), spec.partition};
    wait_for([&] {
        const auto past = made.accounting->past_job(made.job);
        return past && is_over(past->state);
    });
    return made;
}

std::shared_ptr<Admin> open_admin()
{
    auto admin = SlurmAdmin::open();
    if (!admin) {
        ADD_FAILURE() << admin.error().text;
        return nullptr;
    }
    return std::move(*admin);
}

INSTANTIATE_TEST_SUITE_P(Slurm, AdminContract, ::testing::Values(AdminMaker{"slurm", open_admin}));

INSTANTIATE_TEST_SUITE_P(Slurm, AccountingContract,
                         ::testing::Values(AccountingMaker{"slurm", open_accounting}));

INSTANTIATE_TEST_SUITE_P(Slurm, ClusterContract,
                         ::testing::Values(ClusterMaker{"slurm", open_slurm}));

} // namespace
} // namespace gpuq
