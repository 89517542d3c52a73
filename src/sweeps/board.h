// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/store.h"
#include "sweeps/parameters.h"
#include "sweeps/past.h"
#include "sweeps/records.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpuq::sweeps {

/// A try, according to the files of its sweep.
struct Try {
    Values values;
    enum class State {
        waiting, ///< for a worker; after a pause or a retry with `attempt` > 0
        running, ///< unless its claimant is lost (taker.h)
        ended,
    } state = State::waiting;
    int attempt = 0;                  ///< the newest one; 0: none
    int interruptions = 0;            ///< attempts right before it that did not come to an end
    std::optional<Claimant> claimant; ///< of that attempt
    std::optional<Time> began_at;     ///< that attempt
    std::optional<TryEvent> end;      ///< of that attempt
    TryValues reached;                ///< the newest values, also of the attempts it continues
    std::chrono::microseconds used{}; ///< of all attempts but the running one
    std::vector<RungValue> rungs;     ///< that any attempt has passed, in ascending order
    /// An attempt was ended early. A later one, which only the user requests, is not.
    bool is_exempt = false;
};

/// The state of a sweep, read incrementally from its files.
class Board {
public:
    /// `store` must outlive the object.
    Board(Store& store, RunKey sweep)
        : m_store(store)
        , m_sweep(std::move(sweep))
    {
    }
    /// Begins where `past` ends: of the tries that had ended it knows only the sums.
    Board(Store& store, RunKey sweep, const Past& past);

    /// Reads the changes. On an error, which may be temporary, the board is incomplete but
    /// consistent.
    Result<void> refresh();
    /// An event that `worker` has recorded, which refresh() may read later, again.
    void note(const RunKey& worker, const TryEvent& event)
    {
        take(worker, event);
        settle_changed();
    }

    /// By number, the first is 1: `tries()[0]`.
    const std::vector<Try>& tries() const& { return m_tries; }
    std::vector<Try> tries() && { return std::move(m_tries); }
    /// True while the user has stopped the sweep: no try is started.
    bool is_stopped() const { return m_stopped; }
    /// True once no more tries are proposed (`--propose`), until the user has it continued.
    bool is_closed() const { return m_closed.has_value(); }
    /// Why, if the program failed; else empty. Not sanitised.
    std::string failure() const { return m_closed.value_or(""); }
    /// For the next board of this sweep. `best`: by this metric.
    Past past(const Metric& metric) const;
    /// False if the files of the sweep no longer continue the past that the board began with, for
    /// instance as an ended try is repeated.
    bool continues_past() const { return m_continues_past; }
    /// The number of files in the list of tries.
    int batches() const { return m_batches; }
    /// Increases whenever refresh() finds a change of the tries, or that the list was closed or
    /// opened.
    std::uint64_t version() const { return m_version; }

private:
    /// An attempt at a try. Journals are read in any order, so a later attempt may be known first.
    struct Attempt {
        int number = 1;
        Claimant claimant;
        std::optional<Time> began_at;
        std::optional<TryEvent> end;
        TryValues reached;
        std::vector<RungValue> rungs;
    };
    struct Journal {
        std::uint64_t offset = 0; ///< of the first line not yet read
        bool is_past = false;     ///< not read by this board yet
    };
    Result<void> read();
    Result<void> read_closed();
    Result<void> read_tries();
    Result<void> read_retries();
    Result<void> read_journal(const std::string& name);
    std::size_t take_lines(const RunKey& worker, std::string_view lines);
    static void add_events(std::vector<Past::Attempt>& events, std::size_t number,
                           const Attempt& attempt);
    bool is_past(std::size_t number) const
    {
        return number <= m_past.size() && number > 0 && m_past[number - 1] != '.';
    }
    void take(const RunKey& worker, const TryEvent& event);
    void settle(std::size_t number);
    void settle_changed();

    Store& m_store;
    RunKey m_sweep;
    std::vector<Try> m_tries;
    // By the number of the try. A journal or a retry may be visible before the list of its tries.
    std::unordered_map<std::size_t, std::vector<Attempt>> m_attempts; ///< in ascending order
    std::map<std::size_t, int> m_retried; ///< the newest attempt that no longer counts
    std::map<RunKey, Journal> m_journals;
    std::string m_past;                 ///< Past::ends
    std::vector<std::size_t> m_changed; ///< numbers of tries to be settled; some repeatedly
    int m_batches = 0, m_retries = 0;   ///< files read
    bool m_stopped = false, m_continues_past = true;
    std::optional<std::string> m_closed;
    std::uint64_t m_version = 0;
};

/// The GPU time that the tries have used until now, running ones included. For an attempt whose end
/// is not recorded, the time until the next one counts: never too little.
std::chrono::microseconds gpu_time_used(const std::vector<Try>& tries, const Sweep& sweep,
                                        Time now);
/// Whether it has reached the sweep's limit.
bool is_spent(const std::vector<Try>& tries, const Sweep& sweep, Time now);

/// The values of all other tries that have passed a rung, their means since the rung before.
std::vector<RungValue> others_at(const std::vector<Try>& tries, std::int64_t rung,
                                 std::size_t own_number);

/// The newest of the rungs of a running try at which it loses; nothing: it continues.
std::optional<EarlyStop> find_loss(const StopRule& rule, const Metric& metric,
                                   const std::vector<Try>& tries, std::size_t number,
                                   const std::vector<RungValue>& rungs);

/// Counts for one line about a sweep.
struct Tally {
    std::size_t waiting = 0, running = 0, succeeded = 0, failed = 0, stopped = 0, stopped_early = 0;
    std::size_t all() const
    {
        return waiting + running + succeeded + failed + stopped + stopped_early;
    }
    bool operator==(const Tally&) const = default;
};
Tally tally_of(const std::vector<Try>& tries);

/// The indices of the tries that have a value, the best first; equal values by number.
std::vector<std::size_t> ranking(const std::vector<Try>& tries, const Metric& metric);

} // namespace gpuq::sweeps
