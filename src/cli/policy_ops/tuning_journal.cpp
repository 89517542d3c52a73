// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/tuning_journal.h"

#include "core/layout.h"
#include "core/timestamp.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace gpuq::cli {
namespace {

constexpr std::size_t k_most_journals = 20;
constexpr std::size_t k_first_line = 40; ///< bytes, of which the time is the beginning

} // namespace

TuningJournal::TuningJournal(Store& store, std::uint64_t problem, Time now)
    : m_store(store)
    , m_path(layout::tuning(problem))
    , m_now(now)
{
    const auto text = store.read(m_path);
    if (!text) {
        return;
    }
    m_is_new = false;
    for (std::string_view rest = *text; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) {
            return; // torn
        }
        if (auto record = tune::parse_record(rest.substr(0, end))) {
            m_known.insert(*std::move(record));
        }
        rest.remove_prefix(end + 1);
    }
}

Result<void> TuningJournal::add(std::uint64_t hash, const std::vector<tune::Seconds>& waits)
{
    if (m_has_failed) {
        return {};
    }
    if (std::exchange(m_is_new, false)) {
        remove_oldest();
        m_has_failed = true;
        TRY(m_store.append_line(m_path, to_iso8601(m_now)));
    }
    m_has_failed = true;
    TRY(m_store.append_line(m_path, tune::record_of(hash, waits)));
    m_has_failed = false;
    return {};
}

/// Makes room for a new journal.
void TuningJournal::remove_oldest()
{
    const auto names = m_store.list(layout::tunings());
    if (!names || names->size() < k_most_journals) {
        return;
    }
    std::vector<std::pair<std::string, std::string>> by_time;
    for (const std::string& name : *names) {
        const std::string path = layout::tunings() + "/" + name;
        const auto begin = m_store.read_at(path, 0, k_first_line);
        by_time.emplace_back(begin ? *begin : std::string(), path);
    }
    std::sort(by_time.begin(), by_time.end());
    for (std::size_t i = 0; i + k_most_journals <= by_time.size(); ++i) {
        [[maybe_unused]] const auto removed = m_store.remove(by_time[i].second);
    }
}

} // namespace gpuq::cli
