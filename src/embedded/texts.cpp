// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/texts.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <string_view>

namespace gpuq::embedded {
namespace {

constexpr std::string_view k_database = "slurm_acct";
constexpr std::string_view k_can_disable_cgroups = "24.05";

/// Resources per GPU. Without GPUs, a job gets one core and its share of the memory.
struct Share {
    int cpus_per_gpu = 1;
    std::uint64_t memory_per_gpu = 0;
    std::uint64_t memory_per_cpu = 0;
};

Share share_of(const ClusterSpec& spec)
{
    const auto gpus = std::max<std::size_t>(spec.gpus.size(), 1);
    Share share;
    share.cpus_per_gpu = std::max(1, spec.cpus / static_cast<int>(gpus));
    share.memory_per_gpu = std::max<std::uint64_t>(1, spec.memory_mib / gpus);
    share.memory_per_cpu =
        std::max<std::uint64_t>(1, spec.memory_mib / static_cast<std::uint64_t>(spec.cpus));
    return share;
}

std::string tracking(Confinement confinement)
{
    return confinement == Confinement::cgroups
               ? "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n"
               : "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n";
}

/// `CPUs=20`, plus the topology if a core has several threads: then rounded up to whole cores.
std::string cpu_arguments(const ClusterSpec& spec, int index)
{
    const int threads = spec.threads_of(index);
    if (threads == 1) {
        return fmt::format("CPUs={}{}{}", spec.cpus, spec.topology.empty() ? "" : " ",
                           spec.topology);
    }
    const int cores = (spec.cpus + threads - 1) / threads;
    return fmt::format("CPUs={} CoresPerSocket={} ThreadsPerCore={}", cores * threads, cores,
                       threads);
}

std::string node_lines(const ClusterSpec& spec, const Ports& ports)
{
    std::string text;
    for (int index = 0; index < spec.nodes; ++index) {
        const std::string gres = gres_of(spec.gpus_of(index), spec.shards_of(index));
        const std::string attributes =
            spec.attributes_of(index).empty()
                ? fmt::format("{} RealMemory={}", cpu_arguments(spec, index), spec.memory_mib)
                : spec.attributes_of(index);
        text += fmt::format("NodeName={} NodeHostname=localhost NodeAddr=127.0.0.1 Port={} "
                            "{}{}{} State=UNKNOWN\n",
                            spec.node(index), ports.nodes.at(static_cast<std::size_t>(index)),
                            attributes, gres.empty() ? "" : " Gres=", gres);
    }
    return text;
}

/// TRES to account for: GPUs, and also each model under a policy, which may weight models.
std::string accounted(const ClusterSpec& spec)
{
    std::set<std::string> tres{"gres/gpu"};
    if (spec.has_shards()) {
        tres.insert("gres/shard");
    }
    for (const GpuDevice& gpu : spec.policy ? spec.gpus : std::vector<GpuDevice>{}) {
        tres.insert(gpu.model.empty() ? "gres/gpu" : "gres/gpu:" + gpu.model);
    }
    for (const NamedNode& node : spec.named) {
        for (const GpuDevice& gpu : node.gpus) {
            tres.insert(gpu.model.empty() ? "gres/gpu" : "gres/gpu:" + gpu.model);
        }
    }
    return fmt::format("{}", fmt::join(tres, ","));
}

/// Includes AccountingStorageTRES: with it but without slurmdbd, the controller does not start.
std::string accounting_lines(const ClusterSpec& spec, const Ports& ports, const Places& places)
{
    return fmt::format("AccountingStorageType=accounting_storage/slurmdbd\n"
                       "AccountingStorageHost=127.0.0.1\n"
                       "AccountingStoragePort={}\n"
                       "AccountingStoragePass={}\n"
                       "AccountingStorageTRES={}\n"
                       "AccountingStoreFlags=job_comment\n",
                       ports.accounting, places.munge_socket(), accounted(spec));
}

/// Settings that a policy requires in slurm.conf; the rest is in the file generated from it.
std::string policy_lines(const ClusterSpec& spec, const Places& places)
{
    return fmt::format("AccountingStorageEnforce=associations,limits,qos,safe\n"
                       "JobSubmitPlugins=lua\n"
                       "PriorityType=priority/multifactor\n"
                       "HealthCheckProgram={}\n"
                       "HealthCheckInterval=60\n"
                       "HealthCheckNodeState=IDLE\n"
                       "DefMemPerCPU={}\n"
                       "include {}\n",
                       places.node_probe(), share_of(spec).memory_per_cpu, places.policy_conf());
}

std::string partition_lines(const ClusterSpec& spec)
{
    const Share share = share_of(spec);
    const std::string per_gpu = spec.gpus.empty()
                                    ? ""
                                    : fmt::format(" DefCpuPerGPU={} DefMemPerGPU={}",
                                                  share.cpus_per_gpu, share.memory_per_gpu);
    return fmt::format("DefMemPerCPU={0}\n"
                       "PartitionName=calibration Nodes=ALL Default=YES MaxTime=2:00:00 "
                       "DefaultTime=2:00:00{1}\n"
                       "PartitionName=gpu Nodes=ALL MaxTime=2-00:00:00 "
                       "DefaultTime=1-00:00:00{1}\n",
                       share.memory_per_cpu, per_gpu);
}

} // namespace

std::string gres_of(const std::vector<GpuDevice>& gpus, int shards)
{
    std::vector<std::string> parts;
    for (auto first = gpus.begin(); first != gpus.end();) {
        const auto other = [&](const GpuDevice& gpu) { return gpu.model != first->model; };
        const auto last = std::find_if(first, gpus.end(), other);
        const std::string type = first->model.empty() ? "" : first->model + ":";
        parts.push_back(fmt::format("gpu:{}{}", type, last - first));
        first = last;
    }
    if (shards > 0 && !gpus.empty()) {
        parts.push_back(fmt::format("shard:{}", static_cast<std::size_t>(shards) * gpus.size()));
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

std::string slurm_conf(const ClusterSpec& spec, const Ports& ports, const Places& places,
                       ClientsListen clients)
{
    std::string text = fmt::format(
        "# Written by `gpuq cluster up` at each start; extra lines: gpuq cluster up --slurm-conf\n"
        "ClusterName={name}\n"
        "SlurmctldHost=localhost(127.0.0.1)\n"
        "SlurmctldPort={port}\n"
        "SlurmUser={user}\n"
        "SlurmdUser={user}\n"
        "AuthType=auth/munge\n"
        "CredType=cred/munge\n"
        "AuthInfo=socket={munge}\n"
        "{clients}"
        "StateSaveLocation={state}\n"
        "SlurmdSpoolDir={spool}/%n\n"
        "SlurmctldPidFile={run}/slurmctld.pid\n"
        "SlurmdPidFile={run}/slurmd-%n.pid\n"
        "SlurmctldLogFile={log}/slurmctld.log\n"
        "SlurmdLogFile={log}/slurmd-%n.log\n"
        "MpiDefault=none\n"
        "ReturnToService=2\n"
        "SlurmdParameters=config_overrides\n"
        "SchedulerType=sched/backfill\n"
        "SchedulerParameters=batch_sched_delay=0{scheduler}\n"
        "SelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_Core_Memory\n"
        "GresTypes={gres}\n"
        "JobAcctGatherType=jobacct_gather/linux\n"
        "{accounting}",
        fmt::arg("name", spec.name), fmt::arg("gres", spec.has_shards() ? "gpu,shard" : "gpu"),
        fmt::arg("scheduler",
                 spec.policy ? ",bf_continue,bf_one_resv_per_job,preempt_youngest_first" : ""),
        fmt::arg("clients", clients == ClientsListen::on_loopback
                                ? "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n"
                                : ""),
        fmt::arg("port", ports.controller), fmt::arg("user", spec.user),
        fmt::arg("munge", places.munge_socket()), fmt::arg("state", places.controller_state()),
        fmt::arg("spool", places.spool()), fmt::arg("run", places.private_dir()),
        fmt::arg("log", places.log_dir()),
        fmt::arg("accounting", spec.accounting ? accounting_lines(spec, ports, places) : ""));
    text += tracking(spec.confinement) + node_lines(spec, ports);
    text += spec.policy               ? policy_lines(spec, places)
            : spec.conf_lines.empty() ? partition_lines(spec)
                                      : fmt::format("{}\n", fmt::join(spec.conf_lines, "\n"));
    for (const std::string& line : spec.extra_lines) {
        text += line + "\n";
    }
    return text;
}

std::string gres_conf(const ClusterSpec& spec)
{
    std::string text = "AutoDetect=off\n";
    for (int index = 0; index < spec.nodes; ++index) {
        for (const GpuDevice& gpu : spec.gpus_of(index)) {
            const std::string type = gpu.model.empty() ? "" : " Type=" + gpu.model;
            text +=
                fmt::format("NodeName={} Name=gpu{} File={}\n", spec.node(index), type, gpu.file);
        }
        if (const int shards = spec.shards_of(index); shards > 0 && !spec.gpus_of(index).empty()) {
            text += fmt::format("NodeName={} Name=shard Count={}\n", spec.node(index),
                                static_cast<std::size_t>(shards) * spec.gpus_of(index).size());
        }
    }
    return text;
}

std::string cgroup_conf(const ClusterSpec& spec)
{
    if (spec.confinement == Confinement::parents) {
        // slurmd loads the plugin even if it is unused. autodetect and cgroup/v2 make slurmd exit
        // if cgroups are missing, read-only, or v1 and v2 are mixed. Releases before 24.05 do not
        // support `disabled`, but their cgroup/v1 accesses nothing until it is used.
        return fmt::format("CgroupPlugin={}\n",
                           spec.slurm_release < k_can_disable_cgroups ? "cgroup/v1" : "disabled");
    }
    // Stand-in nodes have more cores than the machine, so cores cannot be bound.
    return fmt::format("CgroupPlugin={}\n"
                       "ConstrainDevices=yes\n"
                       "ConstrainRAMSpace=yes\n"
                       "ConstrainCores={}\n",
                       spec.cgroup_plugin.empty() ? "autodetect" : spec.cgroup_plugin,
                       spec.stand_ins ? "no" : "yes");
}

std::string database_sql()
{
    return fmt::format("CREATE DATABASE {};\n", k_database);
}

std::string slurmdbd_conf(const ClusterSpec& spec, const Ports& ports, const Places& places)
{
    return fmt::format("AuthType=auth/munge\n"
                       "AuthInfo=socket={munge}\n"
                       "DbdAddr=127.0.0.1\n"
                       "DbdHost=localhost\n"
                       "DbdPort={port}\n"
                       "SlurmUser={user}\n"
                       "StorageType=accounting_storage/mysql\n"
                       "StorageHost=localhost\n"
                       "StorageUser={user}\n"
                       "StorageLoc={database}\n"
                       "LogFile={log}\n"
                       "PidFile={run}/slurmdbd.pid\n",
                       fmt::arg("munge", places.munge_socket()), fmt::arg("port", ports.accounting),
                       fmt::arg("database", k_database), fmt::arg("user", spec.user),
                       fmt::arg("log", places.log("slurmdbd")),
                       fmt::arg("run", places.private_dir()));
}

} // namespace gpuq::embedded
