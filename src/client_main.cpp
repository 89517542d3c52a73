// SPDX-License-Identifier: GPL-2.0-or-later
#include "machine/machine.h"
#include "ports/accounting.h"
#include "ports/admin.h"
#include "ports/cluster.h"
#include "ports/submit_script.h"
#include "ports/use_records.h"

#include <memory>
#include <string>

// gpuq for a laptop: every verb runs on a login host (--host); no libslurm.

namespace gpuq {
namespace {

Error no_slurm()
{
    return fail(Error::Kind::missing,
                "this is gpuq's client for other machines, without Slurm: name a login host with "
                "--host, GPUQ_HOST or `host:` in ~/.config/gpuq/config.yaml");
}

class Laptop : public Machine {
public:
    Result<Cluster*> cluster() override { return no_slurm(); }
    Result<Accounting*> accounting() override { return no_slurm(); }
    Result<UseRecords*> use_records() override { return no_slurm(); }
    Result<Admin*> admin() override { return no_slurm(); }
    Result<std::string> jobs_since(Time) override { return no_slurm(); }
    Result<std::string> supervisor() override { return no_slurm(); }
    Result<std::unique_ptr<SubmitScript>> submit_script(const std::string&) override
    {
        return no_slurm();
    }
    void choose_cluster(const std::string&) override {}
    void choose_configuration(const std::string&) override {}
};

} // namespace
} // namespace gpuq

int main(int argc, char** argv)
{
    gpuq::prepare_process();
    gpuq::Laptop machine;
    return gpuq::run_program(argc, argv, machine);
}
