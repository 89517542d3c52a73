// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "checkpoint/found.h"
#include "runs/chain.h"
#include "supervisor/supervise.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a chain asks of the disk and of Slurm. Everything here may block for long and is called in
/// helper processes (supervisor/helper.h), whose answers are texts.
namespace gpuq::supervisor {

/// A checkpoint of the program, and what the user's own check (--valid) says of it.
struct Seen {
    checkpoint::Found found;
    std::optional<bool> valid; ///< nothing: not asked
    bool operator==(const Seen&) const = default;
};
/// The newest few that stand at the program's place, newest first.
using Sights = std::vector<Seen>;

/// May be resumed from: whole, and not refused by the user's own check.
bool is_usable(const Seen& seen, const Chain& chain);
/// The newest usable one, or nothing; it points into `sights`.
const Seen* newest_usable(const Sights& sights, const Chain& chain);

std::string packed(const Sights& sights);
Sights sights_in(std::string_view packed);

/// Looks again, `before` being what was seen last. New whole ones are checked by the user's own
/// command, and the newest two usable ones are kept out of the program's reach.
Sights look_at_checkpoints(Store& store, const Run& run, const Sights& before);

/// How a link begins.
struct Turn {
    Restart restart = Restart::first;
    std::string checkpoint;         ///< to resume from; empty: none
    std::chrono::seconds length{0}; ///< of this link
    std::chrono::seconds lead{0};   ///< of the notice before its end
    std::string why;                ///< in words
    std::optional<Ending> previous; ///< of the link before, when it could not say so itself
    std::string changed; ///< files of the program that changed since then, by comma; empty: none
};

/// The turn of the first link.
Turn first_turn(const Request& request);

/// Judges the link before `options.link`: a turn, or `leave`, or neither while it is not known yet.
struct Judged {
    std::optional<Turn> turn;
    bool leave = false; ///< the run is over, and it is on disk that it is
    std::string wait;   ///< why there is no answer yet
};
Judged judge_predecessor(Doors& doors, const Options& options);
std::string packed(const Judged& judged);
std::optional<Judged> judged_in(std::string_view packed);

/// Submits the link after this one: `job ID`, `later WHY` or `none`.
std::string submit_next(Doors& doors, const Options& options, const Turn& turn);

/// After the end of the program: whether the run goes on. If so, makes sure that the next link has
/// its job. Go::wait: the record of the run could not be read.
struct Settled {
    Verdict verdict;
    Sights sights;
    std::optional<JobId> next;
};
/// `self`: this link as far as this process knows it, with its ending. `by_itself`: the program
/// has left and was not killed, so what it wrote last is as it wanted it.
Settled settle(Doors& doors, const Options& options, LinkPast self, const Sights& before,
               bool by_itself);
std::string packed(const Settled& settled);
std::optional<Settled> settled_in(std::string_view packed);

/// The run is over, and that is on disk: the job of the next link is taken back. One that stays,
/// because Slurm does not answer, finds that out itself and leaves.
void withdraw_next(Doors& doors, const Options& options);

} // namespace gpuq::supervisor
