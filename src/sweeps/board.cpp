// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/board.h"

#include "core/layout.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace gpuq::sweeps {
namespace {

constexpr std::size_t k_piece = 1 << 20;
constexpr std::size_t k_most_rungs = 256; ///< more than any rule has

bool is_missing(const Error& error)
{
    return error.kind == Error::Kind::missing;
}

/// A file of any size.
Result<std::string> read_all(Store& store, const std::string& path)
{
    std::string text;
    while (true) {
        TRY_ASSIGN(const std::string piece, store.read_at(path, text.size(), k_piece));
        text += piece;
        if (piece.size() < k_piece) {
            return text;
        }
    }
}

/// A later value replaces that of the same rung.
void add_rung(std::vector<RungValue>& rungs, const RungValue& value)
{
    const auto at =
        std::lower_bound(rungs.begin(), rungs.end(), value.rung,
                         [](const RungValue& one, std::int64_t rung) { return one.rung < rung; });
    if (at != rungs.end() && at->rung == value.rung) {
        *at = value;
    } else if (rungs.size() < k_most_rungs) {
        rungs.insert(at, value);
    }
}

} // namespace

Board::Board(Store& store, RunKey sweep, const Past& past)
    : Board(store, std::move(sweep))
{
    m_past = past.ends;
    m_batches = past.batches;
    m_retries = past.retries;
    m_tries.resize(past.ends.size());
    for (std::size_t i = 0; i < past.ends.size(); ++i) {
        if (is_past(i + 1)) {
            m_tries[i].state = Try::State::ended;
            m_tries[i].end = end_with(past.ends[i], i + 1);
        }
    }
    if (past.best) {
        m_tries[past.best->number - 1].reached = past.best->values;
    }
    if (const auto first = m_past.find_first_not_of('.'); first != std::string::npos) {
        m_tries[first].used = past.used; // of all
    }
    for (const auto& [worker, event] : past.open) {
        take(worker, event);
    }
    for (const Retry& retry : past.retried) {
        m_retried[retry.number] = retry.attempt;
        m_changed.push_back(retry.number);
    }
    for (const auto& [worker, offset] : past.journals) {
        m_journals[worker] = {offset, /*is_past=*/true};
    }
}

Result<void> Board::refresh()
{
    const auto done = read();
    settle_changed();
    return done;
}

Result<void> Board::read()
{
    // Before the tries: none is added after it.
    TRY(read_closed());
    TRY(read_tries());
    TRY(read_retries());
    const auto journals = m_store.list(layout::sweep_workers(m_sweep));
    if (!journals && !is_missing(journals.error())) {
        return journals.error();
    }
    for (const std::string& name : journals ? *journals : std::vector<std::string>()) {
        TRY(read_journal(name));
    }
    m_continues_past =
        m_continues_past && std::none_of(m_journals.begin(), m_journals.end(),
                                         [](const auto& one) { return one.second.is_past; });
    const auto stop = m_store.size(layout::sweep_stop(m_sweep));
    if (!stop && !is_missing(stop.error())) {
        return stop.error();
    }
    m_stopped = stop.has_value();
    return {};
}

/// `gpuq sweep retry` removes it.
Result<void> Board::read_closed()
{
    const auto size = m_store.size(layout::sweep_closed(m_sweep));
    if (!size && !is_missing(size.error())) {
        return size.error();
    }
    if (size && !m_closed) {
        TRY_ASSIGN(m_closed, m_store.read(layout::sweep_closed(m_sweep)));
        ++m_version;
    } else if (!size && m_closed) {
        m_closed.reset();
        ++m_version;
    }
    return {};
}

Result<void> Board::read_tries()
{
    while (true) {
        const auto text = read_all(m_store, layout::sweep_tries(m_sweep, m_batches + 1));
        if (!text) {
            return is_missing(text.error()) ? Result<void>() : text.error();
        }
        ++m_batches;
        ++m_version;
        for (Values& values : tries_in(*text)) {
            m_tries.push_back({std::move(values)});
            m_changed.push_back(m_tries.size());
        }
    }
}

Result<void> Board::read_retries()
{
    while (true) {
        const auto text = read_all(m_store, layout::sweep_retries(m_sweep, m_retries + 1));
        if (!text) {
            return is_missing(text.error()) ? Result<void>() : text.error();
        }
        ++m_retries;
        for (const Retry& retry : retries_in(*text)) {
            int& attempt = m_retried[retry.number];
            attempt = std::max(attempt, retry.attempt);
            m_continues_past = m_continues_past && !is_past(retry.number);
            m_changed.push_back(retry.number);
        }
    }
}

