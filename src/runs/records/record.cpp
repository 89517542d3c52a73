// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/record.h"

#include "core/timestamp.h"
#include "runs/records/journal.h"
#include "runs/records/record_fields.h"
#include "runs/records/request_json.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <utility>

namespace gpuq {
namespace {

using nlohmann::json;
using records::Fields;
using records::from_bytes;
using records::k_schema;
using records::or_null;
using records::parse;
using records::text_of;

constexpr std::pair<Notice, std::string_view> k_notices[] = {{Notice::automatic, "auto"},
                                                             {Notice::usr1, "USR1"},
                                                             {Notice::usr2, "USR2"},
                                                             {Notice::term, "TERM"},
                                                             {Notice::none, "none"}};

/// Records from before --source have no such field.
Result<SoftLimits> limits_from(const json& object)
{
    if (object.is_null()) {
        return SoftLimits{};
    }
    Fields in(object, "run.json: soft_limits");
    const SoftLimits limits{in.maybe_number<std::uint64_t>("core"),
                            in.maybe_number<std::uint64_t>("stack")};
    TRY(in.check());
    return limits;
}

} // namespace

std::string_view word(Notice notice)
{
    for (const auto& [value, word] : k_notices) {
        if (value == notice) {
            return word;
        }
    }
    return "auto";
}

std::optional<Notice> notice_from_word(std::string_view text)
{
    for (const auto& [value, word] : k_notices) {
        if (word == text) {
            return value;
        }
    }
    return std::nullopt;
}

std::string to_json(const Run& run)
{
    return text_of({{"schema", k_schema},
                    {"key", run.key.text()},
                    {"cluster", from_bytes(run.cluster)},
                    {"user", from_bytes(run.user)},
                    {"host", from_bytes(run.host)},
                    {"version", from_bytes(run.version)},
                    {"submitted_at", to_iso8601(run.submitted_at)},
                    {"request", records::json_of(run.request)},
                    {"environment", records::list_of(run.environment)},
                    {"soft_limits",
                     {{"core", or_null(run.limits.core)}, {"stack", or_null(run.limits.stack)}}}});
}

Result<Run> run_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "run.json"));
    Fields in(document, "run.json");
    TRY_ASSIGN(RunKey key, RunKey::parse(in.text("key")));
    TRY_ASSIGN(Request request, records::request_from(in.object("request")));
    Run run{std::move(key),     in.text("cluster"),     in.text("user"),
            in.text("host"),    in.text("version"),     in.time("submitted_at"),
            std::move(request), in.texts("environment")};
    TRY(in.check());
    TRY_ASSIGN(run.limits, limits_from(in.object("soft_limits")));
    return run;
}

std::string to_json(const LinkJob& link)
{
    return text_of({{"schema", k_schema},
                    {"cluster", from_bytes(link.cluster)},
                    {"job", link.job.value},
                    {"submitted_at", to_iso8601(link.submitted_at)},
                    {"batch", link.batch},
                    {"resumed", link.resumed}});
}

Result<LinkJob> link_job_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "job.json"));
    Fields in(document, "job.json");
    LinkJob link{in.text("cluster"), JobId{in.number<std::uint32_t>("job")},
                 in.time("submitted_at"), in.maybe_flag("batch"), in.maybe_flag("resumed")};
    TRY(in.check());
    return link;
}

std::string to_json(const Ending& ending)
{
    return text_of({{"schema", k_schema},
                    {"status", ending.status},
                    {"cause", word(ending.cause)},
                    {"detail", from_bytes(ending.detail)},
                    {"at", to_iso8601(ending.at)}});
}

Result<Ending> ending_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "ended.json"));
    Fields in(document, "ended.json");
    Ending ending{in.number<int>("status"), cause_from_word(in.text("cause")).value_or(Cause::lost),
                  in.text("detail"), in.time("at")};
    TRY(in.check());
    return ending;
}

void apply(const WalltimeChange& change, Request& request)
{
    request.walltime = change.walltime;
    request.chain = change.chain ? change.chain : request.chain;
}

std::string to_json(const WalltimeChange& change)
{
    return text_of({{"schema", k_schema},
                    {"walltime_minutes", change.walltime.count()},
                    {"by", from_bytes(change.by)},
                    {"at", to_iso8601(change.at)},
                    {"chain", records::json_of(change.chain)}});
}

Result<WalltimeChange> walltime_change_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "walltime.json"));
    Fields in(document, "walltime.json");
    WalltimeChange change{std::chrono::minutes(in.number<std::int32_t>("walltime_minutes")),
                          in.text("by"), in.time("at"), std::nullopt};
    TRY(in.check());
    if (const auto chain = document.find("chain"); chain != document.end()) {
        TRY_ASSIGN(change.chain, records::chain_from(*chain));
    }
    return change;
}

std::string to_json(const Shown& shown)
{
    return text_of(
        {{"schema", k_schema}, {"out", shown.out}, {"err", shown.err}, {"link", shown.link.value}});
}

Result<Shown> shown_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "shown.json"));
    Fields in(document, "shown.json");
    Shown shown{in.number<std::uint64_t>("out"), in.number<std::uint64_t>("err"),
                LinkNumber{in.maybe_number<int>("link").value_or(1)}};
    TRY(in.check());
    return shown;
}

std::string to_json(const StopRequest& request)
{
    return text_of(
        {{"schema", k_schema}, {"by", from_bytes(request.by)}, {"at", to_iso8601(request.at)}});
}

Result<StopRequest> stop_request_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "stop.json"));
    Fields in(document, "stop.json");
    StopRequest request{in.text("by"), in.time("at")};
    TRY(in.check());
    return request;
}

} // namespace gpuq
