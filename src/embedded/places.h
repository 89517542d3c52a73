// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>

namespace gpuq::embedded {

/// Where a cluster keeps what. Two folders: `dir` outlives reboots (configuration, accounting,
/// job ids, logs), `run` does not (sockets, key, spool) and is short, because a socket's path has
/// at most 107 bytes, and open to pass for everybody, because munged insists on it.
struct Places {
    std::string dir;
    std::string run;

    std::string slurm_conf() const { return dir + "/slurm.conf"; }
    std::string gres_conf() const { return dir + "/gres.conf"; }
    std::string cgroup_conf() const { return dir + "/cgroup.conf"; }
    std::string slurmdbd_conf() const { return dir + "/slurmdbd.conf"; }
    /// What a policy makes lies where `gpuq policy apply` would put it.
    std::string policy_dir() const { return dir + "/gpuq"; }
    std::string policy_yaml() const { return policy_dir() + "/applied.yaml"; }
    std::string policy_conf() const { return policy_dir() + "/policy.conf"; }
    std::string node_probe() const { return policy_dir() + "/node-probe"; }
    std::string job_submit_lua() const { return dir + "/job_submit.lua"; }
    std::string state_file() const { return dir + "/cluster.state"; }
    std::string lock_file() const { return dir + "/lock"; }
    std::string log_dir() const { return dir + "/log"; }
    std::string log(const std::string& daemon) const { return log_dir() + "/" + daemon + ".log"; }
    /// What a daemon says on stderr; Slurm's repeat it, with times, in their own log.
    std::string words(const std::string& daemon) const
    {
        return daemon.starts_with("slurm") ? log_dir() + "/" + daemon + ".start" : log(daemon);
    }
    std::string controller_state() const { return dir + "/state"; }
    std::string database() const { return dir + "/db"; }
    std::string devices() const { return dir + "/devices"; }

    std::string munge_socket() const { return run + "/munge.socket"; }
    std::string private_dir() const { return run + "/private"; }
    std::string munge_key() const { return private_dir() + "/munge.key"; }
    std::string database_socket() const { return private_dir() + "/mysql.sock"; }
    std::string spool() const { return run + "/spool"; }
};

/// The folder of the machine's own cluster, brought up by root for everybody.
constexpr const char* k_machine_dir = "/var/lib/gpuq/cluster";

/// The folder of the caller's cluster: root's is the machine's. From XDG_STATE_HOME or HOME,
/// both as in the environment; nothing when neither is an absolute path.
std::optional<std::string> default_dir(unsigned uid, const char* xdg_state_home, const char* home);

} // namespace gpuq::embedded
