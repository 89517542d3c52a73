// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>

namespace gpuq::embedded {

/// Paths of a cluster's files. `dir` (configuration, accounting, job ids, logs) survives reboots.
/// `run` (sockets, key, spool) does not; its path is short, because socket paths are limited to 107
/// bytes, and searchable by all users, because munged requires that.
struct Places {
    std::string dir;
    std::string run;

    std::string slurm_conf() const { return dir + "/slurm.conf"; }
    std::string gres_conf() const { return dir + "/gres.conf"; }
    std::string cgroup_conf() const { return dir + "/cgroup.conf"; }
    std::string slurmdbd_conf() const { return dir + "/slurmdbd.conf"; }
    /// Files made from a policy are where `gpuq policy apply` would put them.
    std::string policy_dir() const { return dir + "/gpuq"; }
    std::string policy_yaml() const { return policy_dir() + "/applied.yaml"; }
    std::string policy_conf() const { return policy_dir() + "/policy.conf"; }
    std::string node_probe() const { return policy_dir() + "/node-probe"; }
    std::string job_submit_lua() const { return dir + "/job_submit.lua"; }
    std::string state_file() const { return dir + "/cluster.state"; }
    std::string lock_file() const { return dir + "/lock"; }
    std::string audit_log() const { return dir + "/audit.log"; } ///< PATH.1: the older half
    std::string log_dir() const { return dir + "/log"; }
    std::string log(const std::string& daemon) const { return log_dir() + "/" + daemon + ".log"; }
    /// stderr of a daemon; Slurm's daemons repeat it with times in their own log.
    std::string output_file(const std::string& daemon) const
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

/// Directory of the machine's cluster, which root runs for all users.
constexpr const char* k_machine_dir = "/var/lib/gpuq/cluster";

/// Directory of the caller's cluster; for root, the machine's cluster. Arguments are XDG_STATE_HOME
/// and HOME from the environment; nullopt when neither is an absolute path.
std::optional<std::string> default_dir(unsigned uid, const char* xdg_state_home, const char* home);

} // namespace gpuq::embedded
