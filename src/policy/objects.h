// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "policy/policy.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuq::policy {

/// One thing of Slurm's that a policy wants to be so. The names of the fields are Slurm's, their
/// values in one spelling (below), so that what is wanted and what is there can be compared as
/// texts.
struct Object {
    enum class Kind {
        setting,     ///< a line of slurm.conf that the policy decides; field `value`
        requirement, ///< one that has to contain the words of field `contains`: the site's own
        partition,   ///< slurm.conf(5), PARTITION CONFIGURATION
        qos,         ///< sacctmgr(1), SPECIFICATIONS FOR QOS
        access,      ///< who has a QOS: `accounts`, `users`, comma-separated, sorted
        share,       ///< of an account: field `fairshare`
        reservation, ///< scontrol(1), RESERVATIONS
        script,      ///< job_submit.lua; field `version`
    };
    Kind kind = Kind::partition;
    std::string name;
    std::map<std::string, std::string> fields;
    int line = 0; ///< of the policy
    bool operator==(const Object&) const = default;
};
std::string_view word(Object::Kind kind);

/// Everything that a policy wants of Slurm, by kind in the order above, by name within a kind.
///
/// Spellings: times of partitions and QOS in minutes, GraceTime in seconds, memory in MiB, numbers
/// in decimal digits, yes and no as YES and NO, lists sorted and comma-separated, node lists as
/// they stand in the policy; a limit that is not there has no field.
///
/// - A queue is its partitions (doors.h), a QOS `gpuq_QUEUE` with the hard limits, which the
///   generated lua gives to its jobs and which alone opens its partitions, and `gpuq_QUEUE_soft`
///   with the soft ones, as the partition QOS of the preferred doors: where a partition's QOS has a
///   limit, the job's own is not looked at (resource_limits.shtml, "Hierarchy").
/// - Who may use a queue is who has its QOS: Slurm holds that, whatever becomes of the lua.
/// - GPU-hours are what counts in fair share: TRESBillingWeights has nothing but GPUs.
std::vector<Object> objects_of(const Policy& policy);

/// The text that slurm.conf includes: settings and partitions.
std::string slurm_conf_of(const Policy& policy);

} // namespace gpuq::policy