Result<void> Board::read_journal(const std::string& name)
{
    const auto worker = RunKey::parse(name);
    if (!worker) {
        return {};
    }
    Journal& journal = m_journals[*worker];
    const std::string path = layout::sweep_worker(m_sweep, *worker);
    while (true) {
        // Of the past, the last byte is read again: it must exist.
        const std::size_t again = journal.is_past && journal.offset > 0 ? 1 : 0;
        TRY_ASSIGN(const std::string piece, m_store.read_at(path, journal.offset - again, k_piece));
        m_continues_past = m_continues_past && piece.size() >= again;
        journal.is_past = false;
        const std::size_t taken =
            take_lines(*worker, std::string_view(piece).substr(std::min(again, piece.size())));
        journal.offset += taken;
        if (piece.size() < k_piece || taken == 0) {
            return {};
        }
    }
}

/// Returns the size of the lines taken.
std::size_t Board::take_lines(const RunKey& worker, std::string_view lines)
{
    const std::size_t size = lines.size();
    for (auto end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
        if (const auto event = try_event_in(lines.substr(0, end))) {
            take(worker, *event);
        }
        lines.remove_prefix(end + 1);
    }
    // A line without its line end may be complete: the next link of the worker would end it.
    if (const auto event = try_event_in(lines)) {
        take(worker, *event);
        lines = {};
    }
    return size - lines.size();
}

void Board::take(const RunKey& worker, const TryEvent& event)
{
    m_continues_past = m_continues_past && !is_past(event.number);
    auto& attempts = m_attempts[event.number];
    auto at = std::find_if(attempts.begin(), attempts.end(),
                           [&](const Attempt& attempt) { return attempt.number >= event.attempt; });
    if (at == attempts.end() || at->number != event.attempt) {
        at = attempts.insert(at, Attempt{event.attempt, {worker, event.link}, {}, {}, {}});
    }
    if (event.kind == TryEvent::Kind::began) {
        at->began_at = event.at;
    } else if (event.kind == TryEvent::Kind::passed) {
        add_rung(at->rungs, event.rung);
    } else if (!at->end) {
        at->reached = event.values;
    }
    if (event.kind == TryEvent::Kind::ended && !at->end) {
        at->end = event;
    }
    m_changed.push_back(event.number);
}

/// Each try once: its journal has several lines.
void Board::settle_changed()
{
    std::sort(m_changed.begin(), m_changed.end());
    m_changed.erase(std::unique(m_changed.begin(), m_changed.end()), m_changed.end());
    for (const std::size_t number : m_changed) {
        settle(number);
    }
    m_changed.clear();
}

/// Derives the state of a try from its attempts: the newest one counts, and voids all that an
/// earlier one may still record. Does nothing until the list of the try has been read.
void Board::settle(std::size_t number)
{
    const auto known = m_attempts.find(number);
    if (number == 0 || number > m_tries.size() || known == m_attempts.end()) {
        return;
    }
    ++m_version;
    const auto& attempts = known->second;
    Try entry{std::move(m_tries[number - 1].values)};
    for (std::size_t i = 0; i < attempts.size(); ++i) {
        const Attempt& attempt = attempts[i];
        const Attempt* const next = i + 1 < attempts.size() ? &attempts[i + 1] : nullptr;
        const bool goes_to_end = attempt.end && attempt.end->end != TryEnd::paused;
        entry.reached = attempt.reached == TryValues() ? entry.reached : attempt.reached;
        const auto until = attempt.end ? std::optional(attempt.end->at)
                           : next      ? next->began_at
                                       : std::nullopt;
        if (attempt.began_at && until && *attempt.began_at < *until) {
            entry.used += *until - *attempt.began_at;
        }
        for (const RungValue& value : attempt.rungs) {
            add_rung(entry.rungs, value);
        }
        entry.is_exempt =
            entry.is_exempt || (attempt.end && attempt.end->end == TryEnd::stopped_early);
        if (next != nullptr) {
            entry.interruptions = goes_to_end ? 0 : entry.interruptions + 1;
            entry.reached = goes_to_end ? TryValues() : entry.reached;
        }
    }
    const Attempt& newest = attempts.back();
    const auto retried = m_retried.find(number);
    const bool counts = retried == m_retried.end() || newest.number > retried->second;
    const bool continues = newest.end && (newest.end->end == TryEnd::paused || !counts);
    entry.attempt = newest.number;
    entry.claimant = newest.claimant;
    entry.began_at = newest.began_at;
    entry.end = newest.end;
    entry.state = continues    ? Try::State::waiting
                  : newest.end ? Try::State::ended
                               : Try::State::running;
    m_tries[number - 1] = std::move(entry);
}

