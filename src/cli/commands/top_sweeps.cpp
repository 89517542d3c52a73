// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/top_sweeps.h"

#include "cli/queries/sweep_query.h"
#include "core/layout.h"
#include "core/number.h"
#include "sweeps/changes.h"
#include "sweeps/taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gpuq::cli {
namespace {

using sweeps::Try;

/// Whether the claimant of a running try is a link that is running according to the list.
bool is_working(const std::vector<RunStatus>& runs, const sweeps::Claimant& claimant)
{
    return std::any_of(runs.begin(), runs.end(), [&](const RunStatus& run) {
        return run.key == claimant.worker && run.state == RunState::running &&
               run.link == claimant.link;
    });
}

/// Its workers that have not ended.
std::vector<RunStatus> workers_of(const RunKey& sweep, const std::vector<RunStatus>& runs)
{
    std::vector<RunStatus> workers;
    for (const RunStatus& run : runs) {
        if (run.state != RunState::ended && run.run && run.run->request.sweep &&
            run.run->request.sweep->sweep == sweep) {
            workers.push_back(run);
        }
    }
    return workers;
}

/// The sweep of a try; null if it has no such try.
std::shared_ptr<const SweepStatus> sweep_with(const std::vector<TopSweep>& sweeps,
                                              const TryName& name)
{
    for (const TopSweep& sweep : sweeps) {
        if (sweep.status->sweep.run.key.text() == name.sweep && name.number > 0 &&
            name.number <= sweep.status->tries.size()) {
            return sweep.status;
        }
    }
    return nullptr;
}

} // namespace

std::vector<TopSweep> TopSweeps::read(const std::vector<RunStatus>& runs, Time now)
{
    const auto keys = sweeps::all_sweeps(m_store);
    const auto active = m_store.list(layout::active_sweeps());
    std::set<std::string> unfinished;
    if (active) {
        unfinished.insert(active->begin(), active->end());
    }
    std::vector<TopSweep> found;
    for (const RunKey& key : keys ? *keys : std::vector<RunKey>()) {
        const bool is_active = unfinished.contains(key.text());
        if (!is_active && !m_want_all && !is_recent_sweep(key, now)) {
            m_known.erase(key);
            continue;
        }
        Known* const entry = known(key);
        if (entry == nullptr) {
            continue;
        }
        const bool is_settled = !is_active && entry->sweep.shown != nullptr &&
                                entry->sweep.state == SweepStatus::State::ended;
        if (!is_settled) {
            refresh(*entry, runs, now);
        }
        if (entry->sweep.shown != nullptr) {
            found.push_back(entry->sweep);
        }
    }
    return found;
}

TopSweeps::Known* TopSweeps::known(const RunKey& key)
{
    const auto at = m_known.find(key);
    if (at != m_known.end()) {
        return &at->second;
    }
    auto sweep = sweeps::read_sweep(m_store, key);
    if (!sweep) {
        return nullptr;
    }
    Known entry{sweeps::Board(m_store, key), {}, 0};
    entry.sweep.status =
        std::make_shared<const SweepStatus>(SweepStatus{*std::move(sweep), {}, {}, {}, {}, {}});
    return &m_known.emplace(key, std::move(entry)).first->second;
}

/// A try that is running, and whose worker is not.
bool TopSweeps::has_lost_tries(const SweepStatus& status, const std::vector<RunStatus>& runs) const
{
    return std::any_of(status.tries.begin(), status.tries.end(), [&](const Try& entry) {
        return entry.state == Try::State::running && entry.claimant &&
               !is_working(runs, *entry.claimant) && sweeps::is_link_over(m_store, *entry.claimant);
    });
}

void TopSweeps::refresh(Known& entry, const std::vector<RunStatus>& runs, Time now)
{
    TopSweep& sweep = entry.sweep;
    if (!entry.board.refresh()) {
        return; // keeps the last known state
    }
    if (sweep.shown == nullptr || entry.version != entry.board.version() ||
        has_lost_tries(*sweep.status, runs)) {
        SweepStatus status{sweep.status->sweep, entry.board.tries(), {}, {}, {}, {}};
        release_lost(m_store, status.tries, now);
        status.tally = sweeps::tally_of(status.tries);
        status.is_open = status.sweep.propose && !entry.board.is_closed();
        sweep.status = std::make_shared<const SweepStatus>(std::move(status));
        sweep.shown = std::make_shared<const tui::Sweep>(top_tries(*sweep.status));
        entry.version = entry.board.version();
    }
    const SweepStatus& status = *sweep.status;
    const auto workers = workers_of(status.sweep.run.key, runs);
    sweep.workers = static_cast<std::size_t>(
        std::count_if(workers.begin(), workers.end(),
                      [](const RunStatus& run) { return run.state == RunState::running; }));
    sweep.state = state_of(status, workers, entry.board.is_stopped(), now);
}

std::optional<TryName> parse_try_name(std::string_view text)
{
    const auto slash = text.rfind('/');
    const auto number =
        slash == std::string_view::npos ? std::nullopt : whole_number(text.substr(slash + 1));
    return number ? std::optional(TryName{std::string(text.substr(0, slash)), *number})
                  : std::nullopt;
}

tui::Detail detail_of_try(Store& store, const std::vector<TopSweep>& sweeps, const TryName& name)
{
    const auto status = sweep_with(sweeps, name);
    if (status == nullptr) {
        tui::Detail unknown;
        unknown.key = fmt::format("{}/{}", name.sweep, name.number);
        return unknown;
    }
    return top_try_detail(*status, name.number, read_try_output(store, *status, name.number));
}

tui::Comparison compare_tries(Store& store, const std::vector<TopSweep>& sweeps,
                              const std::vector<std::string>& keys, Time now)
{
    std::shared_ptr<const SweepStatus> status;
    std::vector<std::size_t> numbers;
    std::vector<telemetry::Curves> curves;
    for (const std::string& key : keys) {
        const auto name = parse_try_name(key);
        status = name ? sweep_with(sweeps, *name) : nullptr;
        if (status == nullptr) {
            tui::Comparison refused;
            refused.keys = keys;
            refused.trouble = "the sweep is no longer listed";
            return refused;
        }
        numbers.push_back(name->number);
        curves.push_back(read_try_output(store, *status, name->number).curves);
    }
    return top_tries_comparison(*status, numbers, curves, now);
}

} // namespace gpuq::cli
