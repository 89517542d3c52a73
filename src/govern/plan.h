// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/slurm_object.h"
#include "ports/admin.h"

#include <optional>
#include <string>
#include <vector>

/// What has to change in Slurm for a policy to be in force, as values: who would do it is in
/// apply.h.
namespace gpuq::govern {

/// What a change does to those who use the cluster: whether they may do less, or more.
enum class Effect { neither = 0, tightens = 1, loosens = 2, both = 3 };
constexpr Effect operator|(Effect one, Effect other)
{
    return static_cast<Effect>(static_cast<int>(one) | static_cast<int>(other));
}
/// `tightens`, `loosens`, `tightens and loosens`; empty for neither.
std::string_view word(Effect effect);

struct FieldChange {
    std::string name;
    std::optional<std::string> was;     ///< nothing: Slurm's default
    std::optional<std::string> becomes; ///< the same
    Effect effect = Effect::neither;
    bool operator==(const FieldChange&) const = default;
};

struct Change {
    enum class Action { create, modify, remove };
    Action action = Action::modify;
    SlurmObject::Kind kind = SlurmObject::Kind::partition;
    std::string name;
    std::vector<FieldChange> fields; ///< by name; of a removal none
    int line = 0;                    ///< of the policy
    Effect effect = Effect::neither;
    bool operator==(const Change&) const = default;
};

/// The changes that lead from what there is to what is wanted, in the order of the kinds, by name
/// within one. Objects that are neither wanted nor `owned` (what the policy before wanted) are left
/// alone, but for QOS whose name begins with `gpuq_`, and for shares where any are wanted.
/// `requirement`s are not changes: obstacles.h.
std::vector<Change> changes(const std::vector<SlurmObject>& wanted, const SlurmState& there,
                            const std::vector<SlurmObject>& owned);

/// Limits of GPUs that somebody has set on accounts and users, beside the QOS: no policy wants any.
/// What was used up (GrpTRESMins) is no such limit, but a budget.
std::vector<SlurmObject> gpu_limits(const SlurmState& there);

/// Whether every GPU there is is the policy's: then such limits are, too. Elsewhere they may be
/// meant for other GPUs.
bool rules_all_gpus(const std::vector<SlurmObject>& wanted, const SlurmState& there);

/// The object of that kind and name, or null.
const SlurmObject* find(const std::vector<SlurmObject>& objects, SlurmObject::Kind kind,
                        const std::string& name);

/// A field of an object that has to become another, and whether the two say the same already.
bool says_the_same(SlurmObject::Kind kind, const std::string& field,
                   const std::optional<std::string>& one, const std::optional<std::string>& other,
                   const std::vector<std::string>& all_nodes);

/// What is at least as tight as both: of each limit the lower one, of each list the common part.
/// What is no limit is as in `wanted`. For partitions, QOS and access.
SlurmObject tightest(const SlurmObject& there, const SlurmObject& wanted,
                     const std::vector<std::string>& all_nodes);

} // namespace gpuq::govern