Past Board::past(const Metric& metric) const
{
    Past past{std::string(m_tries.size(), '.')};
    for (std::size_t i = 0; i < m_tries.size(); ++i) {
        const Try& entry = m_tries[i];
        if (entry.state != Try::State::ended) {
            continue;
        }
        past.ends[i] = mark_of(*entry.end);
        past.used += entry.used;
        const auto& best = entry.reached.best;
        if (best && (!past.best || is_better(metric, *best, *past.best->values.best))) {
            past.best = entry.end;
            past.best->values = entry.reached;
        }
    }
    const auto is_open = [&](std::size_t number) {
        return number == 0 || number > past.ends.size() || past.ends[number - 1] == '.';
    };
    for (const auto& [number, attempts] : m_attempts) {
        for (std::size_t i = 0; is_open(number) && i < attempts.size(); ++i) {
            add_events(past.open, number, attempts[i]);
        }
    }
    for (const auto& [number, attempt] : m_retried) {
        if (is_open(number)) {
            past.retried.push_back({number, attempt});
        }
    }
    past.batches = m_batches;
    past.retries = m_retries;
    for (const auto& [worker, journal] : m_journals) {
        past.journals[worker] = journal.offset;
    }
    return past;
}

/// Without its rungs.
void Board::add_events(std::vector<Past::Attempt>& events, std::size_t number,
                       const Attempt& attempt)
{
    const auto& [worker, link] = attempt.claimant;
    TryEvent event{TryEvent::Kind::reached, number, attempt.number, {}, link, attempt.reached};
    events.push_back({worker, event});
    if (attempt.began_at) {
        event.kind = TryEvent::Kind::began;
        event.at = *attempt.began_at;
        event.values = {};
        events.push_back({worker, event});
    }
    if (attempt.end) {
        events.push_back({worker, *attempt.end});
    }
}

std::chrono::microseconds gpu_time_used(const std::vector<Try>& tries, const Sweep& sweep, Time now)
{
    std::chrono::microseconds used{0};
    for (const Try& entry : tries) {
        used += entry.used;
        if (entry.state == Try::State::running && entry.began_at && *entry.began_at < now) {
            used += now - *entry.began_at;
        }
    }
    return used * sweep.run.request.gpus.count / std::max(sweep.per_gpu, 1);
}

bool is_spent(const std::vector<Try>& tries, const Sweep& sweep, Time now)
{
    return sweep.gpu_time && gpu_time_used(tries, sweep, now) >= *sweep.gpu_time;
}

std::vector<RungValue> others_at(const std::vector<Try>& tries, std::int64_t rung,
                                 std::size_t own_number)
{
    std::vector<RungValue> values;
    for (std::size_t i = 0; i < tries.size(); ++i) {
        const auto& rungs = tries[i].rungs;
        const auto at =
            std::lower_bound(rungs.begin(), rungs.end(), rung,
                             [](const RungValue& value, auto step) { return value.rung < step; });
        if (i + 1 != own_number && at != rungs.end() && at->rung == rung) {
            values.push_back(at == rungs.begin() ? *at : since(*std::prev(at), *at));
        }
    }
    return values;
}

std::optional<EarlyStop> find_loss(const StopRule& rule, const Metric& metric,
                                   const std::vector<Try>& tries, std::size_t number,
                                   const std::vector<RungValue>& rungs)
{
    for (auto value = rungs.rbegin(); value != rungs.rend(); ++value) {
        if (auto loss = evaluate(rule, metric, *value, others_at(tries, value->rung, number))) {
            return loss;
        }
    }
    return std::nullopt;
}

Tally tally_of(const std::vector<Try>& tries)
{
    Tally tally;
    for (const Try& entry : tries) {
        if (entry.state == Try::State::waiting) {
            ++tally.waiting;
        } else if (entry.state == Try::State::running) {
            ++tally.running;
        } else if (entry.end->end == TryEnd::stopped) {
            ++tally.stopped;
        } else if (entry.end->end == TryEnd::stopped_early) {
            ++tally.stopped_early;
        } else if (entry.end->end == TryEnd::finished && entry.end->status == 0) {
            ++tally.succeeded;
        } else {
            ++tally.failed;
        }
    }
    return tally;
}

std::vector<std::size_t> ranking(const std::vector<Try>& tries, const Metric& metric)
{
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < tries.size(); ++i) {
        if (tries[i].reached.best) {
            order.push_back(i);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return is_better(metric, *tries[a].reached.best, *tries[b].reached.best);
    });
    return order;
}

} // namespace gpuq::sweeps
