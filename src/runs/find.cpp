// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/find.h"

#include "core/layout.h"
#include "core/nearest.h"
#include "core/number.h"
#include "runs/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>

namespace gpuq {
namespace {

constexpr std::size_t k_shortest_key = 8;

std::string_view random_part(const RunKey& key)
{
    const std::string_view text = key.text();
    return text.substr(text.rfind('-') + 1);
}

bool is_unfinished(Store& store, const RunKey& key)
{
    return store.size(layout::active(key)) && !read_ending(store, key);
}

bool is_recorded(Store& store, const RunKey& key)
{
    return store.size(layout::run_json(key)).has_value();
}

/// Sorts keys, newest first, into unfinished and finished runs.
RunMatches sorted(Store& store, const std::vector<RunKey>& keys)
{
    RunMatches matches;
    for (const RunKey& key : keys) {
        if (is_unfinished(store, key)) {
            matches.unfinished.push_back(key);
        } else if (!matches.finished) {
            matches.finished = key;
        }
    }
    if (!matches.unfinished.empty()) {
        matches.finished.reset();
    }
    return matches;
}

Error no_such_run(std::string_view word, const std::string& hint)
{
    return fail(Error::Kind::missing,
                fmt::format("no run '{}'{}; gpuq ls --all lists yours", word, hint));
}

/// The runs that had the job id `id`: one per cluster.
Result<std::vector<RunKey>> with_job(Store& store, JobId id)
{
    const auto clusters = store.list(layout::job_indexes());
    if (!clusters && clusters.error().kind != Error::Kind::missing) {
        return clusters.error();
    }
    std::vector<RunKey> keys;
    for (const std::string& directory : clusters ? *clusters : std::vector<std::string>()) {
        const auto text = store.read(layout::job_index_in(directory, id));
        auto key = RunKey::parse(text ? std::string_view(*text).substr(0, text->find('\n')) : "");
        if (key && is_recorded(store, *key)) {
            keys.push_back(*std::move(key));
        }
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    return keys;
}

Result<RunMatches> by_job(Store& store, JobId id, const std::vector<RunKey>& keys)
{
    RunMatches matches = sorted(store, keys);
    const bool clear = keys.size() == 1 || matches.unfinished.size() == 1;
    if (!clear) {
        std::vector<std::string> texts;
        for (const RunKey& key : keys) {
            texts.push_back(key.text());
        }
        return fail(Error::Kind::usage,
                    fmt::format("job {} exists on {} clusters; name the run by its key: {}",
                                id.value, keys.size(), fmt::join(texts, ", ")));
    }
    return matches;
}

std::vector<RunKey> with_short_key(const std::vector<RunKey>& keys, std::string_view word)
{
    std::vector<RunKey> found;
    if (word.size() >= k_shortest_key) {
        std::copy_if(keys.begin(), keys.end(), std::back_inserter(found), [&](const RunKey& key) {
            return random_part(key).starts_with(word) || key.text() == word;
        });
    }
    return found;
}

/// Searches for a name, first among the unfinished runs, then among all, newest first.
class NameSearch {
public:
    NameSearch(Store& store, std::string_view name)
        : m_store(store)
        , m_name(name)
    {
    }

    Result<RunMatches> search(const std::vector<RunKey>& all)
    {
        TRY_ASSIGN(const std::vector<RunKey> active, active_runs(m_store));
        RunMatches matches;
        for (const RunKey& key : active) {
            if (fits(key) && is_unfinished(m_store, key)) {
                matches.unfinished.push_back(key);
            }
        }
        if (!matches.unfinished.empty()) {
            return matches;
        }
        const auto newest =
            std::find_if(all.begin(), all.end(), [this](const RunKey& key) { return fits(key); });
        if (newest == all.end()) {
            return no_such_run(m_name, did_you_mean(m_name, m_names));
        }
        matches.finished = *newest;
        return matches;
    }

private:
    bool fits(const RunKey& key)
    {
        const auto run = read_run(m_store, key);
        if (!run) {
            return false;
        }
        m_names.push_back(run->request.name);
        return run->request.name == m_name;
    }

    Store& m_store;
    std::string_view m_name;
    std::vector<std::string> m_names; ///< names of the other runs that were read
};

Result<RunMatches> last(Store& store, const std::vector<RunKey>& all)
{
    const auto newest = std::find_if(all.begin(), all.end(),
                                     [&](const RunKey& key) { return is_recorded(store, key); });
    if (newest == all.end()) {
        return fail(Error::Kind::missing, "no run yet; gpuq run PROGRAM starts one");
    }
    return sorted(store, {*newest});
}

} // namespace

Result<RunMatches> find_runs(Store& store, std::string_view word)
{
    const auto number = whole_number(word);
    if (number && *number > 0 && *number <= UINT32_MAX) {
        const JobId id{static_cast<std::uint32_t>(*number)};
        TRY_ASSIGN(const std::vector<RunKey> keys, with_job(store, id));
        if (!keys.empty()) {
            return by_job(store, id, keys);
        }
    }
    TRY_ASSIGN(const std::vector<RunKey> all, all_runs(store));
    if (word == "last") {
        return last(store, all);
    }
    if (const auto keys = with_short_key(all, word); !keys.empty()) {
        return sorted(store, keys);
    }
    return number ? Result<RunMatches>(no_such_run(word, "")) : NameSearch(store, word).search(all);
}

Result<RunMatches> find_runs_beside(Store& store, std::string_view name, const RunKey& after)
{
    TRY_ASSIGN(std::vector<RunKey> newer, all_runs(store));
    std::erase_if(newer, [&](const RunKey& key) { return key <= after; });
    return NameSearch(store, name).search(newer);
}

Result<RunKey> find_run(Store& store, std::string_view word)
{
    TRY_ASSIGN(const RunMatches matches, find_runs(store, word));
    return matches.unfinished.empty() ? *matches.finished : matches.unfinished.front();
}

Result<RunKey> find_current_run(Store& store)
{
    TRY_ASSIGN(const std::vector<RunKey> active, active_runs(store));
    const auto current = std::find_if(active.begin(), active.end(), [&](const RunKey& key) {
        return is_recorded(store, key) && is_unfinished(store, key);
    });
    return current == active.end() ? find_run(store, "last") : *current;
}

std::string short_key(const RunKey& key)
{
    return std::string(random_part(key).substr(0, k_shortest_key));
}

} // namespace gpuq
