// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/budget.h"

#include "core/layout.h"
#include "core/number.h"
#include "ports/clock.h"
#include "ports/store.h"
#include "runs/time_used.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

// A file for each member: `most SECONDS`, and a line `used SECONDS` once its use is known, which
// holds until it is active again (`gpuq resume`, `gpuq sweep retry`). A new member is written
// before the sum is formed: of two at the same time at least one sees the other.
namespace gpuq {
namespace {

using std::chrono::seconds;

constexpr std::string_view k_most = "most ";
constexpr std::string_view k_used = "used ";
constexpr std::size_t k_longest_name = 64;

bool is_name(std::string_view name)
{
    constexpr std::string_view k_letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return !name.empty() && name.size() <= k_longest_name && !name.starts_with('.') &&
           name.find_first_not_of(k_letters) == std::string_view::npos;
}

/// Of the line that begins with the word.
std::optional<seconds> seconds_after(std::string_view text, std::string_view word)
{
    while (!text.empty() && !text.starts_with(word)) {
        const std::size_t end = text.find('\n');
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    if (text.empty()) {
        return std::nullopt;
    }
    text.remove_prefix(word.size());
    const auto number = whole_number(text.substr(0, text.find('\n')));
    return number ? std::optional(seconds(*number)) : std::nullopt;
}

Result<seconds> limit_of(Store& store, const Budget& budget)
{
    const std::string path = layout::budget_limit(budget.name);
    const auto text = store.read(path);
    if (!text) {
        return text.error().kind == Error::Kind::missing ? Result<seconds>(budget.limit)
                                                         : text.error();
    }
    const auto limit = seconds_after(*text, k_most);
    return limit ? Result<seconds>(std::min(*limit, budget.limit))
                 : fail(Error::Kind::io, fmt::format("{}/{}: no limit in it; to begin anew, use "
                                                     "another name in GPUQ_BUDGET",
                                                     store.root(), path));
}

/// Records the limit unless an earlier call has.
Result<void> keep_limit(Store& store, const Budget& budget)
{
    const auto kept = store.write_once(layout::budget_limit(budget.name),
                                       fmt::format("{}{}\n", k_most, budget.limit.count()));
    return kept || kept.error().kind == Error::Kind::busy ? Result<void>() : kept.error();
}

seconds gpu_time_of(const Request& request, seconds time)
{
    return std::chrono::ceil<seconds>(gpu_time(request.gpus, time) * request.nodes);
}

/// The use of runs that have ended; nothing while one is active or its use is not known.
std::optional<seconds> used_by(std::span<const RunStatus> runs, Time now)
{
    seconds sum{0};
    for (const RunStatus& status : runs) {
        if (status.state != RunState::ended || !status.ending || !status.run) {
            return std::nullopt;
        }
        // Without a time it has never started; a time is rounded down.
        const auto time = time_used(status, now);
        sum += gpu_time_of(status.run->request, time ? *time + seconds{1} : seconds{0});
    }
    return sum;
}

/// The runs behind a member: itself, or the workers of the sweep. Nothing unless that is known to
/// have ended.
std::optional<std::vector<RunKey>> runs_of(Store& store, const RunKey& member)
{
    if (!store.size(layout::sweep_json(member))) {
        return std::vector{member};
    }
    const auto names = store.list(layout::sweep_runs(member));
    if (!names || store.size(layout::active_sweep(member))) {
        return std::nullopt;
    }
    std::vector<RunKey> runs;
    for (const std::string& name : *names) {
        if (const auto key = RunKey::parse(name)) {
            runs.push_back(*key);
        }
    }
    return runs;
}

bool is_active(Store& store, const RunKey& member)
{
    return store.size(layout::active(member)) || store.size(layout::active_sweep(member));
}

/// A member whose use is not recorded yet.
struct OpenMember {
    std::string path;
    seconds most;
    bool may_be_over = true;
    std::size_t runs = 0; ///< the number of its runs
};

} // namespace

Result<Budget> parse_budget(std::string_view text)
{
    constexpr double k_most_hours = 1e7;
    const auto colon = text.rfind(':');
    const std::string_view name = text.substr(0, colon);
    const std::string_view number =
        colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
    double hours = -1;
    const auto [end, error] = std::from_chars(number.begin(), number.end(), hours);
    if (!is_name(name) || error != std::errc{} || end != number.end() || !(hours >= 0) ||
        hours > k_most_hours) {
        return fail(Error::Kind::usage,
                    fmt::format("GPUQ_BUDGET: '{}' is not NAME:HOURS, such as agent:8", text));
    }
    constexpr double k_hour = 3600;
    return Budget{std::string(name), seconds(static_cast<std::int64_t>(hours * k_hour))};
}

seconds most_gpu_time(const Request& request)
{
    return gpu_time_of(request, request.walltime);
}

std::string hours_text(seconds time)
{
    return fmt::format("{:.3g}", std::chrono::duration<double, std::ratio<3600>>(time).count());
}

namespace {

/// `charged`: a member that is about to start, so its past does not count.
Result<BudgetUse> use_with(const StatusSources& sources, const Budget& budget,
                           const std::optional<RunKey>& charged)
{
    BudgetUse use;
    TRY_ASSIGN(use.limit, limit_of(sources.store, budget));
    const auto names = sources.store.list(layout::budget_members(budget.name));
    if (!names) {
        return names.error().kind == Error::Kind::missing ? Result<BudgetUse>(use) : names.error();
    }
    std::vector<OpenMember> open;
    std::vector<RunKey> keys;
    for (const std::string& name : *names) {
        const auto key = RunKey::parse(name);
        if (!key) {
            continue;
        }
        const std::string path = layout::budget_member(budget.name, *key);
        const auto text = sources.store.read(path);
        // An unreadable file must not make room for others.
        const auto most = text ? seconds_after(*text, k_most) : std::nullopt;
        if (charged && *key == *charged) {
            use.reserved += most.value_or(use.limit);
            continue;
        }
        const auto known = text ? seconds_after(*text, k_used) : std::nullopt;
        if (known && !is_active(sources.store, *key)) {
            use.used += *known;
            continue;
        }
        const auto found = runs_of(sources.store, *key);
        const std::vector<RunKey> runs = found.value_or(std::vector<RunKey>{});
        open.push_back({path, most.value_or(use.limit), found.has_value(), runs.size()});
        keys.insert(keys.end(), runs.begin(), runs.end());
    }
    const RunStatuses statuses = query_status(sources, keys);
    std::span<const RunStatus> rest(statuses.runs);
    for (const OpenMember& member : open) {
        const auto used = used_by(rest.first(member.runs), sources.clock.now());
        rest = rest.subspan(member.runs);
        if (!used || !member.may_be_over) {
            use.reserved += member.most;
            continue;
        }
        use.used += *used;
        // If this fails, the next query determines it again.
        (void)sources.store.write(
            member.path,
            fmt::format("{}{}\n{}{}\n", k_most, member.most.count(), k_used, used->count()));
    }
    return use;
}

} // namespace

Result<BudgetUse> use_of(const StatusSources& sources, const Budget& budget)
{
    return use_with(sources, budget, std::nullopt);
}

Result<void> charge(const StatusSources& sources, const Budget& budget, const RunKey& key,
                    seconds most)
{
    Store& store = sources.store;
    const std::string path = layout::budget_member(budget.name, key);
    TRY(keep_limit(store, budget));
    const auto before = store.read(path);
    TRY(store.write(path, fmt::format("{}{}\n", k_most, most.count())));
    const auto use = use_with(sources, budget, key);
    if (use && use->left() >= seconds{0}) {
        return {};
    }
    (void)(before ? store.write(path, *before) : store.remove(path));
    if (!use) {
        return use.error();
    }
    return fail(Error::Kind::denied,
                fmt::format("budget {}: of {} GPU-hours, {} are used and {} reserved by active "
                            "runs, and this could use {}: give it less time or fewer GPUs, or "
                            "wait until others end",
                            budget.name, hours_text(use->limit), hours_text(use->used),
                            hours_text(use->reserved - most), hours_text(most)));
}

void discharge(Store& store, const Budget& budget, const RunKey& key)
{
    (void)store.remove(layout::budget_member(budget.name, key)); // else it stays reserved
}

} // namespace gpuq
