// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/growth.h"

#include "core/layout.h"
#include "runs/records/journal.h"
#include "sweeps/forecast.h"
#include "sweeps/missing.h"
#include "sweeps/taker.h"

#include <algorithm>
#include <chrono>

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

/// A worker takes some seconds to start. It is worth that if the others need longer than this.
constexpr microseconds k_worth = 30s;
/// From the claim of a vacancy to the job of the new worker; one that takes longer counts as dead.
constexpr auto k_to_submit = 2min;
/// After a worker that has begun no try.
constexpr auto k_after_failure = 10min;

/// Whether a link has ended, or has to end.
bool is_ending(Store& store, const RunKey& worker, LinkNumber link)
{
    using Kind = Event::Kind;
    const auto text = store.read(layout::journal(worker, link));
    const auto events = text ? parse_journal(*text) : std::vector<Event>();
    return std::any_of(events.begin(), events.end(), [](const Event& event) {
        return event.kind == Kind::signalled || event.kind == Kind::stop_asked ||
               event.kind == Kind::noticed || event.kind == Kind::ended;
    });
}

} // namespace

bool is_worker_worthwhile(const std::vector<Try>& tries, const Sweep& sweep, Time now)
{
    const Tally tally = tally_of(tries);
    const auto running = static_cast<std::int64_t>(std::max<std::size_t>(tally.running, 1));
    const microseconds time_of_list =
        typical_time(tries, now) * static_cast<std::int64_t>(tally.waiting) / running;
    const bool is_worth = tally.running == 0 ? tally.waiting > 0 : time_of_list >= k_worth;
    if (!is_worth || !sweep.gpu_time) {
        return is_worth;
    }
    const microseconds left = microseconds(*sweep.gpu_time) - gpu_time_used(tries, sweep, now);
    const auto gpus = running * sweep.run.request.gpus.count;
    return left * std::max(sweep.per_gpu, 1) >= k_worth * gpus;
}

bool Growth::is_allowed()
{
    return m_store.size(layout::sweep_grows(m_sweep)).has_value();
}

Result<std::optional<Vacancy>> Growth::vacancy(const Sweep& sweep, const Board& board, Time now)
{
    if (board.is_stopped() || !is_worker_worthwhile(board.tries(), sweep, now)) {
        return std::optional<Vacancy>();
    }
    TRY_ASSIGN(const auto workers, this->workers());
    // The newest one first: it is the one that waits, if any does.
    const bool one_waits = std::any_of(workers.rbegin(), workers.rend(),
                                       [&](const RunKey& worker) { return waits(worker, now); });
    if (workers.empty() || one_waits) {
        return std::optional<Vacancy>();
    }
    TRY_ASSIGN(RunKey behind, newest(workers));
    if (!is_followed_by_another(workers, behind, now)) {
        return std::optional<Vacancy>();
    }
    return std::optional(Vacancy{std::move(behind), static_cast<int>(workers.size()) + 1});
}

bool Growth::is_newest_of_several(const RunKey& self, Time now)
{
    const auto workers = this->workers();
    if (!workers) {
        return false;
    }
    bool is_one_older = false;
    for (const RunKey& worker : *workers) {
        if (worker == self || !sign_of_life(worker, now)) {
            continue;
        }
        if (worker > self) {
            return false;
        }
        is_one_older = true;
    }
    return is_one_older;
}

Growth::Older Growth::older_than(const RunKey& self, Time now)
{
    const auto workers = this->workers();
    if (!workers) {
        return Older::gone; // an error of the disk ends this worker
    }
    constexpr int k_enough = 2;
    Older older = Older::gone;
    for (auto worker = workers->begin(); worker != workers->end() && *worker < self; ++worker) {
        const auto beat = sign_of_life(*worker, now);
        if (!beat) {
            continue;
        }
        Signs& signs = m_signs.try_emplace(*worker, Signs{*beat, now}).first->second;
        if (!(signs.last == *beat)) {
            signs.last = *beat;
            ++signs.count;
        }
        if (signs.count >= k_enough) {
            older = Older::continues;
            break;
        }
        if (now - signs.since <= 2 * k_heartbeat_fresh) { // else its clock is ahead
            older = Older::unknown;
        }
    }
    if (older != Older::unknown) {
        m_signs.clear();
    }
    return older;
}

