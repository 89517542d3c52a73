// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/queues/queue_names.h"

#include <algorithm>
#include <vector>

namespace gpuq {
namespace {

std::vector<std::string_view> names_in(std::string_view list)
{
    std::vector<std::string_view> names;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        names.push_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return names;
}

} // namespace

bool share_a_queue(std::string_view one, std::string_view other)
{
    const auto others = names_in(other);
    const auto mine = names_in(one);
    return std::any_of(mine.begin(), mine.end(), [&](std::string_view name) {
        return std::find(others.begin(), others.end(), name) != others.end();
    });
}

} // namespace gpuq
