// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "core/ids.h"
#include "runs/insight/link_records.h"
#include "runs/records/journal.h"
#include "runs/status.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The history of a run, from its records. Pure.
namespace gpuq {

struct TimelineEntry {
    enum class Kind {
        waiting,     ///< a link is in the queue, and the previous one has ended
        running,     ///< a link, from the start of its supervisor
        checkpoint,  ///
        notice,      ///< warnings, signals and stop requests
        idle,        ///< its GPUs are unused
        credentials, ///< its ticket or token: obtained, renewed, expired, problems
        memory,      ///< the kernel killed processes
        retry,       ///< how a link began after another one, or why it can't be submitted
        ended,       ///< the end of a link or of the run
        other,
    };
    enum class Extent {
        moment,      ///
        span,        ///< ended at `until`
        ongoing,     ///
        end_unknown, ///< over, but no record has the end
    };
    Kind kind = Kind::other;
    LinkNumber link;
    Extent extent = Extent::moment;
    Time from;
    std::optional<Time> until; ///< set for a span only
    std::string text;          ///< not sanitised
    bool operator==(const TimelineEntry&) const = default;
};

struct Timeline {
    Time begin;                         ///< of the first entry
    Time end;                           ///< the last known time of a run that has ended, else now
    std::vector<TimelineEntry> entries; ///< in the order of `from`
    std::size_t left_out = 0;           ///< number of entries above the limit
};

/// The words for an event, as `gpuq show` prints them.
using EventText = std::function<std::string(const Event&)>;

/// Combines the status of a run with the records of some or all of its links. A link without
/// records has only its start and its end. Entries whose time is not known are left out. At most
/// `most` entries: checkpoints are left out first, then other moments, the oldest of them first.
Timeline timeline_of(const RunStatus& status, const std::vector<LinkRecords>& links,
                     const EventText& text, Time now, std::size_t most = 1000);

} // namespace gpuq
