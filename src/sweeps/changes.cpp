// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/changes.h"

#include "core/layout.h"
#include "sweeps/board.h"
#include "sweeps/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace gpuq::sweeps {
namespace {

constexpr std::size_t k_shortest_key = 8;

/// Writes the first file of a series that does not exist yet, even if other clients do the same.
Result<void> write_next(Store& store, const std::function<std::string(int)>& path,
                        const std::string& content)
{
    for (int number = 1;; ++number) {
        const auto written = store.write_once(path(number), content);
        if (written || written.error().kind != Error::Kind::busy) {
            return written;
        }
    }
}

bool is_spelled(const RunKey& key, std::string_view word)
{
    const std::string& text = key.text();
    return word == text ||
           (word.size() >= k_shortest_key && text.substr(text.find('-') + 1).starts_with(word));
}

/// Whether it has ended, or no worker takes a try of it unless the user has it continued. One that
/// could not be written as a whole counts after a day.
bool is_at_rest(Store& store, const RunKey& key, Time now)
{
    if (is_missing(store, layout::sweep_json(key))) {
        return now - key.made_at() > std::chrono::hours(24);
    }
    if (store.size(layout::sweep_stop(key))) {
        return true;
    }
    if (is_missing(store, layout::active_sweep(key))) {
        return now - key.made_at() > std::chrono::hours(1); // or its client is writing it
    }
    const auto sweep = read_sweep(store, key);
    Board board(store, key);
    return sweep && board.refresh() && is_spent(board.tries(), *sweep, now);
}

/// According to the disk: it is neither stopped nor without a try left.
bool is_unfinished(Store& store, const Sweep& sweep)
{
    const RunKey& key = sweep.run.key;
    if (is_missing(store, layout::active_sweep(key)) || store.size(layout::sweep_stop(key))) {
        return false;
    }
    Board board(store, key);
    const bool is_read = board.refresh().has_value();
    const Tally tally = tally_of(board.tries());
    return !is_read || tally.waiting + tally.running > 0 || (sweep.propose && !board.is_closed());
}

/// Whether a worker's run is on disk; true if that is unknown.
bool may_have_runs(Store& store, const RunKey& key)
{
    const auto workers = store.list(layout::sweep_runs(key));
    if (!workers) {
        return workers.error().kind != Error::Kind::missing;
    }
    return std::any_of(workers->begin(), workers->end(), [&](const std::string& name) {
        const auto worker = RunKey::parse(name);
        return worker && !is_missing(store, layout::run_json(*worker));
    });
}

} // namespace

Result<void> write_sweep(Store& store, const Sweep& sweep, const std::vector<Values>& tries,
                         const std::string& snapshot)
{
    const RunKey& key = sweep.run.key;
    std::vector<Store::NewFile> files = {{layout::sweep_tries(key, 1), to_lines(tries)},
                                         {layout::sweep_json(key), to_json(sweep)},
                                         {layout::active_sweep(key), ""}};
    if (!snapshot.empty()) {
        files.insert(files.begin(), {layout::sweep_snapshot(key), snapshot});
    }
    return store.write_together(files);
}

void forget_sweep(Store& store, const RunKey& key)
{
    (void)store.remove_tree(layout::sweep_dir(key));
    (void)store.remove(layout::active_sweep(key));
}

void forget_outdated(Store& store, Time now)
{
    const auto keys = all_sweeps(store);
    for (const RunKey& key : keys ? *keys : std::vector<RunKey>()) {
        if (is_at_rest(store, key, now) && !may_have_runs(store, key)) {
            forget_sweep(store, key);
        }
    }
}

Result<void> add_tries(Store& store, const RunKey& key, const std::vector<Values>& tries)
{
    TRY(store.write(layout::active_sweep(key), ""));
    return write_next(
        store, [&](int batch) { return layout::sweep_tries(key, batch); }, to_lines(tries));
}

Result<void> retry(Store& store, const RunKey& key, const std::vector<Retry>& retries)
{
    TRY(store.write(layout::active_sweep(key), ""));
    for (const Retry& each : retries) {
        TRY(store.remove(layout::try_stop(key, each.number)));
    }
    return write_next(
        store, [&](int batch) { return layout::sweep_retries(key, batch); }, to_lines(retries));
}

Result<void> stop_sweep(Store& store, const RunKey& key)
{
    return store.write(layout::sweep_stop(key), "");
}

Result<void> continue_sweep(Store& store, const RunKey& key)
{
    TRY(store.write(layout::active_sweep(key), ""));
    TRY(store.remove(layout::sweep_closed(key)));
    return store.remove(layout::sweep_stop(key));
}

Result<void> stop_try(Store& store, const RunKey& key, std::size_t number)
{
    return store.write(layout::try_stop(key, number), "");
}

Result<Sweep> read_sweep(Store& store, const RunKey& key)
{
    TRY_ASSIGN(const std::string text, store.read(layout::sweep_json(key)));
    return sweep_from_json(text);
}

Result<std::vector<RunKey>> all_sweeps(Store& store)
{
    const auto names = store.list(layout::sweeps());
    if (!names && names.error().kind != Error::Kind::missing) {
        return names.error();
    }
    std::vector<RunKey> keys;
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
        if (const auto key = RunKey::parse(name)) {
            keys.push_back(*key);
        }
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    return keys;
}

Result<Sweep> find_sweep(Store& store, std::string_view word)
{
    TRY_ASSIGN(const auto keys, all_sweeps(store));
    std::optional<Sweep> newest;
    bool is_newest_over = false; // not known before there is another one: that reads all its tries
    for (const RunKey& key : keys) {
        if (newest && is_missing(store, layout::active_sweep(key))) {
            continue;
        }
        auto sweep = read_sweep(store, key);
        if (!sweep || (sweep->name != word && !is_spelled(key, word))) {
            continue;
        }
        if (!newest) {
            newest = *std::move(sweep);
            continue;
        }
        is_newest_over = is_newest_over || !is_unfinished(store, *newest);
        if (!is_newest_over) {
            break;
        }
        if (is_unfinished(store, *sweep)) {
            return sweep;
        }
    }
    return newest ? Result<Sweep>(*std::move(newest))
                  : fail(Error::Kind::missing,
                         fmt::format("no sweep '{}'; gpuq ls --all lists them", word));
}

} // namespace gpuq::sweeps
