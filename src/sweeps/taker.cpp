// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/taker.h"

#include "core/layout.h"
#include "runs/records/journal.h"
#include "sweeps/missing.h"

#include <algorithm>
#include <utility>

namespace gpuq::sweeps {

bool is_link_over(Store& store, const Claimant& claimant)
{
    // A run is on disk before anything is submitted: `gpuq clean` has removed it.
    if (is_missing(store, layout::run_json(claimant.worker)) ||
        store.size(layout::ended_json(claimant.worker)) ||
        store.size(layout::claim(claimant.worker, LinkNumber{claimant.link.value + 1}))) {
        return true;
    }
    const auto text = store.read(layout::journal(claimant.worker, claimant.link));
    const auto events = text ? parse_journal(*text) : std::vector<Event>();
    return std::any_of(events.begin(), events.end(),
                       [](const Event& event) { return event.kind == Event::Kind::ended; });
}

TryTaker::TryTaker(Store& store, RunKey sweep, Claimant self, IsOver is_over)
    : m_store(store)
    , m_sweep(sweep)
    , m_self(std::move(self))
    , m_is_over(std::move(is_over))
    , m_board(store, std::move(sweep))
{
}

Result<std::optional<TryTaker::Taken>> TryTaker::next(Time now)
{
    TRY(m_board.refresh());
    if (m_board.is_stopped()) {
        return std::optional<Taken>();
    }
    if (m_begins) {
        return begin(now);
    }
    std::vector<std::size_t> paused, fresh, running;
    for (std::size_t i = 0; i < m_board.tries().size(); ++i) {
        const Try& entry = m_board.tries()[i];
        if (entry.state == Try::State::waiting) {
            (entry.attempt > 0 ? paused : fresh).push_back(i);
        } else if (entry.state == Try::State::running) {
            running.push_back(i);
        }
    }
    for (const auto& indices : {paused, fresh, running}) {
        TRY_ASSIGN(auto taken, claim_first(indices, now));
        if (taken) {
            return taken;
        }
    }
    // Tries claimed by workers that could not record it, perhaps by several in turn.
    for (const auto& [index, attempt] : std::map(m_claimed)) {
        const auto has_ended = [&, at = index] {
            return m_board.tries()[at].state == Try::State::ended;
        };
        for (int seen = 0; seen != m_claimed[index] && !has_ended();) {
            seen = m_claimed[index];
            TRY_ASSIGN(auto taken, claim_first({index}, now));
            if (taken) {
                return taken;
            }
        }
    }
    return std::optional<Taken>();
}

Result<std::optional<TryTaker::Taken>>
TryTaker::claim_first(const std::vector<std::size_t>& indices, Time now)
{
    for (const std::size_t index : indices) {
        TRY_ASSIGN(const auto earlier, followed_attempt(index));
        if (!earlier) {
            continue;
        }
        TRY_ASSIGN(auto taken, claim(index, *earlier + 1, now));
        if (taken) {
            return taken;
        }
    }
    return std::optional<Taken>();
}

/// The attempt that a new one may follow, 0 for the first; nothing: it may still run, or is the
/// last one.
Result<std::optional<int>> TryTaker::followed_attempt(std::size_t index)
{
    const int newest = newest_attempt(index);
    const Try& known = m_board.tries()[index];
    if (newest == 0 || (newest == known.attempt && known.state == Try::State::waiting)) {
        return std::optional(newest);
    }
    if (!is_free_of(index, newest)) {
        return std::optional<int>();
    }
    // Its claimant may have recorded the end since the board was read, just before it was over.
    TRY(m_board.refresh());
    const bool has_ended = m_board.tries()[index].state == Try::State::ended;
    return has_ended || newest_attempt(index) != newest ? std::optional<int>()
                                                        : std::optional(newest);
}

int TryTaker::newest_attempt(std::size_t index) const
{
    const auto claimed = m_claimed.find(index);
    return std::max(m_board.tries()[index].attempt,
                    claimed == m_claimed.end() ? 0 : claimed->second);
}

/// Whether the claimant of an attempt without an end is over.
bool TryTaker::is_free_of(std::size_t index, int attempt)
{
    const auto text = m_store.read(layout::try_claim(m_sweep, index + 1, attempt));
    const auto claimant = text ? claimant_in(*text) : std::nullopt;
    return claimant && is_over(*claimant);
}

bool TryTaker::is_over(const Claimant& claimant)
{
    if (claimant.worker == m_self.worker) {
        return claimant.link < m_self.link; // one link after the other
    }
    if (std::find(m_over.begin(), m_over.end(), claimant) != m_over.end()) {
        return true;
    }
    if (!m_is_over(claimant)) {
        return false;
    }
    m_over.push_back(claimant);
    return true;
}

Result<std::optional<TryTaker::Taken>> TryTaker::claim(std::size_t index, int attempt, Time now)
{
    const auto created = create_claim(index, attempt);
    if (!created && created.error().kind != Error::Kind::busy) {
        return created.error();
    }
    if (!created) {
        m_claimed[index] = std::max(m_claimed[index], attempt);
        return std::optional<Taken>();
    }
    const Try& entry = m_board.tries()[index];
    const bool is_interrupted = entry.attempt > 0 && entry.state != Try::State::ended &&
                                !(entry.end && entry.end->end != TryEnd::paused);
    m_begins =
        Taken{index + 1, attempt, is_interrupted ? entry.interruptions + 1 : 0, entry.values};
    return begin(now);
}

/// `busy` if another link has the attempt.
Result<void> TryTaker::create_claim(std::size_t index, int attempt)
{
    const std::string path = layout::try_claim(m_sweep, index + 1, attempt);
    const bool exists = m_store.size(path).has_value(); // cheaper than an attempt to create it
    const auto created = exists ? Result<void>(fail(Error::Kind::busy, path))
                                : m_store.write_once(path, to_text(m_self));
    const std::pair attempted(index, attempt);
    if (!created && created.error().kind != Error::Kind::busy) {
        m_doubtful.insert(attempted);
    } else if (!created && m_doubtful.contains(attempted)) {
        TRY_ASSIGN(const std::string text, m_store.read(path));
        m_doubtful.erase(attempted);
        return claimant_in(text) == m_self ? Result<void>() : created;
    }
    return created;
}

Result<std::optional<TryTaker::Taken>> TryTaker::begin(Time now)
{
    TRY(record({TryEvent::Kind::began, m_begins->number, m_begins->attempt, now, m_self.link}));
    return std::exchange(m_begins, std::nullopt);
}

Result<void> TryTaker::record(const TryEvent& event)
{
    TRY(m_store.append_line(layout::sweep_worker(m_sweep, m_self.worker), to_line(event)));
    m_board.note(m_self.worker, event);
    return {};
}

bool TryTaker::is_spent(const Sweep& sweep, Time now)
{
    if (sweep.gpu_time) {
        (void)m_board.refresh(); // else it is incomplete, but consistent
    }
    return sweeps::is_spent(m_board.tries(), sweep, now);
}

} // namespace gpuq::sweeps
