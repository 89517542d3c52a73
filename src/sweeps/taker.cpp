// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/taker.h"

#include "core/layout.h"
#include "runs/records/journal.h"

#include <algorithm>

namespace gpuq::sweeps {

bool is_link_over(Store& store, const Claimant& claimant)
{
    if (store.size(layout::ended_json(claimant.worker)) ||
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
    // Tries claimed by workers that could not record it.
    std::vector<std::size_t> silent;
    for (const auto& [index, attempt] : m_claimed) {
        if (m_board.tries()[index].state != Try::State::ended) {
            silent.push_back(index);
        }
    }
    return claim_first(silent, now);
}

Result<std::optional<TryTaker::Taken>>
TryTaker::claim_first(const std::vector<std::size_t>& indices, Time now)
{
    for (const std::size_t index : indices) {
        const Try& entry = m_board.tries()[index];
        const auto found = m_claimed.find(index);
        const int claimed = found == m_claimed.end() ? 0 : found->second;
        const int newest = std::max(entry.attempt, claimed);
        const bool has_ended = newest == entry.attempt && entry.state == Try::State::waiting;
        if (!has_ended && newest > 0 && !is_free_of(index, newest)) {
            continue;
        }
        TRY_ASSIGN(auto taken, claim(index, newest + 1, now));
        if (taken) {
            return taken;
        }
    }
    return std::optional<Taken>();
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
    const std::string path = layout::try_claim(m_sweep, index + 1, attempt);
    // Cheaper than an attempt to create the file.
    const bool exists = m_store.size(path).has_value();
    const auto created = exists ? Result<void>(fail(Error::Kind::busy, path))
                                : m_store.write_once(path, to_text(m_self));
    if (!created && created.error().kind != Error::Kind::busy) {
        return created.error();
    }
    if (!created) {
        m_claimed[index] = std::max(m_claimed[index], attempt);
        return std::optional<Taken>();
    }
    // Without this line the claim alone shows whose the attempt is.
    (void)record({TryEvent::Kind::began, index + 1, attempt, now, m_self.link});
    const Try& entry = m_board.tries()[index];
    const bool is_interrupted = attempt > 1 && entry.state != Try::State::ended &&
                                !(entry.end && entry.end->end != TryEnd::paused);
    return std::optional(
        Taken{index + 1, attempt, is_interrupted ? entry.interruptions + 1 : 0, entry.values});
}

Result<void> TryTaker::record(const TryEvent& event)
{
    return m_store.append_line(layout::sweep_worker(m_sweep, m_self.worker), to_line(event));
}

} // namespace gpuq::sweeps
