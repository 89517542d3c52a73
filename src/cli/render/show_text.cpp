// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/show_text.h"

#include "cli/render/credentials_text.h"
#include "cli/render/run_table.h"
#include "cli/render/sample_text.h"
#include "core/number.h"
#include "core/pending_reason.h"
#include "core/quote.h"
#include "core/size.h"
#include "core/walltime.h"
#include "report/ending_text.h"
#include "runs/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>

namespace gpuq::cli {
namespace {

using report::Json;
using Lines = std::vector<std::string>;

void field(Lines& lines, std::string_view name, const std::string& text)
{
    if (!text.empty()) {
        lines.push_back(fmt::format("  {:<12}{}", name, text));
    }
}

/// The sorted names of NAME=VALUE.
std::vector<std::string> names_of(const std::vector<std::string>& environment)
{
    std::vector<std::string> names;
    for (const std::string& variable : environment) {
        names.push_back(variable.substr(0, variable.find('=')));
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> names_of(const std::vector<std::pair<std::string, std::string>>& variables)
{
    std::vector<std::string> names;
    for (const auto& [name, value] : variables) {
        names.push_back(name);
    }
    return names;
}

std::string joined(const std::vector<std::string>& arguments)
{
    return fmt::format("{}", fmt::join(arguments, ", "));
}

std::string waiting_state(const RunStatus& status, Time now)
{
    std::string text = "waiting: " + pending_reason_text(status.reason, gpus_asked(status));
    if (status.expected_start && *status.expected_start > now) {
        text += fmt::format("; expected start {}", clock_text(*status.expected_start, now));
    }
    return text;
}

std::string ended_state(const RunStatus& status)
{
    if (!status.ending || !status.run) {
        return "ended; exit status unknown";
    }
    const Ending& ending = *status.ending;
    const std::string how = ending_text(ending, status.run->request);
    const bool is_explained = ending.cause == Cause::finished || ending.cause == Cause::gpu_memory;
    return is_explained ? how : fmt::format("{} (exit status {})", how, ending.status);
}

std::string state_text(const RunStatus& status, Time now)
{
    if (status.stop && status.state != RunState::ended) {
        return fmt::format("stopping: requested by {}", status.stop->by);
    }
    switch (status.state) {
    case RunState::submitting:
        return "submitting";
    case RunState::waiting:
        return waiting_state(status, now);
    case RunState::running:
        return status.suspended ? "suspended by an operator (scontrol suspend)" : "running";
    case RunState::ended:
        return ended_state(status);
    case RunState::unknown:
        break;
    }
    return fmt::format("unknown: {}", status.why_unknown);
}

std::string gpus_text(const Request& request)
{
    if (request.gpus.count == 0) {
        return request.nodes == 1 ? "none" : fmt::format("none, {} nodes", request.nodes);
    }
    const std::string each = to_text(request.gpus);
    return request.nodes == 1 ? each : fmt::format("{} on each of {} nodes", each, request.nodes);
}

std::string ranks_text(const Request& request)
{
    if (!request.tasks_per_node) {
        return "";
    }
    const std::string gpus = request.gpus_per_task
                                 ? fmt::format(", each with {} of its GPUs", *request.gpus_per_task)
                                 : "";
    return fmt::format("{} on each node{}", *request.tasks_per_node, gpus);
}

std::string share_text(const Request& request)
{
    std::vector<std::string> parts;
    if (request.cpus) {
        parts.push_back(fmt::format("{} cores", *request.cpus));
    }
    if (request.memory_mib) {
        parts.push_back(memory_text(*request.memory_mib));
    }
    return parts.empty() ? "the queue's share" : joined(parts);
}

std::string environment_text(const Run& run)
{
    const Request& request = run.request;
    std::vector<std::string> parts;
    if (!request.setup.sources.empty()) {
        parts.push_back("source " + joined(request.setup.sources));
    }
    if (!request.setup.modules.empty()) {
        parts.push_back("modules " + joined(request.setup.modules));
    }
    if (request.setup.conda) {
        parts.push_back("conda " + *request.setup.conda);
    }
    if (request.setup.venv) {
        parts.push_back("venv " + *request.setup.venv);
    }
    if (request.setup.container) {
        parts.push_back("container " + *request.setup.container);
    }
    if (!request.setup.env.empty()) {
        parts.push_back("set: " + joined(names_of(request.setup.env)));
    }
    parts.push_back(fmt::format("{} variables of the shell", run.environment.size()));
    return fmt::format("{}", fmt::join(parts, "; "));
}

void add_request(Lines& lines, const RunStatus& status, Time now)
{
    const Run& run = *status.run;
    const Request& request = run.request;
    field(lines, "program", shell_command(request.program));
    field(lines, "directory", request.work_dir);
    field(lines, "queue",
          request.walltime.count() > 0
              ? fmt::format("{}, for {} at most", status.queue, to_text(request.walltime))
              : status.queue);
    field(lines, "GPUs", gpus_text(request));
    field(lines, "ranks", ranks_text(request));
    field(lines, "per node", share_text(request));
    field(lines, "account", request.account.value_or(""));
    field(lines, "QOS", request.qos.value_or(""));
    field(lines, "after", request.after ? fmt::format("job {}", request.after->value) : "");
    field(lines, "for Slurm", request.slurm_options.value_or(""));
    field(lines, "environment", environment_text(run));
    field(lines, "submitted",
          fmt::format("{} by {} on {}, gpuq {}", moment_text(run.submitted_at, now), run.user,
                      run.host, run.version));
}

void add_code(Lines& lines, const std::optional<CodeFacts>& code)
{
    if (!code) {
        return;
    }
    std::string_view name = "code";
    for (const std::string& line : code_lines(*code)) {
        field(lines, std::exchange(name, ""), line);
    }
}

void add_life(Lines& lines, const RunStatus& status, Time now)
{
    field(lines, "job",
          status.job ? fmt::format("{} on cluster {}", status.job->job.value, status.job->cluster)
                     : "none yet");
    field(lines, "node", status.host);
    field(lines, "address", status.state == RunState::running ? status.address : "");
    field(lines, "started", status.started_at ? moment_text(*status.started_at, now) : "");
    if (status.state == RunState::running && status.ends_at) {
        field(lines, "ends",
              fmt::format("{} at the latest (in {})", moment_text(*status.ends_at, now),
                          describe(std::max(
                              std::chrono::seconds(0),
                              std::chrono::floor<std::chrono::seconds>(*status.ends_at - now)))));
    }
    field(lines, "ended", status.ending ? moment_text(status.ending->at, now) : "");
    field(lines, "stop",
          status.stop && status.state != RunState::ended
              ? fmt::format("requested by {}", status.stop->by)
              : "");
}

std::string past_text(const LinkPast& link, const Request& request, Time now)
{
    std::string text = link.started_at ? moment_text(*link.started_at, now) : "not started";
    if (link.started_at) {
        const Time end = link.ending ? link.ending->at : now;
        text += fmt::format(
            ", {}", describe(std::chrono::floor<std::chrono::seconds>(end - *link.started_at)));
    }
    text += link.host.empty() ? "" : " on " + link.host;
    if (link.ending) {
        text += fmt::format("; {}", ending_text(*link.ending, request));
    }
    return text + (link.saved() ? "; saved " + link.checkpoint : "");
}

/// A run of several links: its progress, and the result of each link.
void add_chain(Lines& lines, const RunStatus& status, Time now)
{
    if (!status.run || !status.run->request.chain) {
        return;
    }
    const Request& request = status.run->request;
    const Chain& chain = *request.chain;
    const auto used = time_used(status.links, now);
    const auto expected = expected_links(request, status.links, now);
    const std::string count = status.state == RunState::ended || !expected
                                  ? fmt::format("{}", status.link.value)
                                  : fmt::format("{} of about {}", status.link.value, *expected);
    field(lines, "link", fmt::format("{}, of {} each", count, describe(chain.link)));
    field(lines, "used",
          fmt::format("{} of {}, {:.1f} GPU-hours", describe(used), to_text(request.walltime),
                      gpu_hours_of(request, used)));
    field(lines, "checkpoints",
          chain.checkpoint.empty() ? "in GPUQ_CHECKPOINT_DIR" : chain.checkpoint);
    field(lines, "next",
          status.next_job ? fmt::format("job {} waits", status.next_job->value) : "");
    for (const LinkPast& link : status.links) {
        field(lines, fmt::format("link {}", link.link.value), past_text(link, request, now));
    }
}

void add_samples(Lines& lines, const WholeRun& whole, Time now)
{
    if (whole.status.state != RunState::ended) {
        for (const auto& [name, text] : sample_lines(whole.samples, now)) {
            field(lines, name, text);
        }
    }
    const bool measured = !whole.samples.empty() && whole.gpu_time.allocated().count() > 0;
    field(lines, "GPU time", measured ? gpu_time_text(whole.gpu_time) : "");
}

std::string memory_kills_text(const std::optional<std::uint64_t>& kills)
{
    return kills.value_or(0) == 0
               ? ""
               : fmt::format("the kernel killed {} of its processes for memory", *kills);
}

void add_idle(Lines& lines, const IdleRecords& idle, std::optional<Time> now)
{
    field(lines, "idle", idle.finding ? describe(*idle.finding, now) : "");
    field(lines, "exempt", idle.exemption ? describe(*idle.exemption) : "");
}

Json since(const telemetry::IdleEvidence& evidence,
           const std::optional<std::chrono::milliseconds>& time)
{
    return time ? Json(evidence.at - *time) : Json();
}

Json idle_json(const IdleRecords& idle)
{
    Json finding;
    if (idle.finding) {
        const IdleFinding& found = *idle.finding;
        const telemetry::IdleEvidence& evidence = found.evidence;
        finding = Json::object({{"state", word(found.state)},
                                {"at", found.at},
                                {"queue", found.partition},
                                {"after_seconds", found.rule.after},
                                {"warn_seconds", found.rule.warn},
                                {"max_per_hour", found.rule.max_per_hour},
                                {"left_seconds", found.left},
                                {"unused_seconds", evidence.at - evidence.idle_since},
                                {"missing_seconds", evidence.missing},
                                {"sample_count", evidence.samples},
                                {"gpu_memory_kib", evidence.memory_kib},
                                {"cpu_ms", evidence.cpu_ms},
                                {"disk_bytes", evidence.disk_bytes},
                                {"since_input_seconds", since(evidence, evidence.last_input)},
                                {"since_output_seconds", since(evidence, evidence.last_output)}});
    }
    Json exemption;
    if (idle.exemption) {
        exemption = Json::object({{"by", idle.exemption->by},
                                  {"reason", idle.exemption->reason},
                                  {"at", idle.exemption->at}});
    }
    return Json::object({{"finding", finding}, {"exemption", exemption}});
}

std::string bytes_text(const std::optional<std::uint64_t>& bytes)
{
    return bytes ? fmt::format("{} bytes", *bytes) : "none yet";
}

std::string stream_name(const Event& event)
{
    return event.stream == Stream::err ? "standard error" : "standard output";
}

Json json_of(const Event& event, const RunStatus& status)
{
    return Json::object({{"at", event.at},
                         {"text", event_text(event, status)},
                         {"status", event.status},
                         {"cause", event.cause ? Json(word(*event.cause)) : Json()},
                         {"detail", event.detail}});
}

std::string_view input_word(Input input)
{
    switch (input) {
    case Input::none:
        return "none";
    case Input::pipe:
        return "pipe";
    case Input::terminal:
        return "terminal";
    }
    return "none";
}

Json request_json(const Run& run)
{
    const Request& request = run.request;
    return Json::object({{"program", Json::array(request.program)},
                         {"work_dir", request.work_dir},
                         {"input", input_word(request.input)},
                         {"gpus_per_node", request.gpus.count},
                         {"tasks_per_node", request.tasks_per_node},
                         {"gpus_per_task", request.gpus_per_task},
                         {"min_gpu_memory_mib", request.gpus.min_memory_mib},
                         {"cpus_per_node", request.cpus},
                         {"memory_mib_per_node", request.memory_mib},
                         {"account", request.account},
                         {"qos", request.qos},
                         {"after", request.after},
                         {"sources", Json::array(request.setup.sources)},
                         {"modules", Json::array(request.setup.modules)},
                         {"conda", request.setup.conda},
                         {"venv", request.setup.venv},
                         {"container", request.setup.container},
                         {"slurm_options", request.slurm_options},
                         {"env_names", Json::array(names_of(request.setup.env))},
                         {"environment_names", Json::array(names_of(run.environment))},
                         {"user", run.user},
                         {"host", run.host},
                         {"version", run.version}});
}

} // namespace

std::string event_text(const Event& event, const RunStatus& status)
{
    const std::string detail = event.detail.value_or("");
    switch (event.kind) {
    case Event::Kind::supervisor_started:
        return fmt::format("job {} began on {}", event.job.value_or(0), event.host.value_or("?"));
    case Event::Kind::program_started:
        return event.pid ? fmt::format("the program started, process {}", *event.pid)
                         : std::string("the program started");
    case Event::Kind::warned:
        return "warning to the program: " + detail;
    case Event::Kind::limit_changed: {
        const auto end = end_of_link(event);
        return "the time limit in Slurm has changed" +
               (end ? ": the link ends at " + short_moment_text(*end) : std::string());
    }
    case Event::Kind::signalled:
        return "got " + detail;
    case Event::Kind::stop_asked:
        return "asked to stop " + (detail.starts_with("by ") ? detail : "by " + detail);
    case Event::Kind::log_lost:
        return fmt::format("bytes {} to {} of {} could not be written and are lost",
                           event.from.value_or(0), event.to.value_or(0), stream_name(event));
    case Event::Kind::noticed:
        return "the program was asked to save and exit" +
               (detail.empty() ? "" : fmt::format(" ({})", detail));
    case Event::Kind::notice_failed:
        return "some other nodes could not be signalled and got the stop file instead: " + detail;
    case Event::Kind::checkpoint:
        return fmt::format("saved {}, {} bytes", detail, event.to.value_or(0));
    case Event::Kind::resumed:
        return detail.empty() ? std::string("began without a checkpoint")
                              : fmt::format("resumed from {}", detail);
    case Event::Kind::code_changed:
        return fmt::format("{} has changed since the previous link began", detail);
    case Event::Kind::next_submitted:
        return fmt::format("job {} waits to be the next link", event.job.value_or(0));
    case Event::Kind::next_failed:
        return "the next link could not be submitted yet: " + detail;
    case Event::Kind::other_user:
    case Event::Kind::credentials:
        return detail;
    case Event::Kind::memory_kill:
        return fmt::format("the kernel killed {} of its processes for memory on {}",
                           event.to.value_or(1), event.host.value_or("?"));
    case Event::Kind::memory_kill_nearby:
        return fmt::format("processes killed by the kernel for memory on {}: {}; unknown whether "
                           "they belong to this run",
                           event.host.value_or("?"), event.to.value_or(1));
    case Event::Kind::ended: {
        const Ending ending{event.status.value_or(0), event.cause.value_or(Cause::lost), detail,
                            event.at};
        if (event.continues) {
            return "the link " + ending_text(ending, status.run ? status.run->request : Request{});
        }
        return "it " + ending_text(ending, status.run ? status.run->request : Request{});
    }
    default: // from a later version
        return detail;
    }
}

std::vector<std::string> show_lines(const WholeRun& whole, Time now)
{
    const RunStatus& status = whole.status;
    Lines lines = {fmt::format("run {}", run_title(status))};
    field(lines, "state", state_text(status, now));
    add_life(lines, status, now);
    add_chain(lines, status, now);
    for (const auto& [name, text] : training_fields(whole.training, status, now)) {
        field(lines, name, text);
    }
    add_samples(lines, whole, now);
    field(lines, "memory", memory_kills_text(status.memory_kills));
    add_idle(lines, whole.idle,
             status.state == RunState::ended ? std::nullopt : std::optional(now));
    if (whole.credentials) {
        for (const auto& [name, text] : credential_fields(*whole.credentials, status, now)) {
            field(lines, name, text);
        }
    }
    if (status.run) {
        add_request(lines, status, now);
        add_code(lines, whole.code);
    }
    field(lines, "output",
          fmt::format("standard output {}, standard error {}", bytes_text(whole.out_bytes),
                      bytes_text(whole.err_bytes)));
    field(lines, "records", whole.directory);
    if (!whole.journal.empty()) {
        lines.emplace_back("events:");
    }
    for (const Event& event : whole.journal) {
        lines.push_back(
            fmt::format("  {}  {}", moment_text(event.at, now), event_text(event, status)));
    }
    return lines;
}

Json::Members show_document(const WholeRun& whole, Time now)
{
    Json::Elements journal;
    for (const Event& event : whole.journal) {
        journal.push_back(json_of(event, whole.status));
    }
    Json::Elements warnings;
    for (const std::string& text : whole.warnings) {
        warnings.push_back(Json::object({{"code", "slurm_unreachable"}, {"text", text}}));
    }
    return {{"run", run_json(whole.status, now, whole.forecast)},
            {"request", whole.status.run ? request_json(*whole.status.run) : Json()},
            {"folder", whole.directory},
            {"code", code_json(whole.code)},
            {"out_bytes", whole.out_bytes},
            {"err_bytes", whole.err_bytes},
            {"progress", progress_json(whole.training, whole.status, now)},
            {"training", training_json(whole.training, now)},
            {"samples", samples_json(whole.samples)},
            {"gpu_time", gpu_time_json(whole.gpu_time)},
            {"memory_kills", whole.status.memory_kills},
            {"idle", idle_json(whole.idle)},
            {"credentials", credentials_json(whole.credentials, whole.status, now)},
            {"journal", Json::array(std::move(journal))},
            {"warnings", Json::array(std::move(warnings))}};
}

} // namespace gpuq::cli
