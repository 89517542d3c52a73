// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "sweeps/board.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace gpuq::sweeps {

/// Whether a link has ended for certain, with all its processes, according to the disk: its
/// supervisor or guardian has recorded the end, a client has learnt it from Slurm, the next link
/// has begun, or the records of its run, which had ended, have been removed.
bool is_link_over(Store& store, const Claimant& claimant);

/// Takes one try after the other for a link of a worker.
///
/// An attempt at a try belongs to the link that creates its claim file, which only one can. A later
/// attempt may be claimed once the earlier one has recorded its end, or once its claimant is over
/// for certain, with all its processes; it makes everything that the earlier one may still record
/// void. So a try is never run twice at the same time and has one end, wherever a worker dies.
///
/// A failed write may have created the claim file nevertheless, if only its directory could not be
/// synchronised: the next call looks at its content. No try is given out before its beginning is in
/// the journal, because its GPU time would not be counted otherwise.
class TryTaker {
public:
    /// Whether that link, and all processes of it, have ended for certain.
    using IsOver = std::function<bool(const Claimant&)>;

    /// `store` must outlive the object.
    TryTaker(Store& store, RunKey sweep, Claimant self, IsOver is_over);

    struct Taken {
        std::size_t number = 0;
        int attempt = 1;
        /// Attempts before this one that did not come to an end, one after the other.
        int interruptions = 0;
        Values values;
    };
    /// The next try for this worker: paused ones first, then those not begun, then those of workers
    /// that are over. Nothing: none is left, or the sweep is stopped. An error may be temporary.
    Result<std::optional<Taken>> next(Time now);

    /// Appends to this worker's journal. An end must be recorded before the next try is taken;
    /// after an error, which may be temporary, it may be recorded again.
    Result<void> record(const TryEvent& event);

    /// Whether the tries have used the GPU time of the sweep. If the files can't be read now,
    /// the running tries known are assumed to run still.
    bool is_spent(const Sweep& sweep, Time now);

    Result<void> refresh() { return m_board.refresh(); }
    const Board& board() const { return m_board; }

private:
    Result<std::optional<Taken>> claim_first(const std::vector<std::size_t>& indices, Time now);
    Result<std::optional<int>> followed_attempt(std::size_t index);
    int newest_attempt(std::size_t index) const;
    Result<std::optional<Taken>> claim(std::size_t index, int attempt, Time now);
    Result<void> create_claim(std::size_t index, int attempt);
    Result<std::optional<Taken>> begin(Time now);
    bool is_free_of(std::size_t index, int attempt);
    bool is_over(const Claimant& claimant);

    Store& m_store;
    RunKey m_sweep;
    Claimant m_self;
    IsOver m_is_over;
    Board m_board;
    /// Attempts that were found claimed though no journal mentions them yet.
    std::map<std::size_t, int> m_claimed;
    /// Attempts whose claim files could not be written, but may exist.
    std::set<std::pair<std::size_t, int>> m_doubtful;
    std::optional<Taken> m_begins; ///< claimed, but its beginning is not recorded yet
    std::vector<Claimant> m_over;  ///< links known to be over
};

} // namespace gpuq::sweeps
