// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpuq {

/// A Slurm object, either as required by a policy (policy/objects.h) or as found in the cluster
/// (ports/admin.h). Field names are Slurm's. Values are normalized so that the two can be compared
/// as text: times of partitions, QOS and reservations in minutes, GraceTime in seconds, memory in
/// MiB, numbers in decimal digits, booleans as YES and NO, lists sorted and comma-separated. A
/// field with Slurm's default value is omitted.
struct SlurmObject {
    enum class Kind {
        setting,     ///< a line of slurm.conf that the policy determines; field `value`
        requirement, ///< a line of slurm.conf that the site sets, with a condition: it must contain
                     ///< the items of `contains`, equal `is`, not have the item `without`, be
                     ///< `unset`, or be set at all (`set` suggests a value)
        hardware,    ///< of a pool's `Nodes`: maximum `ThreadsPerCore`; `stated`: YES or NO
        partition,   ///< slurm.conf(5), PARTITION CONFIGURATION
        qos,         ///< sacctmgr(1), SPECIFICATIONS FOR QOS
        access,      ///< who may use a QOS: `accounts`, `users`; comma-separated, sorted
        share,       ///< an account's share: field `fairshare`
        limit,       ///< GPU limits of an account or of a user in one: `GrpTRES` and the like
        reservation, ///< scontrol(1), RESERVATIONS
        script,      ///< job_submit.lua; field `version`
        file,        ///< a generated file; field `text`
    };
    Kind kind = Kind::partition;
    std::string name;
    std::map<std::string, std::string> fields;
    int line = 0; ///< line in the policy file
    bool operator==(const SlurmObject&) const = default;
};

std::string_view word(SlurmObject::Kind kind);

} // namespace gpuq
