// SPDX-License-Identifier: GPL-2.0-or-later
#include "nvml/choose.h"

#include "core/number.h"
#include "core/strings.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace gpuq::nvml {
namespace {

using Chosen = std::vector<std::optional<std::string>>;

/// An empty item is kept, so that the list is invalid; Slurm may end it with a comma.
std::vector<std::string_view> items(std::string_view list)
{
    auto parts = split(list, ",");
    if (parts.back().empty()) {
        parts.pop_back();
    }
    return parts;
}

bool is_uuid(std::string_view name)
{
    return name.starts_with("GPU-") || name.starts_with("MIG-");
}

/// Like CUDA, accepts the beginning of a UUID if it is unique.
std::optional<std::string> named(std::string_view name, const std::vector<VisibleGpu>& visible)
{
    std::optional<std::string> found;
    for (const VisibleGpu& gpu : visible) {
        std::vector<std::string> uuids = gpu.migs;
        uuids.push_back(gpu.uuid);
        for (const std::string& uuid : uuids) {
            if (uuid == name) {
                return uuid;
            }
            if (uuid.starts_with(name)) {
                if (found) {
                    return std::nullopt;
                }
                found = uuid;
            }
        }
    }
    return found;
}

/// The distinct numbers; nullopt unless all of `ids` are numbers and none is repeated.
std::optional<std::set<std::uint64_t>> numbers(const std::vector<std::string_view>& ids)
{
    std::set<std::uint64_t> set;
    for (const std::string_view id : ids) {
        const auto number = whole_number(id);
        if (!number || !set.insert(*number).second) {
            return std::nullopt;
        }
    }
    return set.empty() ? std::nullopt : std::optional(set);
}

/// 0 to count - 1.
std::set<std::uint64_t> first(std::size_t count)
{
    std::set<std::uint64_t> set;
    for (std::size_t i = 0; i < count; ++i) {
        set.insert(i);
    }
    return set;
}

Chosen uuids_of(const std::vector<VisibleGpu>& gpus)
{
    Chosen chosen;
    for (const VisibleGpu& gpu : gpus) {
        chosen.push_back(gpu.uuid.empty() ? std::nullopt : std::optional(gpu.uuid));
    }
    return chosen;
}

std::vector<VisibleGpu> with_minors(const std::vector<VisibleGpu>& visible,
                                    const std::set<std::uint64_t>& ids)
{
    std::vector<VisibleGpu> found;
    std::copy_if(visible.begin(), visible.end(), std::back_inserter(found),
                 [&](const VisibleGpu& gpu) { return gpu.minor && ids.count(*gpu.minor) > 0; });
    return found;
}

std::vector<VisibleGpu> with_places(const std::vector<VisibleGpu>& visible,
                                    const std::set<std::uint64_t>& ids)
{
    std::vector<VisibleGpu> found;
    for (std::size_t place = 0; place < visible.size(); ++place) {
        if (ids.count(place) > 0) {
            found.push_back(visible[place]);
        }
    }
    return found;
}

} // namespace

Chosen choose(const JobGpus& held, std::vector<VisibleGpu> visible)
{
    std::sort(visible.begin(), visible.end(),
              [](const VisibleGpu& a, const VisibleGpu& b) { return a.pci < b.pci; });
    const auto names = items(held.visible);
    if (std::any_of(names.begin(), names.end(), is_uuid)) {
        Chosen chosen;
        for (const std::string_view name : names) {
            chosen.push_back(is_uuid(name) ? named(name, visible) : std::nullopt);
        }
        chosen.resize(held.count);
        return chosen;
    }
    const Chosen nobody(held.count);
    const bool all_notified =
        std::all_of(visible.begin(), visible.end(), [](const VisibleGpu& gpu) {
            return gpu.minor && !gpu.pci.empty() && !gpu.uuid.empty();
        });
    const auto ids = numbers(items(held.ids));
    // CUDA numbers the visible GPUs from 0: if all of them are selected, their order does not
    // matter.
    const bool shows_all = visible.size() == held.count && all_notified;
    const auto used = numbers(names);
    if (shows_all && (used ? *used == first(held.count) : !ids)) {
        return uuids_of(visible);
    }
    if (!ids || !all_notified || ids->size() != held.count) {
        return nobody;
    }
    const Chosen by_minor = uuids_of(with_minors(visible, *ids));
    const Chosen by_place = uuids_of(with_places(visible, *ids));
    return by_minor == by_place && by_minor.size() == held.count ? by_minor : nobody;
}

} // namespace gpuq::nvml
