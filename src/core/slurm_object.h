// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpuq {

/// One thing of Slurm's, as a policy wants it (policy/objects.h) or as it is (ports/admin.h). The
/// names of the fields are Slurm's, their values in one spelling, so that the two can be compared
/// as texts: times of partitions, QOS and reservations in minutes, GraceTime in seconds, memory in
/// MiB, numbers in decimal digits, yes and no as YES and NO, lists sorted and comma-separated; what
/// has Slurm's default has no field.
struct SlurmObject {
    enum class Kind {
        setting,     ///< a line of slurm.conf that the policy decides; field `value`
        requirement, ///< one that has to contain the words of field `contains`, be what `is` says,
                     ///< be `set`, as to that, be `without` a word, or be `unset`: the site's own
        hardware,    ///< of a pool's `Nodes`: at most so many `ThreadsPerCore`; `stated`: YES or NO
        partition,   ///< slurm.conf(5), PARTITION CONFIGURATION
        qos,         ///< sacctmgr(1), SPECIFICATIONS FOR QOS
        access,      ///< who has a QOS: `accounts`, `users`, comma-separated, sorted
        share,       ///< of an account: field `fairshare`
        limit,       ///< of GPUs, on an account or a user in one: `GrpTRES` and its like
        reservation, ///< scontrol(1), RESERVATIONS
        script,      ///< job_submit.lua; field `version`
        file,        ///< a generated file; field `text`
    };
    Kind kind = Kind::partition;
    std::string name;
    std::map<std::string, std::string> fields;
    int line = 0; ///< of the policy
    bool operator==(const SlurmObject&) const = default;
};

std::string_view word(SlurmObject::Kind kind);

} // namespace gpuq
