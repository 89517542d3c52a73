// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/cluster.h"
#include "lua/submit_script.h"
#include "machine/machine.h"
#include "ports/accounting.h"
#include "slurm/admin.h"
#include "slurm/cluster.h"
#include "slurm/sacct.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

// gpuq on a machine of the cluster: all interfaces.

namespace gpuq {
namespace {

constexpr const char* k_supervisor = "gpuq-supervisor";
constexpr const char* k_local = "local"; ///< for --cluster: the cluster of `gpuq cluster up`

/// The Slurm configuration to open; nothing: libslurm's default.
Result<std::optional<std::string>> configuration(const std::string& cluster)
{
    if (cluster == k_local) {
        TRY_ASSIGN(std::string conf, embedded::find_cluster_conf());
        return std::optional{std::move(conf)};
    }
    if (is_variable_set("SLURM_CONF") || slurm_configuration({})) {
        return std::optional<std::string>{};
    }
    const auto conf = embedded::find_cluster_conf();
    return conf ? std::optional(*conf) : std::nullopt;
}

class ClusterMachine : public Machine {
public:
    Result<Cluster*> cluster() override
    {
        if (!m_cluster) {
            if (m_conf) {
                TRY_ASSIGN(m_cluster, SlurmCluster::open(m_conf));
                return m_cluster.get();
            }
            TRY_ASSIGN(const auto chosen, chosen_cluster());
            TRY_ASSIGN(const auto conf, configuration(chosen));
            TRY_ASSIGN(auto opened, SlurmCluster::open(conf));
            TRY(check_name(*opened, chosen));
            m_cluster = std::move(opened);
        }
        return m_cluster.get();
    }

    Result<Accounting*> accounting() override
    {
        TRY(open_accounting());
        return m_accounting.get();
    }

    Result<UseRecords*> use_records() override
    {
        TRY(open_accounting());
        return m_accounting.get();
    }

    Result<Admin*> admin() override
    {
        if (!m_admin) {
            TRY(cluster()); // the same configuration for both
            TRY_ASSIGN(m_admin, SlurmAdmin::open());
        }
        return m_admin.get();
    }

    Result<std::string> jobs_since(Time since) override
    {
        TRY(accounting()); // chooses the configuration
        return slurm::jobs_since(since);
    }

    /// $GPUQ_SUPERVISOR; next to gpuq, as in a build tree; ../libexec/gpuq, as installed.
    Result<std::string> supervisor() override
    {
        if (is_variable_set("GPUQ_SUPERVISOR")) {
            return *variable_of_process("GPUQ_SUPERVISOR");
        }
        std::error_code error;
        const auto directory = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
        for (const auto& path : {directory / k_supervisor,
                                 directory.parent_path() / "libexec" / "gpuq" / k_supervisor}) {
            if (::access(path.c_str(), X_OK) == 0) {
                return path.string();
            }
        }
        return fail(
            Error::Kind::io,
            fmt::format(
                "no {} in {} or in libexec/gpuq beside it: reinstall gpuq, or set GPUQ_SUPERVISOR",
                k_supervisor, directory.string()));
    }

    Result<std::unique_ptr<SubmitScript>> submit_script(const std::string& text) override
    {
        return lua::load_submit_script(text);
    }

    void choose_cluster(const std::string& name) override { m_chosen = name; }
    void choose_configuration(const std::string& slurm_conf) override { m_conf = slurm_conf; }

private:
    Result<void> open_accounting()
    {
        if (!m_accounting) {
            TRY(cluster()); // the same configuration for both
            TRY_ASSIGN(m_accounting, SlurmAccounting::open());
        }
        return {};
    }

    Result<std::string> chosen_cluster()
    {
        if (m_chosen) {
            return *m_chosen;
        }
        TRY_ASSIGN(const cli::Settings set, settings());
        return set.cluster.value_or("");
    }

    static Result<void> check_name(Cluster& cluster, const std::string& chosen)
    {
        TRY_ASSIGN(const std::string name, cluster.name());
        if (!chosen.empty() && chosen != k_local && chosen != name) {
            return fail(
                Error::Kind::missing,
                fmt::format("no cluster '{}' here: this machine belongs to '{}'", chosen, name));
        }
        return {};
    }

    std::optional<std::string> m_chosen;
    std::optional<std::string> m_conf;
    std::unique_ptr<Cluster> m_cluster;
    std::unique_ptr<SlurmAccounting> m_accounting;
    std::unique_ptr<Admin> m_admin;
};

} // namespace
} // namespace gpuq

int main(int argc, char** argv)
{
    gpuq::prepare_process();
    if (argc == 1 && gpuq::is_accounting_process(argv[0])) {
        return gpuq::answer_query();
    }
    gpuq::ClusterMachine machine;
    return gpuq::run_program(argc, argv, machine);
}
