// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/gpu_request.h"

#include <span>
#include <string>
#include <string_view>

namespace gpuq {

/// Why a job is pending: Slurm's reason, an explanation for users, and its kind, which determines
/// possible remedies.
struct PendingReason {
    enum class Kind {
        no_resources,   ///< no free resources that fit
        others_first,   ///< jobs with higher priority are pending too
        own_limit,      ///< per-user limit: the job starts when another run of the user ends
        group_limit,    ///< a limit on an account or a class of jobs
        too_large,      ///< exceeds a limit per job: never starts
        after_another,  ///< depends on another job
        never,          ///< can no longer start
        held_by_owner,  ///<
        held_by_others, ///<
        later,          ///< its begin time is in the future
        closed,         ///< queue, nodes or reservation not open
        not_allowed,    ///< invalid account or QOS
        soon,           ///< resolves without user action
        unknown         ///< not in this version's table
    };
    std::string_view word;
    std::string_view text;
    Kind kind = Kind::unknown;
};

/// All reasons known by name.
std::span<const PendingReason> pending_reasons();

/// The kind of reason `word`. Slurm has about a hundred limit names; their kinds are derived from
/// parts of the name.
PendingReason::Kind kind_of_reason(std::string_view word);

/// True when the job only waits for free resources and its turn; false when another condition must
/// be met first (held, dependency, begin time) or the job cannot start at all.
bool is_in_line(std::string_view word);

/// Explanation for users, e.g. `others are before you`; Slurm's own reason if unknown. `asked`
/// selects the text for `Resources`: a job without GPUs lacks something else, some of several GPUs
/// may be free, and a GPU has several shares.
std::string pending_reason_text(std::string_view word, const GpuRequest& asked = {});

} // namespace gpuq
