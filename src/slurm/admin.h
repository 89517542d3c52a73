// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/admin.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace gpuq {

/// A real Slurm through scontrol, sacctmgr, squeue and sbatch, which must be in PATH. Unlike
/// libslurm's structures, their interface does not depend on the release, and they report why they
/// refuse a request. Generated files other than job_submit.lua are in the directory `gpuq` next to
/// slurm.conf.
class SlurmAdmin : public Admin {
public:
    /// Like SlurmCluster::open (cluster.h). Makes no request.
    static Result<std::unique_ptr<SlurmAdmin>> open(const std::optional<std::string>& path = {});

    Result<SlurmState> state() override;
    Result<void> set(const SlurmObject& object) override;
    Result<void> remove(SlurmObject::Kind kind, const std::string& name) override;
    Result<std::vector<QueuedJob>> jobs() override;
    Result<std::vector<std::string>>
    limit_jobs(const std::map<std::string, std::chrono::seconds>& time_left) override;
    Result<void> reconfigure() override;
    Result<void> ping() override;
    Result<void> start_controller() override;
    Result<std::optional<std::string>> loaded_script() override;
    Result<void> rehearse(const std::string& include, const std::string& script) override;
    std::string path(const std::string& name) override;
    Result<std::optional<std::string>> read(const std::string& name) override;
    Result<std::optional<FileRights>> rights(const std::string& name) override;
    Result<void> write(const std::string& name, const std::string& text) override;
    Result<void> erase(const std::string& name) override;
    Result<void> record(const std::string& text) override;
    Result<void> claim_directory() override;
    Result<std::unique_ptr<Hold>> hold() override;

private:
    explicit SlurmAdmin(std::filesystem::path conf)
        : m_conf(std::move(conf))
    {
    }
    std::filesystem::path dir() const { return m_conf.parent_path() / "gpuq"; }

    std::filesystem::path m_conf;
};

} // namespace gpuq
