// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/evidence.h"

#include "core/layout.h"
#include "runs/next_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <string_view>

namespace gpuq {
namespace {

/// Reads the records of one run; `trouble` is the first error other than a missing file.
class Records {
public:
    explicit Records(Store& store)
        : m_store(store)
    {
    }

    template <typename Value>
    std::optional<Value> value_of(Result<Value> read)
    {
        if (read) {
            return *std::move(read);
        }
        if (read.error().kind != Error::Kind::missing && trouble.empty()) {
            trouble = read.error().text;
        }
        return std::nullopt;
    }

    std::optional<std::vector<std::string>> list(const std::string& path)
    {
        return value_of(m_store.list(path));
    }
    bool exists(const std::string& path) { return value_of(m_store.size(path)).has_value(); }

    /// The parsed content of a file; nothing if it is missing, unreadable or invalid.
    template <typename Parse>
    auto read_as(const std::string& path, Parse parse)
    {
        using Value = std::remove_reference_t<decltype(*parse(std::string_view()))>;
        const auto text = value_of(m_store.read(path));
        if (!text) {
            return std::optional<Value>();
        }
        auto value = parse(*text);
        return value ? std::optional<Value>(*std::move(value)) : std::optional<Value>();
    }

    std::vector<Event> journal(const RunKey& key, LinkNumber link)
    {
        const auto bytes = value_of(m_store.read(layout::journal(key, link)));
        return bytes ? parse_journal(*bytes) : std::vector<Event>();
    }

