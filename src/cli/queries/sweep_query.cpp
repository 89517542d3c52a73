// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/sweep_query.h"

#include "cli/base/status_sources.h"
#include "core/layout.h"
#include "core/number.h"
#include "runs/evidence.h"
#include "runs/find.h"
#include "runs/next_link.h"
#include "sweeps/changes.h"
#include "sweeps/missing.h"
#include "sweeps/taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using sweeps::Sweep;
using sweeps::Try;

constexpr auto k_recent = 24h;

/// The workers that may still be alive according to the disk.
Result<std::vector<RunKey>> active_workers(Store& store, const RunKey& sweep)
{
    const auto names = store.list(layout::sweep_runs(sweep));
    if (!names && names.error().kind != Error::Kind::missing) {
        return names.error();
    }
    TRY_ASSIGN(const auto active, active_runs(store)); // newest first
    std::vector<RunKey> workers;
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
        const auto key = RunKey::parse(name);
        if (key && std::binary_search(active.begin(), active.end(), *key, std::greater<>())) {
            workers.push_back(*key);
        }
    }
    return workers;
}

/// Whether a name denotes a run instead of the sweep that has it too.
bool denotes_a_run(Store& store, const Sweep& sweep, std::string_view name)
{
    const RunKey& key = sweep.run.key;
    const auto runs = sweep.name == name ? find_runs_beside(store, name, key)
                                         : Result<RunMatches>(fail(Error::Kind::missing, ""));
    if (!runs) {
        return false;
    }
    const bool is_over = !store.size(layout::active_sweep(key)) ||
                         store.size(layout::sweep_stop(key)) ||
                         has_ended_on_disk(store, {sweep, std::nullopt});
    return is_over || (!runs->unfinished.empty() && runs->unfinished.front() > key);
}

/// Records that a sweep is over; `gpuq sweep retry` makes it active again.
void note_rest(Store& store, const SweepLine& line)
{
    const RunKey& key = line.sweep.run.key;
    const std::string path = layout::sweep_totals(key);
    if (sweeps::is_missing(store, layout::active_sweep(key)) && store.size(path)) {
        return;
    }
    if (!store.write(path, to_json(line.totals))) {
        (void)store.remove(path); // an older one
    }
    (void)store.remove(layout::active_sweep(key));
}

enum class Scope { tries, totals };

/// For totals, what earlier calls have read of the ended tries is not read again.
Result<sweeps::Board> read_board(Store& store, const Sweep& sweep, Scope scope)
{
    const RunKey& key = sweep.run.key;
    const std::string path = sweeps::past_json(key);
    const auto text = scope == Scope::totals
                          ? store.read(path)
                          : Result<std::string>(fail(Error::Kind::missing, path));
    auto past = text ? sweeps::past_from_json(*text) : Result<sweeps::Past>(text.error());
    std::optional<sweeps::Board> board;
    board.emplace(store, key, past ? *past : sweeps::Past());
    TRY(board->refresh());
    if (!board->continues_past()) {
        past = sweeps::Past();
        board.emplace(store, key);
        TRY(board->refresh());
        (void)store.remove(path);
    }
    constexpr std::size_t k_worth = 64; // ended tries: so many are read again
    const auto now = board->past(sweep.metric);
    if (scope == Scope::totals && now.ended() >= k_worth + (past ? past->ended() : 0)) {
        (void)store.write(path, to_json(now));
    }
    return *std::move(board);
}

/// The status of a sweep whose workers' states have just been queried: before the board is read, so
/// that an end that is recorded in between is not missed. With Scope::totals, the tries are those
/// of read_board.
Result<SweepStatus> status_with(Services& services, Store& store, Sweep sweep,
                                std::vector<RunStatus> workers, Scope scope)
{
    const RunKey key = sweep.run.key;
    SweepStatus status{std::move(sweep)};
    std::erase_if(workers, [](const RunStatus& run) { return run.state == RunState::ended; });
    status.workers = std::move(workers);
    TRY_ASSIGN(sweeps::Board board, read_board(store, status.sweep, scope));
    status.is_open = status.sweep.propose && !board.is_closed();
    status.proposal_failure = board.failure();
    const bool is_stopped = board.is_stopped();
    status.tries = std::move(board).tries();
    release_lost(store, status.tries, services.clock().now());
    status.tally = sweeps::tally_of(status.tries);
    status.state = state_of(status, status.workers, is_stopped, services.clock().now());
    const bool can_continue = status.state == SweepStatus::State::waiting ||
                              status.state == SweepStatus::State::running ||
                              status.state == SweepStatus::State::stalled;
    if (!can_continue && status.workers.empty()) {
        note_rest(store, line_of(status, services.clock().now()));
    }
    return status;
}

