// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/public_use.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gpuq {
namespace {

struct Group {
    PublicUse use;
    std::set<std::string> users;

    void add(const UseRow& row, const std::string& user)
    {
        use.gpu_seconds += row.gpu_seconds;
        use.busy += row.busy;
        use.idle += row.idle;
        users.insert(user);
    }
    void add(const Group& other)
    {
        use.gpu_seconds += other.use.gpu_seconds;
        use.busy += other.use.busy;
        use.idle += other.use.idle;
        users.insert(other.users.begin(), other.users.end());
    }
};

/// In descending order of GPU time.
std::vector<Group> groups_of(const std::vector<UseRecord>& records, UseBy by)
{
    std::map<std::string, Group> named;
    for (const UseRow& row : gpu_hours(records, {by, UseBy::user})) {
        Group& group = named[row.names[0]];
        group.use.name = row.names[0];
        group.add(row, row.names[1]);
    }
    std::vector<Group> groups;
    for (auto& [name, group] : named) {
        groups.push_back(std::move(group));
    }
    std::stable_sort(groups.begin(), groups.end(), [](const Group& one, const Group& other) {
        return one.use.gpu_seconds > other.use.gpu_seconds;
    });
    return groups;
}

} // namespace

std::optional<std::vector<PublicUse>> public_use(const std::vector<UseRecord>& records, UseBy by,
                                                 std::size_t least_users)
{
    std::vector<Group> groups = groups_of(records, by);
    const auto small = std::stable_partition(groups.begin(), groups.end(), [&](const Group& group) {
        return group.users.size() >= least_users;
    });
    Group others;
    for (auto group = small; group != groups.end(); ++group) {
        others.add(*group);
    }
    groups.erase(small, groups.end());
    while (!others.users.empty() && others.users.size() < least_users) {
        if (groups.empty()) {
            return std::nullopt;
        }
        others.add(groups.back());
        groups.pop_back();
    }
    std::vector<PublicUse> rows;
    for (Group& group : groups) {
        rows.push_back(std::move(group.use));
    }
    if (!others.users.empty()) {
        rows.push_back(std::move(others.use));
    }
    return rows;
}

} // namespace gpuq