    std::string trouble;

private:
    Store& m_store;
};

LinkNumber newest_link_of(const std::vector<std::string>& names)
{
    constexpr std::string_view k_prefix = "link-";
    LinkNumber newest;
    for (const std::string_view name : names) {
        int number = 0;
        const char* end = name.data() + name.size();
        if (name.starts_with(k_prefix) &&
            std::from_chars(name.data() + k_prefix.size(), end, number).ptr == end) {
            newest.value = std::max(newest.value, number);
        }
    }
    return newest;
}

bool contains(const std::vector<std::string>& names, std::string_view name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

const Event* end_in(const std::vector<Event>& journal)
{
    const auto found = std::find_if(journal.rbegin(), journal.rend(), [](const Event& event) {
        return event.kind == Event::Kind::ended;
    });
    return found == journal.rend() ? nullptr : &*found;
}

/// Finds the current link. The job of the next link is submitted early: the current link is the one
/// that is running or ran last, until its `ended` event has `continues` set. A link directory
/// without a job belongs to a link that could not be submitted and does not count.
struct Current {
    LinkNumber link;
    std::vector<Event> journal;
};
Current current_of(Records& records, const RunKey& key, LinkNumber newest)
{
    Current current{newest, records.journal(key, newest)};
    const bool has_begun =
        !current.journal.empty() || records.exists(layout::log(key, newest, Stream::out));
    if (newest == LinkNumber{1} || has_begun) {
        return current;
    }
    const LinkNumber before{newest.value - 1};
    std::vector<Event> journal = records.journal(key, before);
    const Event* end = end_in(journal);
    const auto job = records.read_as(layout::job_json(key, newest), link_job_from_json);
    if (job && (job->resumed || (end != nullptr && end->continues))) {
        return current;
    }
    return {before, std::move(journal)};
}

/// The job that the supervisor recorded, or the one in job.json. They differ if a lost response led
/// to two jobs: the one that runs counts.
void find_job(Records& records, Evidence& evidence)
{
    evidence.job =
        records.read_as(layout::job_json(evidence.key, evidence.link), link_job_from_json);
    evidence.job_recorded = evidence.job.has_value();
    for (const Event& event : evidence.journal) {
        if (event.kind != Event::Kind::supervisor_started || !event.job || *event.job == 0) {
            continue;
        }
        if (evidence.job) {
            evidence.job->job = JobId{*event.job};
        } else if (evidence.run) {
            evidence.job =
                LinkJob{evidence.run->cluster, JobId{*event.job}, event.at, /*batch=*/true};
        }
    }
}

/// Applies the changes that `gpuq extend` and `gpuq resume` made to the request.
void take_walltime(Records& records, Run& run)
{
    if (const auto change =
            records.read_as(layout::walltime_json(run.key), walltime_change_from_json)) {
        apply(*change, run.request);
    }
}

Result<std::vector<RunKey>> keys_in(Store& store, const std::string& directory)
{
    const auto names = store.list(directory);
    if (!names && names.error().kind != Error::Kind::missing) {
        return names.error();
    }
    std::vector<RunKey> keys;
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
        if (auto key = RunKey::parse(name)) {
            keys.push_back(*std::move(key));
        }
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    return keys;
}

} // namespace

Evidence read_evidence(Store& store, const RunKey& key)
{
    Evidence evidence{key};
    Records records(store);
    const auto names = records.list(layout::run_dir(key));
    if (!names) {
        evidence.trouble = records.trouble;
        return evidence;
    }
    const LinkNumber newest = newest_link_of(*names);
    Current current = current_of(records, key, newest);
    evidence.link = current.link;
    evidence.journal = std::move(current.journal);
    if (newest > evidence.link) {
        evidence.next = records.read_as(layout::job_json(key, newest), link_job_from_json);
    }
    if (evidence.link > LinkNumber{1}) {
        evidence.first_job =
            records.read_as(layout::job_json(key, LinkNumber{1}), link_job_from_json);
        evidence.links = read_links(store, key, evidence.link);
    }
    evidence.run = records.read_as(layout::run_json(key), run_from_json);
    if (evidence.run && contains(*names, "walltime.json")) {
        take_walltime(records, *evidence.run);
    }
    if (contains(*names, "ended.json")) {
        evidence.ended = records.read_as(layout::ended_json(key), ending_from_json);
    }
    evidence.stop =
        records.read_as(layout::inbox(key) + "/" + layout::k_stop_request, stop_request_from_json);
    if (!evidence.stop) {
        evidence.stop = records.read_as(layout::inbox(key) + "/" + layout::k_save_and_stop_request,
                                        stop_request_from_json);
    }
    evidence.heartbeat = records.read_as(layout::heartbeat(key, evidence.link), parse_heartbeat);
    find_job(records, evidence);
    evidence.trouble = std::move(records.trouble);
    return evidence;
}

std::optional<Ending> read_ending(Store& store, const RunKey& key)
{
    Records records(store);
    const auto names = records.list(layout::run_dir(key));
    if (!names) {
        return std::nullopt;
    }
    Evidence evidence{key};
    Current current = current_of(records, key, newest_link_of(*names));
    evidence.link = current.link;
    evidence.journal = std::move(current.journal);
    if (contains(*names, "ended.json")) {
        evidence.ended = records.read_as(layout::ended_json(key), ending_from_json);
    }
    evidence.trouble = std::move(records.trouble);
    return conclude(evidence, key.made_at()).ending;
}

Result<std::vector<RunKey>> all_runs(Store& store)
{
    return keys_in(store, layout::runs());
}

Result<std::vector<RunKey>> active_runs(Store& store)
{
    return keys_in(store, layout::active());
}

Result<Run> read_run(Store& store, const RunKey& key)
{
    TRY_ASSIGN(const std::string text, store.read(layout::run_json(key)));
    TRY_ASSIGN(Run run, run_from_json(text));
    Records records(store);
    take_walltime(records, run);
    return run;
}

LinkNumber newest_link(Store& store, const RunKey& key)
{
    const auto names = store.list(layout::run_dir(key));
    return names ? newest_link_of(*names) : LinkNumber{};
}

LinkNumber current_link(Store& store, const RunKey& key)
{
    Records records(store);
    return current_of(records, key, newest_link(store, key)).link;
}

} // namespace gpuq