/// If a link of it certainly runs and is not about to end.
std::optional<Heartbeat> Growth::sign_of_life(const RunKey& worker, Time now)
{
    if (waits(worker, now) || m_next[worker] == LinkNumber{}) {
        return std::nullopt;
    }
    const LinkNumber link{m_next[worker].value - 1};
    const auto text = m_store.read(layout::heartbeat(worker, link));
    const auto beat = text ? parse_heartbeat(*text) : std::nullopt;
    const bool is_alive =
        beat && is_fresh(*beat, now) && is_missing(m_store, layout::ended_json(worker));
    return is_alive && !is_ending(m_store, worker, link) ? beat : std::nullopt;
}

/// In the order of their keys.
Result<std::vector<RunKey>> Growth::workers() const
{
    TRY_ASSIGN(const auto names, m_store.list(layout::sweep_runs(m_sweep)));
    std::vector<RunKey> workers;
    for (const std::string& name : names) {
        if (const auto key = RunKey::parse(name)) {
            workers.push_back(*key);
        }
    }
    std::sort(workers.begin(), workers.end());
    return workers;
}

/// Whether it waits for its start, or for that of its next link; also if that is unknown. Not if
/// it is not to start.
bool Growth::waits(const RunKey& worker, Time now)
{
    LinkNumber& next = m_next[worker];
    while (m_store.size(layout::claim(worker, next))) {
        ++next.value;
    }
    const bool is_first = next == LinkNumber{};
    if (is_missing(m_store, layout::job_json(worker, next))) {
        return is_first && now - worker.made_at() < k_to_submit; // it is being submitted
    }
    if (is_missing(m_store, layout::run_json(worker)) || m_store.size(layout::ended_json(worker)) ||
        m_store.size(layout::inbox(worker) + "/" + layout::k_stop_request)) {
        return false;
    }
    return is_first || is_link_over(m_store, {worker, LinkNumber{next.value - 1}});
}

/// Follows the claims from the worker with the latest key: clocks of nodes may differ.
Result<RunKey> Growth::newest(const std::vector<RunKey>& workers)
{
    RunKey newest = workers.back();
    constexpr int k_most = 10'000;
    for (int i = 0; i < k_most; ++i) {
        const auto text = m_store.read(layout::sweep_added(m_sweep, newest));
        if (!text) {
            return text.error().kind == Error::Kind::missing ? Result<RunKey>(std::move(newest))
                                                             : text.error();
        }
        TRY_ASSIGN(newest, RunKey::parse(*text));
    }
    return fail(Error::Kind::internal, "too many workers");
}

bool Growth::is_followed_by_another(const std::vector<RunKey>& workers, const RunKey& newest,
                                    Time now)
{
    const auto age = now - newest.made_at();
    if (!std::binary_search(workers.begin(), workers.end(), newest)) {
        return age >= k_to_submit; // its process has died
    }
    return m_store.size(layout::sweep_worker(m_sweep, newest)) || age >= k_after_failure;
}

Result<void> fill(Store& store, const RunKey& sweep, const Vacancy& vacancy, const RunKey& worker,
                  const std::function<Result<void>()>& submit)
{
    const std::string claim = layout::sweep_added(sweep, vacancy.behind);
    TRY(store.write_once(claim, worker.text()));
    auto done = is_missing(store, layout::sweep_grows(sweep)) // the user has given a number since
                    ? Result<void>(fail(Error::Kind::busy, "the sweep does not grow any more"))
                    : store.write(layout::sweep_run(sweep, worker), "");
    done = done ? submit() : done;
    if (!done && done.error().kind != Error::Kind::unreachable) {
        (void)store.remove(layout::sweep_run(sweep, worker));
        (void)store.remove(claim);
    }
    return done;
}

} // namespace gpuq::sweeps
