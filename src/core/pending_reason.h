// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpuq {

/// Why a job waits: Slurm's word for it, a person's words, and what kind of thing it is, which
/// decides what would help.
struct PendingReason {
    enum class Kind {
        no_resources,   ///< nothing that fits is free
        others_first,   ///< jobs of a higher priority wait too
        own_limit,      ///< a limit on one person: it starts when another run of theirs ends
        group_limit,    ///< a limit on an account or a class of jobs
        too_large,      ///< it asks for more than a job may have here: it never starts
        after_another,  ///< waits for another job
        never,          ///< can't start any more
        held_by_owner,  ///<
        held_by_others, ///<
        later,          ///< a time that has not come
        closed,         ///< queue, nodes or reservation are not open
        not_allowed,    ///< account or QOS are wrong
        soon,           ///< something that passes by itself
        unknown         ///< a word that this version does not know
    };
    std::string_view word;
    std::string_view text;
    Kind kind = Kind::unknown;
};

/// Every reason known by name.
std::span<const PendingReason> pending_reasons();

/// What kind `word` is. Limits have about a hundred names; their kinds follow from their parts.
PendingReason::Kind kind_of_reason(std::string_view word);

/// True when only free GPUs and its turn are missing; false when something else has to happen first
/// (held, after another job, a time to come) or it can't start at all.
bool is_in_line(std::string_view word);

/// In a person's words, e.g. `others are before you`; Slurm's own word when it is not known.
/// `gpus`: how many the job asks for on a node; one that asks for none lacks something else, and of
/// several some may be free.
std::string waiting_in_words(std::string_view word, int gpus = 1);

} // namespace gpuq
