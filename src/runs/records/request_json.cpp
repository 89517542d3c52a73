// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/records/request_json.h"

#include "core/timestamp.h"
#include "runs/records/record.h"
#include "runs/records/record_fields.h"

#include <utility>

namespace gpuq::records {
namespace {

using nlohmann::json;

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

} // namespace

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

json json_of(const Request& request)
{
    json env = json::array();
    for (const auto& [name, value] : request.setup.env) {
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
            {"sources", list_of(request.setup.sources)},
            {"modules", list_of(request.setup.modules)},
            {"conda", or_null(request.setup.conda)},
            {"venv", or_null(request.setup.venv)},
            {"container", or_null(request.setup.container)},
            {"container_command", list_of(request.setup.container_command)},
            {"slurm_options", or_null(request.slurm_options)},
            {"sweep", request.sweep ? json{{"key", request.sweep->sweep.text()},
                                           {"worker", request.sweep->number}}
                                    : json(nullptr)},
            {"network", request.network}};
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
    request.setup.env = in.pairs("env");
    request.setup.sources =
        in.texts("sources"); // absent in records from before --source and --venv
    request.setup.modules = in.texts("modules");
    request.setup.conda = in.maybe_text("conda");
    request.setup.venv = in.maybe_text("venv");
    request.setup.container = in.maybe_text("container");
    request.setup.container_command = in.texts("container_command");
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

} // namespace gpuq::records
