// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Converts the output of scontrol and sacctmgr to objects, and objects to arguments; pure.
namespace gpuq::slurm {

/// `scontrol show config`: all settings.
std::vector<SlurmObject> settings_in(std::string_view printed);

/// `scontrol -o show partition`. Only fields that all releases from 22.05 to 26.05 print, if they
/// differ from a partition's defaults.
std::vector<SlurmObject> partitions_in(std::string_view printed);

/// `scontrol -o show node`
std::vector<std::string> nodes_in(std::string_view printed);

/// The same: nodes with GPUs.
std::vector<std::string> gpu_nodes_in(std::string_view printed);
/// ThreadsPerCore of each node.
std::map<std::string, int> threads_in(std::string_view printed);

/// `scontrol -o show reservation`
std::vector<SlurmObject> reservations_in(std::string_view printed);

/// The arguments after `scontrol update reservationname=` that change `actual` to `desired`, as far
/// as an update can: fields that are only set by hand stay. If `actual` is empty, they create a new
/// one.
std::vector<std::string> reservation_arguments(const SlurmObject& actual,
                                               const SlurmObject& desired);

/// `squeue -h -a -o "%P|%V"`
std::vector<QueuedJob> jobs_in(std::string_view printed);

/// The jobs that may run longer than the time of their partition, each with that time.
/// `squeue -h -a -t R -o "%A|%P|%L"`: the id, the partition in which it runs, and the time left.
std::map<std::string, std::chrono::seconds>
running_longer(const std::map<std::string, std::chrono::seconds>& time_left,
               std::string_view printed);

/// A field of a QOS: its name in objects (and for `sacctmgr show qos format=`), its keyword for
/// `sacctmgr modify qos set`, and its default.
struct QosField {
    std::string_view name;
    std::string_view keyword;
    enum class Form { number, tres, flags, time, text } form;
    std::string_view unset; ///< printed if it was never set
    std::string_view reset; ///< the value that unsets it; for a TRES, the amount
};
const std::vector<QosField>& qos_fields();

/// `sacctmgr -nP show qos format=Name,` followed by the names above.
std::vector<SlurmObject> qos_in(std::string_view printed);

/// The arguments after `set` that change `actual` to `desired`; empty if they are equivalent.
std::vector<std::string> qos_arguments(const SlurmObject& actual, const SlurmObject& desired);

/// One association, as printed by `sacctmgr -nP show assoc withrawqoslevel woplimits wopinfo` with
/// the format below.
struct QosAssociation {
    std::string account;
    std::string user; ///< empty: the account itself
    std::string share;
    std::string qos;                 ///< `+a,-b`, or a list without signs
    std::vector<std::string> limits; ///< not inherited: `MaxJobs=7`
};
/// `format=account,user,partition,share,qos,`, the limits, and fields of other_associations_in()
std::string association_format();
std::vector<QosAssociation> associations_in(std::string_view printed);

/// The accounts and users that have each QOS, by its name. A user who has it in some of their
/// accounts only is written `user@account`. `without`: accounts and users from which it was
/// removed, in the same notation.
std::vector<SlurmObject> accesses_in(const std::vector<QosAssociation>& associations);
/// Shares of accounts, and of the users in them as `user@account`.
std::vector<SlurmObject> shares_in(const std::vector<QosAssociation>& associations);
/// Associations for one partition, and fields that no object above has, as texts for users.
std::vector<std::string> other_associations_in(std::string_view printed);
/// Fields of partitions and nodes that no object above has, if they differ from Slurm's defaults.
std::vector<std::string> other_partition_fields_in(std::string_view printed);
std::vector<std::string> other_node_fields_in(std::string_view printed);
std::vector<AssociationLimit> limits_in(const std::vector<QosAssociation>& associations);
/// The arguments after `set` that change the GPU limits of one account or user to `desired`.
std::vector<std::string> gpu_limit_arguments(const std::vector<AssociationLimit>& actual,
                                             const SlurmObject& desired);

} // namespace gpuq::slurm
