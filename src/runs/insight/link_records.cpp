// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/insight/link_records.h"

#include "core/layout.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace gpuq {
namespace {

template <typename Value>
std::optional<Value> read_as(Store& store, const std::string& path,
                             Result<Value> (*parse)(std::string_view))
{
    const auto text = store.read(path);
    Result<Value> value = text ? parse(*text) : Result<Value>(text.error());
    return value ? std::optional(*std::move(value)) : std::nullopt;
}

} // namespace

std::vector<LinkRecords> link_records(Store& store, const RunKey& key, LinkNumber newest,
                                      std::size_t most)
{
    const int count =
        static_cast<int>(std::min(most, static_cast<std::size_t>(std::max(0, newest.value))));
    std::vector<LinkRecords> links;
    for (int number = newest.value - count + 1; number <= newest.value; ++number) {
        const LinkNumber link{number};
        LinkRecords records;
        records.link = link;
        records.job = read_as(store, layout::job_json(key, link), link_job_from_json);
        if (const auto journal = store.read(layout::journal(key, link))) {
            records.journal = parse_journal(*journal);
        }
        records.idle = read_as(store, idle_finding_json(key, link), idle_finding_from_json);
        records.credentials =
            read_as(store, credential_state_json(key, link), credential_state_from_json);
        links.push_back(std::move(records));
    }
    return links;
}

} // namespace gpuq
