// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <optional>
#include <string>
#include <vector>

/// The changes in Slurm that put a policy in force, as values; apply.h makes them.
namespace gpuq::govern {

/// The effect of a change on users of the cluster: whether they may do less, or more.
enum class Effect { neither = 0, tightens = 1, loosens = 2, both = 3 };
constexpr Effect operator|(Effect one, Effect other)
{
    return static_cast<Effect>(static_cast<int>(one) | static_cast<int>(other));
}
/// `tightens`, `loosens`, `tightens and loosens`; empty for neither.
std::string_view word(Effect effect);

struct FieldChange {
    std::string name;
    std::optional<std::string> was;     ///< nullopt: Slurm's default
    std::optional<std::string> becomes; ///< likewise
    Effect effect = Effect::neither;
    bool operator==(const FieldChange&) const = default;
};

struct Change {
    enum class Action { create, modify, remove };
    Action action = Action::modify;
    SlurmObject::Kind kind = SlurmObject::Kind::partition;
    std::string name;
    std::vector<FieldChange> fields; ///< by name; empty for a removal
    int line = 0;                    ///< in the policy file
    Effect effect = Effect::neither;
    bool operator==(const Change&) const = default;
};

/// The changes from the existing to the wanted objects, sorted by kind, then by name. Objects that
/// are neither wanted nor `owned` (wanted by the previous policy) are left alone, except QOS whose
/// name begins with `gpuq_`, shares if any are wanted, and gpu_limits(). Requirements and hardware
/// yield no changes: see obstacles.h.
std::vector<Change> changes(const std::vector<SlurmObject>& desired, const SlurmState& actual,
                            const std::vector<SlurmObject>& owned);

/// Only the changes to the objects in `desired`: the rest is left alone.
std::vector<Change> changes_to(const std::vector<SlurmObject>& desired, const SlurmState& actual);

/// GPU limits that are set on accounts and users, rather than on a QOS; no policy wants any.
/// GrpTRESMins, which limits accumulated use, does not count: it is a budget.
std::vector<SlurmObject> gpu_limits(const SlurmState& actual);

/// Whether the policy manages all GPUs: then it manages such limits, too. Otherwise they may be
/// meant for other GPUs.
bool rules_all_gpus(const std::vector<SlurmObject>& desired, const SlurmState& actual);

/// The object of this kind and name, or null.
const SlurmObject* find(const std::vector<SlurmObject>& objects, SlurmObject::Kind kind,
                        const std::string& name);

/// Whether two values of a field are equivalent.
bool is_same_value(SlurmObject::Kind kind, const std::string& field,
                   const std::optional<std::string>& one, const std::optional<std::string>& other,
                   const std::vector<std::string>& all_nodes);

/// An object at least as tight as both: the lower value of each limit, the intersection of each
/// list. Other fields are as in `desired`. For partitions, QOS and access.
SlurmObject tightest(const SlurmObject& actual, const SlurmObject& desired,
                     const std::vector<std::string>& all_nodes);

} // namespace gpuq::govern
