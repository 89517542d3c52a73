// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/journal.h"

#include "core/timestamp.h"
#include "runs/records/json_fields.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace gpuq {
namespace {

using nlohmann::json;

constexpr int k_version = 1;

constexpr std::pair<Cause, std::string_view> k_causes[] = {
    {Cause::finished, "finished"},     {Cause::crashed, "crashed"},
    {Cause::time_limit, "time_limit"}, {Cause::memory, "memory"},
    {Cause::gpu_memory, "gpu_memory"}, {Cause::node_failed, "node_failed"},
    {Cause::preempted, "preempted"},   {Cause::stopped, "stopped"},
    {Cause::cancelled, "cancelled"},   {Cause::not_started, "not_started"},
    {Cause::input_lost, "input_lost"}, {Cause::lost, "lost"},
};

constexpr std::pair<Event::Kind, std::string_view> k_kinds[] = {
    {Event::Kind::supervisor_started, "supervisor_started"},
    {Event::Kind::program_started, "program_started"},
    {Event::Kind::warned, "warned"},
    {Event::Kind::signalled, "signalled"},
    {Event::Kind::stop_asked, "stop_asked"},
    {Event::Kind::log_lost, "log_lost"},
    {Event::Kind::noticed, "noticed"},
    {Event::Kind::notice_failed, "notice_failed"},
    {Event::Kind::checkpoint, "checkpoint"},
    {Event::Kind::resumed, "resumed"},
    {Event::Kind::code_changed, "code_changed"},
    {Event::Kind::next_submitted, "next_submitted"},
    {Event::Kind::next_failed, "next_failed"},
    {Event::Kind::other_user, "other_user"},
    {Event::Kind::credentials, "credentials"},
    {Event::Kind::memory_kill, "memory_kill"},
    {Event::Kind::memory_kill_nearby, "memory_kill_nearby"},
    {Event::Kind::ended, "ended"},
    {Event::Kind::limit_changed, "limit_changed"},
};

constexpr std::pair<Stream, std::string_view> k_streams[] = {{Stream::out, "out"},
                                                             {Stream::err, "err"}};

template <typename Table, typename Value>
std::string_view word_in(const Table& table, Value value)
{
    for (const auto& [each, name] : table) {
        if (each == value) {
            return name;
        }
    }
    return {};
}

template <typename Value, std::size_t N>
std::optional<Value> value_in(const std::pair<Value, std::string_view> (&table)[N],
                              std::string_view name)
{
    for (const auto& [each, spelled] : table) {
        if (spelled == name) {
            return each;
        }
    }
    return std::nullopt;
}

template <typename Value>
void put(json& line, const char* name, const std::optional<Value>& value)
{
    if (value) {
        line[name] = *value;
    }
}

std::optional<Event> event_from(std::string_view text)
{
    const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || number_in<int>(line, "v") != k_version) {
        return std::nullopt;
    }
    const auto kind = value_in(k_kinds, text_in(line, "event").value_or(""));
    const auto at = time_in(line, "at");
    if (!kind || !at) {
        return std::nullopt;
    }
    Event event;
    event.kind = *kind;
    event.at = *at;
    event.job = number_in<std::uint32_t>(line, "job");
    event.host = text_in(line, "host");
    event.address = text_in(line, "address");
    event.pid = number_in<int>(line, "pid");
    event.stream = value_in(k_streams, text_in(line, "stream").value_or(""));
    event.from = number_in<std::uint64_t>(line, "from");
    event.to = number_in<std::uint64_t>(line, "to");
    event.status = number_in<int>(line, "status");
    if (const auto cause = text_in(line, "cause")) {
        event.cause = cause_from_word(*cause).value_or(Cause::lost);
    }
    event.detail = text_in(line, "detail");
    event.tail = text_in(line, "tail");
    event.continues = flag_in(line, "continues");
    return event;
}

} // namespace

std::string to_line(const Event& event)
{
    json line = {
        {"v", k_version}, {"at", to_iso8601(event.at)}, {"event", word_in(k_kinds, event.kind)}};
    put(line, "job", event.job);
    put(line, "host", event.host);
    put(line, "address", event.address);
    put(line, "pid", event.pid);
    if (event.stream) {
        line["stream"] = word_in(k_streams, *event.stream);
    }
    put(line, "from", event.from);
    put(line, "to", event.to);
    put(line, "status", event.status);
    if (event.cause) {
        line["cause"] = word(*event.cause);
    }
    put(line, "detail", event.detail);
    put(line, "tail", event.tail);
    if (event.continues) {
        line["continues"] = true;
    }
    return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::vector<Event> parse_journal(std::string_view bytes)
{
    std::vector<Event> events;
    while (true) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) {
            return events;
        }
        if (auto event = event_from(bytes.substr(0, end))) {
            events.push_back(*std::move(event));
        }
        bytes.remove_prefix(end + 1);
    }
}

std::string_view word(Cause cause)
{
    return word_in(k_causes, cause);
}

std::optional<Cause> cause_from_word(std::string_view word)
{
    return value_in(k_causes, word);
}

} // namespace gpuq
