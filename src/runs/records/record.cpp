// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/record.h"

#include "core/timestamp.h"
#include "runs/records/journal.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace gpuq {
namespace {

using nlohmann::json;

constexpr int k_schema = 1;

/// File names, arguments and environment values are bytes, but JSON holds only UTF-8: text that is
/// not UTF-8 becomes the object `{"hex": "66ff"}`.
json from_bytes(const std::string& bytes)
{
    json text = bytes;
    try {
        text.dump();
    } catch (const json::exception&) {
        std::string hex;
        for (const char c : bytes) {
            hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
        }
        return json{{"hex", hex}};
    }
    return text;
}

std::optional<std::string> from_hex(const std::string& hex)
{
    constexpr std::string_view k_digits = "0123456789abcdef";
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        const auto high = k_digits.find(hex[i]);
        const auto low = i + 1 < hex.size() ? k_digits.find(hex[i + 1]) : std::string_view::npos;
        if (high == std::string_view::npos || low == std::string_view::npos) {
            return std::nullopt;
        }
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

std::optional<std::string> to_bytes(const json& value)
{
    if (value.is_string()) {
        return value.get<std::string>();
    }
    const auto hex = value.is_object() ? value.find("hex") : value.end();
    if (value.is_object() && hex != value.end() && hex->is_string()) {
        return from_hex(hex->get<std::string>());
    }
    return std::nullopt;
}

json list_of(const std::vector<std::string>& texts)
{
    json list = json::array();
    for (const std::string& text : texts) {
        list.push_back(from_bytes(text));
    }
    return list;
}

/// `null` for an unset value.
json or_null(const std::optional<std::string>& value)
{
    return value ? from_bytes(*value) : json(nullptr);
}
template <typename Number>
json or_null(const std::optional<Number>& value)
{
    return value ? json(*value) : json(nullptr);
}

std::string text_of(const json& document)
{
    return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

/// Reads the fields of an object. A field of the wrong type gives an empty value and is remembered
/// for check(), as is an absent one unless it is read as `maybe`.
class Fields {
public:
    Fields(const json& object, std::string where)
        : m_object(object)
        , m_where(std::move(where))
    {
        if (!object.is_object()) {
            wrong("the document");
        }
    }

    std::string text(const char* name) { return must(maybe_text(name), name); }
    std::optional<std::string> maybe_text(const char* name)
    {
        const json* field = find(name);
        return field ? kind(to_bytes(*field), name) : std::nullopt;
    }

    template <typename Number>
    Number number(const char* name)
    {
        return must(maybe_number<Number>(name), name);
    }
    template <typename Number>
    std::optional<Number> maybe_number(const char* name)
    {
        const json* field = find(name);
        if (!field) {
            return std::nullopt;
        }
        std::optional<Number> value;
        if (field->is_number_unsigned() && std::in_range<Number>(field->get<std::uint64_t>())) {
            value = static_cast<Number>(field->get<std::uint64_t>());
        } else if (field->is_number_integer() && !field->is_number_unsigned() &&
                   std::in_range<Number>(field->get<std::int64_t>())) {
            value = static_cast<Number>(field->get<std::int64_t>());
        }
        return kind(value, name);
    }

    bool maybe_flag(const char* name)
    {
        const json* field = find(name);
        return field &&
               must(kind(field->is_boolean() ? std::optional(field->get<bool>()) : std::nullopt,
                         name),
                    name);
    }

    Time time(const char* name)
    {
        const std::string spelled = text(name);
        return must(kind(time_from_iso8601(spelled), name), name);
    }

    std::vector<std::string> texts(const char* name)
    {
        std::vector<std::string> list;
        for (const json& each : array(name)) {
            list.push_back(must(kind(to_bytes(each), name), name));
        }
        return list;
    }

    std::vector<std::pair<std::string, std::string>> pairs(const char* name)
    {
        std::vector<std::pair<std::string, std::string>> list;
        for (const json& each : array(name)) {
            if (!each.is_array() || each.size() != 2) {
                wrong(name);
                break;
            }
            list.emplace_back(must(kind(to_bytes(each[0]), name), name),
                              must(kind(to_bytes(each[1]), name), name));
        }
        return list;
    }

    const json& object(const char* name)
    {
        static const json k_nothing;
        const json* field = find(name);
        return field ? *field : k_nothing;
    }

    void wrong(const char* name)
    {
        if (m_problem.empty()) {
            m_problem = fmt::format("{}: '{}' is missing or has the wrong type", m_where, name);
        }
    }

    Result<void> check() const
    {
        return m_problem.empty() ? Result<void>() : fail(Error::Kind::usage, m_problem);
    }

private:
    const json* find(const char* name)
    {
        if (!m_object.is_object()) {
            return nullptr;
        }
        const auto at = m_object.find(name);
        return at == m_object.end() || at->is_null() ? nullptr : &*at;
    }
    const json& array(const char* name)
    {
        static const json k_empty = json::array();
        const json* field = find(name);
        if (field && !field->is_array()) {
            wrong(name);
        }
        return field && field->is_array() ? *field : k_empty;
    }
    template <typename T>
    std::optional<T> kind(std::optional<T> value, const char* name)
    {
        if (!value) {
            wrong(name);
        }
        return value;
    }
    template <typename T>
    T must(std::optional<T> value, const char* name)
    {
        if (!value) {
            wrong(name);
        }
        return value ? *std::move(value) : T{};
    }

    const json& m_object;
    std::string m_where;
    std::string m_problem;
};

Result<json> parse(std::string_view text, const char* where)
{
    json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (document.is_discarded()) {
        return fail(Error::Kind::usage, fmt::format("{}: not a JSON document", where));
    }
    Fields fields(document, where);
    const int schema = fields.number<int>("schema");
    TRY(fields.check());
    if (schema != k_schema) {
        return fail(Error::Kind::usage, fmt::format("{}: schema {}, this gpuq {} reads schema {}",
                                                    where, schema, GPUQ_VERSION, k_schema));
    }
    return document;
}

constexpr std::pair<Input, std::string_view> k_inputs[] = {
    {Input::none, "none"}, {Input::pipe, "pipe"}, {Input::terminal, "terminal"}};

std::string word(Input input)
{
    for (const auto& [value, word] : k_inputs) {
        if (value == input) {
            return std::string(word);
        }
    }
    return "none";
}

std::optional<Input> input_from(const std::string& text)
{
    for (const auto& [value, word] : k_inputs) {
        if (word == text) {
            return value;
        }
    }
    return std::nullopt;
}

json json_of(const std::optional<GpuShare>& share)
{
    return share ? json{{"kind", word(share->kind)},
                        {"parts", share->parts},
                        {"per_gpu", or_null(share->per_gpu)},
                        {"cpus", or_null(share->cpus)},
                        {"memory_mib", or_null(share->memory_mib)}}
                 : json(nullptr);
}

json json_of(const GpuRequest& gpus)
{
    return {{"count", gpus.count},
            {"model", or_null(gpus.model)},
            {"min_memory_mib", or_null(gpus.min_memory_mib)},
            {"share", json_of(gpus.share)},
            {"mig", or_null(gpus.mig)}};
}

json json_of(const std::optional<Pty>& pty)
{
    return pty ? json{{"rows", pty->size.rows},
                      {"columns", pty->size.columns},
                      {"shell", pty->shell}}
               : json(nullptr);
}

constexpr std::pair<Notice, std::string_view> k_notices[] = {{Notice::automatic, "auto"},
                                                             {Notice::usr1, "USR1"},
                                                             {Notice::usr2, "USR2"},
                                                             {Notice::term, "TERM"},
                                                             {Notice::none, "none"}};

json json_of(const std::optional<Chain>& chain)
{
    if (!chain) {
        return nullptr;
    }
    return {{"link_seconds", chain->link.count()},
            {"first_link_seconds", chain->first.count()},
            {"supervisor", from_bytes(chain->supervisor)},
            {"checkpoint", from_bytes(chain->checkpoint)},
            {"resume_args", list_of(chain->resume_args)},
            {"valid", list_of(chain->valid)},
            {"notice", word(chain->notice)},
            {"aware", chain->aware},
            {"from_scratch", chain->from_scratch},
            {"max_links", or_null(chain->max_links)},
            {"gpu_minutes", chain->gpu_time ? json(chain->gpu_time->count()) : json(nullptr)},
            {"until", chain->until ? json(to_iso8601(*chain->until)) : json(nullptr)}};
}

json json_of(const Request& request)
{
    json env = json::array();
    for (const auto& [name, value] : request.env) {
        env.push_back(json::array({from_bytes(name), from_bytes(value)}));
    }
    return {{"program", list_of(request.program)},
            {"name", from_bytes(request.name)},
            {"work_dir", from_bytes(request.work_dir)},
            {"walltime_minutes", request.walltime.count()},
            {"queue", from_bytes(request.queue)},
            {"gpus", json_of(request.gpus)},
            {"nodes", request.nodes},
            {"tasks_per_node", or_null(request.tasks_per_node)},
            {"gpus_per_task", or_null(request.gpus_per_task)},
            {"cpus", or_null(request.cpus)},
            {"memory_mib", or_null(request.memory_mib)},
            {"account", or_null(request.account)},
            {"qos", or_null(request.qos)},
            {"after", request.after ? json(request.after->value) : json(nullptr)},
            {"input", word(request.input)},
            {"pty", json_of(request.pty)},
            {"chain", json_of(request.chain)},
            {"env", env},
            {"sources", list_of(request.sources)},
            {"modules", list_of(request.modules)},
            {"conda", or_null(request.conda)},
            {"venv", or_null(request.venv)},
            {"container", or_null(request.container)},
            {"container_command", list_of(request.container_command)},
            {"slurm_options", or_null(request.slurm_options)},
            {"sweep", request.sweep ? json{{"key", request.sweep->sweep.text()},
                                           {"worker", request.sweep->number}}
                                    : json(nullptr)},
            {"network", request.network}};
}

/// Records from before shares have no such field.
Result<std::optional<GpuShare>> share_from(const json& object)
{
    if (object.is_null()) {
        return std::optional<GpuShare>{};
    }
    Fields in(object, "run.json: share");
    GpuShare share;
    const auto kind = share_kind(in.text("kind"));
    share.kind = kind.value_or(GpuShare::Kind::shard);
    share.parts = in.number<int>("parts");
    share.per_gpu = in.maybe_number<int>("per_gpu");
    share.cpus = in.maybe_number<int>("cpus");
    share.memory_mib = in.maybe_number<std::uint64_t>("memory_mib");
    TRY(in.check());
    if (!kind || share.parts < 1) {
        return fail(Error::Kind::io, "run.json: invalid share");
    }
    return std::optional(share);
}

Result<GpuRequest> gpus_from(const json& object)
{
    Fields in(object, "run.json: gpus");
    GpuRequest gpus;
    gpus.count = in.number<int>("count");
    gpus.model = in.maybe_text("model");
    gpus.min_memory_mib = in.maybe_number<std::uint64_t>("min_memory_mib");
    gpus.mig = in.maybe_text("mig");
    TRY(in.check());
    TRY_ASSIGN(gpus.share, share_from(object.value("share", json(nullptr))));
    return gpus;
}

/// Records from before --pty have no such field.
Result<std::optional<Pty>> pty_from(const json& object)
{
    if (object.is_null()) {
        return std::optional<Pty>{};
    }
    Fields in(object, "run.json: pty");
    Pty pty;
    pty.size = {in.number<std::uint16_t>("rows"), in.number<std::uint16_t>("columns")};
    pty.shell = in.maybe_flag("shell");
    TRY(in.check());
    return std::optional{pty};
}

/// Records from before chains have no such field.
Result<std::optional<Chain>> chain_from(const json& object)
{
    if (object.is_null()) {
        return std::optional<Chain>{};
    }
    Fields in(object, "the chain");
    Chain chain;
    chain.link = std::chrono::seconds(in.number<std::int32_t>("link_seconds"));
    chain.first =
        std::chrono::seconds(in.maybe_number<std::int32_t>("first_link_seconds").value_or(0));
    chain.supervisor = in.text("supervisor");
    chain.checkpoint = in.text("checkpoint");
    chain.resume_args = in.texts("resume_args");
    chain.valid = in.texts("valid");
    const auto notice = notice_from_word(in.text("notice"));
    chain.notice = notice.value_or(Notice::automatic);
    chain.aware = in.maybe_flag("aware");
    chain.from_scratch = in.maybe_flag("from_scratch");
    chain.max_links = in.maybe_number<int>("max_links");
    if (const auto minutes = in.maybe_number<std::int64_t>("gpu_minutes")) {
        chain.gpu_time = std::chrono::minutes(*minutes);
    }
    if (const auto until = in.maybe_text("until")) {
        chain.until = time_from_iso8601(*until);
    }
    if (!notice) {
        in.wrong("notice");
    }
    TRY(in.check());
    return std::optional{chain};
}

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

Result<std::optional<SweepWorker>> sweep_from(const json& object)
{
    if (object.is_null()) {
        return std::optional<SweepWorker>();
    }
    Fields in(object, "run.json: sweep");
    const auto sweep = RunKey::parse(in.text("key"));
    const int number = in.number<int>("worker");
    if (!sweep) {
        in.wrong("key");
    }
    TRY(in.check());
    return std::optional(SweepWorker{*sweep, number});
}

Result<Request> request_from(const json& object)
{
    Fields in(object, "run.json: request");
    Request request;
    request.program = in.texts("program");
    request.name = in.text("name");
    request.work_dir = in.text("work_dir");
    request.walltime = std::chrono::minutes(in.number<std::int32_t>("walltime_minutes"));
    request.queue = in.text("queue");
    request.nodes = in.number<int>("nodes");
    request.tasks_per_node = in.maybe_number<int>("tasks_per_node");
    request.gpus_per_task = in.maybe_number<int>("gpus_per_task");
    request.cpus = in.maybe_number<int>("cpus");
    request.memory_mib = in.maybe_number<std::uint64_t>("memory_mib");
    request.account = in.maybe_text("account");
    request.qos = in.maybe_text("qos");
    if (const auto after = in.maybe_number<std::uint32_t>("after")) {
        request.after = JobId{*after};
    }
    const auto input = input_from(in.text("input"));
    request.input = input.value_or(Input::none);
    request.env = in.pairs("env");
    request.sources = in.texts("sources"); // absent in records from before --source and --venv
    request.modules = in.texts("modules");
    request.conda = in.maybe_text("conda");
    request.venv = in.maybe_text("venv");
    request.container = in.maybe_text("container");
    request.container_command = in.texts("container_command");
    request.slurm_options = in.maybe_text("slurm_options");
    request.network = in.maybe_flag("network");
    if (!input) {
        in.wrong("input");
    }
    if (request.program.empty()) {
        in.wrong("program");
    }
    TRY(in.check());
    TRY_ASSIGN(request.sweep, sweep_from(in.object("sweep")));
    TRY_ASSIGN(request.gpus, gpus_from(in.object("gpus")));
    TRY_ASSIGN(request.pty, pty_from(in.object("pty")));
    TRY_ASSIGN(request.chain, chain_from(in.object("chain")));
    return request;
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
                    {"request", json_of(run.request)},
                    {"environment", list_of(run.environment)},
                    {"soft_limits",
                     {{"core", or_null(run.limits.core)}, {"stack", or_null(run.limits.stack)}}}});
}

Result<Run> run_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "run.json"));
    Fields in(document, "run.json");
    TRY_ASSIGN(RunKey key, RunKey::parse(in.text("key")));
    TRY_ASSIGN(Request request, request_from(in.object("request")));
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
                    {"chain", json_of(change.chain)}});
}

Result<WalltimeChange> walltime_change_from_json(std::string_view text)
{
    TRY_ASSIGN(const json document, parse(text, "walltime.json"));
    Fields in(document, "walltime.json");
    WalltimeChange change{std::chrono::minutes(in.number<std::int32_t>("walltime_minutes")),
                          in.text("by"), in.time("at"), std::nullopt};
    TRY(in.check());
    if (const auto chain = document.find("chain"); chain != document.end()) {
        TRY_ASSIGN(change.chain, chain_from(*chain));
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
