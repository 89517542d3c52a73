// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <string>
#include <string_view>
#include <vector>

/// Converts QOS and associations, as sacctmgr prints them, to objects, and objects to arguments;
/// pure.
namespace gpuq::slurm {

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
std::vector<AssociationLimit> limits_in(const std::vector<QosAssociation>& associations);
/// The arguments after `set` that change the GPU limits of one account or user to `desired`.
std::vector<std::string> gpu_limit_arguments(const std::vector<AssociationLimit>& actual,
                                             const SlurmObject& desired);

} // namespace gpuq::slurm