/// A sweep that is known to be over, without reading its tries.
std::optional<SweepLine> line_at_rest(Store& store, const Sweep& sweep)
{
    const RunKey& key = sweep.run.key;
    if (!sweeps::is_missing(store, layout::active_sweep(key))) {
        return std::nullopt;
    }
    const auto text = store.read(layout::sweep_totals(key));
    const auto totals =
        text ? sweeps::totals_from_json(*text) : Result<sweeps::Totals>(text.error());
    if (!totals) {
        return std::nullopt;
    }
    using State = SweepStatus::State;
    const bool has_ended = totals->tally.waiting + totals->tally.running == 0 && !totals->is_open;
    const State state = has_ended                             ? State::ended
                        : store.size(layout::sweep_stop(key)) ? State::stopped
                                                              : State::spent;
    return SweepLine{sweep, state, *totals, 0};
}

} // namespace

bool has_ended_on_disk(Store& store, const SweepTarget& target)
{
    sweeps::Board board(store, target.sweep.run.key);
    if (!board.refresh()) {
        return false;
    }
    if (target.number) {
        return board.tries().at(*target.number - 1).state == Try::State::ended;
    }
    const auto tally = sweeps::tally_of(board.tries());
    return tally.waiting + tally.running == 0 && (!target.sweep.propose || board.is_closed());
}

Result<std::optional<SweepTarget>> find_sweep_target(Store& store, std::string_view text)
{
    if (whole_number(text) || text == "last") {
        return std::optional<SweepTarget>(); // always a job or a run
    }
    const auto slash = text.rfind('/');
    const auto number =
        slash == std::string_view::npos ? std::nullopt : whole_number(text.substr(slash + 1));
    auto sweep = sweeps::find_sweep(store, number ? text.substr(0, slash) : text);
    if (!sweep) {
        const bool is_other = !number && sweep.error().kind == Error::Kind::missing;
        return is_other ? Result<std::optional<SweepTarget>>(std::optional<SweepTarget>())
                        : sweep.error();
    }
    if (number) {
        sweeps::Board board(store, sweep->run.key);
        TRY(board.refresh());
        if (*number == 0 || *number > board.tries().size()) {
            return fail(Error::Kind::missing,
                        fmt::format("sweep {} has no try {}, but 1 to {}", sweep->name, *number,
                                    board.tries().size()));
        }
        return std::optional(SweepTarget{*std::move(sweep), *number});
    }
    if (denotes_a_run(store, *sweep, text)) {
        return std::optional<SweepTarget>();
    }
    return std::optional(SweepTarget{*std::move(sweep), std::nullopt});
}

void release_lost(Store& store, std::vector<Try>& tries, Time now)
{
    for (Try& entry : tries) {
        if (entry.state != Try::State::running || !entry.claimant ||
            !sweeps::is_link_over(store, *entry.claimant)) {
            continue;
        }
        entry.state = Try::State::waiting;
        const Time end = last_life(store, entry.claimant->worker, entry.claimant->link, now);
        if (entry.began_at && *entry.began_at < end) {
            entry.used += end - *entry.began_at;
        }
    }
}

bool is_recent_sweep(const RunKey& key, Time now)
{
    return now - key.made_at() <= k_recent;
}

