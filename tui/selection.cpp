// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/change.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace gpuq::tui {
namespace {

auto with_key(const std::vector<RunRow>& runs, std::string_view key)
{
    return std::find_if(runs.begin(), runs.end(),
                        [&](const RunRow& run) { return run.key == key; });
}

/// The run in the list whose place in the list before was nearest to that of the selected run; the
/// first one if none was in it.
std::string nearest(const Model& model, const std::vector<RunRow>& runs_before,
                    const std::vector<std::size_t>& shown_before)
{
    std::unordered_set<std::string_view> shown;
    for (const std::size_t at : model.shown) {
        shown.insert(model.picture.runs[at].key);
    }
    const auto key_at = [&](std::size_t place) -> const std::string& {
        return runs_before[shown_before[place]].key;
    };
    const std::size_t count = shown_before.size();
    std::size_t from = 0;
    while (from < count && key_at(from) != model.selected) {
        ++from;
    }
    for (std::size_t by = 1; from < count && by <= count; ++by) {
        if (from + by < count && shown.contains(key_at(from + by))) {
            return key_at(from + by);
        }
        if (by <= from && shown.contains(key_at(from - by))) {
            return key_at(from - by);
        }
    }
    return model.picture.runs[model.shown.front()].key;
}

} // namespace

void keep_selected(const Model& model, Picture& next)
{
    const auto& runs = model.picture.runs;
    const auto old = with_key(runs, model.selected);
    if (model.panels.focus != Panel::run || old == runs.end() ||
        with_key(next.runs, model.selected) != next.runs.end()) {
        return;
    }
    RunRow kept = *old;
    if (kept.active) {
        kept.state = "no longer listed";
        kept.mark = RunMark::ended;
    }
    kept.active = kept.running = kept.saves = false;
    const auto place = std::min<std::ptrdiff_t>(old - runs.begin(), std::ssize(next.runs));
    next.runs.insert(next.runs.begin() + place, std::move(kept));
}

void settle_selection(Model& model, const std::vector<RunRow>& runs_before,
                      const std::vector<std::size_t>& shown_before)
{
    std::string& displaced = model.list.displaced;
    const bool returns = !displaced.empty() &&
                         std::any_of(model.shown.begin(), model.shown.end(), [&](std::size_t at) {
                             return model.picture.runs[at].key == displaced;
                         });
    if (returns) {
        model.selected = std::exchange(displaced, {});
    } else if (!model.shown.empty() && selected_run(model) == nullptr) {
        if (displaced.empty()) {
            displaced = model.selected;
        }
        model.selected = nearest(model, runs_before, shown_before);
    }
}

} // namespace gpuq::tui
