// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What scontrol and sacctmgr print, as objects; pure.
namespace gpuq::slurm {

/// `scontrol show config`: all settings.
std::vector<SlurmObject> settings_in(std::string_view printed);

/// `scontrol -o show partition`. Fields that no release between 22.05 and 26.05 leaves out, when
/// they are not as a partition is by itself.
std::vector<SlurmObject> partitions_in(std::string_view printed);

/// `scontrol -o show node`
std::vector<std::string> nodes_in(std::string_view printed);

/// The same: those with GPUs.
std::vector<std::string> gpu_nodes_in(std::string_view printed);
/// ThreadsPerCore of each node.
std::map<std::string, int> threads_in(std::string_view printed);

/// `scontrol -o show reservation`
std::vector<SlurmObject> reservations_in(std::string_view printed);

/// The words behind `scontrol update reservationname=` that make `there` the reservation that is
/// wanted, as far as an update can: what only somebody's hand has set stays. Those that differ from
/// nothing make a new one.
std::vector<std::string> reservation_words(const SlurmObject& there, const SlurmObject& wanted);

/// `squeue -h -a -o "%P|%V"`
std::vector<QueuedJob> jobs_in(std::string_view printed);

/// A field of a QOS: as objects name it (and `sacctmgr show qos format=` takes it), as `sacctmgr
/// modify qos set` takes it, and what is there when nobody said anything.
struct QosField {
    std::string_view name;
    std::string_view keyword;
    enum class Form { number, tres, flags, time, text } form;
    std::string_view unset; ///< shown when it was never set
    std::string_view reset; ///< the word that unsets it; of a TRES its amount
};
const std::vector<QosField>& qos_fields();

/// `sacctmgr -nP show qos format=Name,` and the names above.
std::vector<SlurmObject> qos_in(std::string_view printed);

/// The words after `set` that make `there` the QOS that is wanted; none when it is.
std::vector<std::string> qos_words(const SlurmObject& there, const SlurmObject& wanted);

/// One association as `sacctmgr -nP show assoc withrawqoslevel woplimits wopinfo` prints it with
/// the format below.
struct QosAssociation {
    std::string account;
    std::string user; ///< empty: the account's own
    std::string share;
    std::string qos;                 ///< `+a,-b`, or a list without signs
    std::vector<std::string> limits; ///< of its own: `MaxJobs=7`
};
/// `format=account,user,partition,share,qos,` and limits
std::string association_format();
std::vector<QosAssociation> associations_in(std::string_view printed);

/// Who has each QOS, by name. Of a user with several accounts who does not have it in all of them,
/// `user@account`; `without`: accounts and users from whom it was taken, in the same spelling.
std::vector<SlurmObject> accesses_in(const std::vector<QosAssociation>& associations);
/// Of accounts, and of users in them as `user@account`.
std::vector<SlurmObject> shares_in(const std::vector<QosAssociation>& associations);
std::vector<AssociationLimit> limits_in(const std::vector<QosAssociation>& associations);
/// The words after `set` that make the limits of GPUs of one those that are wanted.
std::vector<std::string> gpu_limit_words(const std::vector<AssociationLimit>& there,
                                         const SlurmObject& wanted);

} // namespace gpuq::slurm