SweepStatus::State state_of(const SweepStatus& status, const std::vector<RunStatus>& workers,
                            bool is_stopped, Time now)
{
    if (status.tally.waiting == 0 && status.tally.running == 0 && !status.is_open) {
        return SweepStatus::State::ended;
    }
    const auto is_working = [](const RunStatus& run) { return run.state == RunState::running; };
    if (std::any_of(workers.begin(), workers.end(), is_working)) {
        return SweepStatus::State::running;
    }
    if (is_stopped) {
        return SweepStatus::State::stopped;
    }
    if (is_spent(status.tries, status.sweep, now)) {
        return SweepStatus::State::spent;
    }
    return workers.empty() ? SweepStatus::State::stalled : SweepStatus::State::waiting;
}

Result<SweepStatus> query_sweep(Services& services, Store& store, Sweep sweep)
{
    TRY_ASSIGN(const auto workers, active_workers(store, sweep.run.key));
    RunStatuses found = query_status(status_sources(services, store), workers);
    TRY_ASSIGN(SweepStatus status,
               status_with(services, store, std::move(sweep), std::move(found.runs), Scope::tries));
    status.slurm_silent = std::move(found.slurm_silent);
    return status;
}

LinkProgress read_try_output(Store& store, const SweepStatus& status, std::size_t number)
{
    const auto& claimant = status.tries[number - 1].claimant;
    const auto worker =
        claimant ? read_run(store, claimant->worker) : Result<Run>(Run{status.sweep.run.key});
    const auto own = worker ? own_pattern(*worker) : std::nullopt;
    return read_progress(store, layout::try_log(status.sweep.run.key, number),
                         own ? &*own : nullptr);
}

void compare_by(Store& store, SweepStatus& status, const sweeps::Metric& metric)
{
    status.sweep.metric = metric;
    for (std::size_t i = 0; i < status.tries.size(); ++i) {
        Try& entry = status.tries[i];
        entry.reached = {};
        if (entry.attempt > 0) {
            const LinkProgress output = read_try_output(store, status, i + 1);
            const auto* const curve = sweeps::series_of(output.curves, metric);
            entry.reached = curve != nullptr ? sweeps::values_of(*curve, metric) : entry.reached;
        }
    }
}

const RunStatus* next_worker(const SweepStatus& status)
{
    const auto rank = [](const RunStatus& worker) {
        return std::pair(worker.state != RunState::waiting, worker.key);
    };
    const auto first = std::min_element(
        status.workers.begin(), status.workers.end(),
        [&](const RunStatus& one, const RunStatus& other) { return rank(one) < rank(other); });
    return first == status.workers.end() ? nullptr : &*first;
}

Result<std::vector<SweepLine>> listed_sweeps(Services& services, Store& store, bool want_all)
{
    TRY_ASSIGN(const auto keys, sweeps::all_sweeps(store));
    const Time now = services.clock().now();
    struct Found {
        Sweep sweep;
        std::optional<SweepLine> line; ///< if it is over
        std::size_t workers = 0;       ///< of those below
    };
    std::vector<Found> found;
    std::vector<RunKey> workers;
    for (const RunKey& key : keys) {
        if (!want_all && !is_recent_sweep(key, now) && !store.size(layout::active_sweep(key))) {
            continue;
        }
        auto sweep = sweeps::read_sweep(store, key);
        auto line = sweep ? line_at_rest(store, *sweep) : std::nullopt;
        const auto active = sweep && !line ? active_workers(store, key)
                                           : Result<std::vector<RunKey>>(std::vector<RunKey>());
        if (sweep && active) {
            workers.insert(workers.end(), active->begin(), active->end());
            found.push_back({*std::move(sweep), std::move(line), active->size()});
        }
    }
    auto runs = query_status(status_sources(services, store), workers).runs; // in their order
    std::vector<SweepLine> listed;
    auto next = std::make_move_iterator(runs.begin());
    for (Found& one : found) {
        const auto end = next + static_cast<std::ptrdiff_t>(one.workers);
        if (one.line) {
            listed.push_back(*std::move(one.line));
        } else if (const auto status = status_with(services, store, std::move(one.sweep),
                                                   {next, end}, Scope::totals)) {
            listed.push_back(line_of(*status, now));
        }
        next = end;
    }
    return listed;
}

} // namespace gpuq::cli
