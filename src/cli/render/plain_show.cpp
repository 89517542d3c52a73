// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/render/plain_show.h"

#include "cli/base/table_output.h"
#include "cli/render/run_table.h"
#include "core/number.h"
#include "core/pending_reason.h"
#include "core/quote.h"
#include "core/size.h"
#include "core/walltime.h"
#include "ports/cluster.h"
#include "report/ending_text.h"
#include "runs/insight/plain_jobs.h"

#include <fmt/format.h>

#include <algorithm>

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

std::string state_text(const RunStatus& job, Time now)
{
    if (job.state == RunState::waiting) {
        std::string text =
            fmt::format("waits: {}", pending_reason_text(job.reason, gpus_asked(job)));
        if (!job.reason.empty() && text.find(job.reason) == text.npos) {
            text += fmt::format(" ({})", job.reason);
        }
        const std::string start = start_text(job, now);
        return start.empty() ? text : text + "; " + start;
    }
    if (job.state == RunState::ended) {
        return job.ending ? ending_text(*job.ending, job.run->request)
                          : "has ended; exit status unknown";
    }
    return job.suspended ? "suspended" : std::string(word(job.state));
}

std::string gpus_text(const RunStatus& job)
{
    const Request& request = job.run->request;
    if (request.gpus.share) {
        return to_text(request.gpus);
    }
    const std::string model = request.gpus.model ? " " + *request.gpus.model : "";
    return fmt::format("{}{}", request.gpus.count * request.nodes, model);
}

std::string moment(const std::optional<Time>& time, Time now)
{
    return time ? moment_text(*time, now) : "";
}

std::string files_text(const Job& job)
{
    const JobFiles& files = job.files;
    return files.output.empty() ? ""
           : files.error.empty() || files.error == files.output
               ? files.output
               : files.output + ", errors " + files.error;
}

Json known(const std::string& text)
{
    return text.empty() ? Json() : Json(text);
}

} // namespace

std::vector<std::string> plain_lines(const RunStatus& job, Time now)
{
    const Job& slurm = *job.plain;
    Lines lines = {fmt::format("job {}, a plain Slurm job: gpuq did not start it", run_title(job))};
    field(lines, "state", state_text(job, now));
    field(lines, "submitted", moment(slurm.submitted_at, now));
    field(lines, "started", moment(job.started_at, now));
    field(lines, job.ending ? "ended" : "ends by",
          moment(job.ending ? std::optional(job.ending->at) : job.ends_at, now));
    field(lines, "time limit", slurm.walltime ? to_text(*slurm.walltime) : "");
    field(lines, "queue", slurm.partition);
    field(lines, "GPUs", slurm.partition.empty() ? "" : gpus_text(job));
    field(lines, "nodes",
          slurm.nodes.empty() ? counted(std::max(1, slurm.size.nodes), "node") : slurm.nodes);
    field(lines, "cores", slurm.size.cpus > 0 ? std::to_string(slurm.size.cpus) : "");
    field(lines, "memory", slurm.size.memory_mib > 0 ? memory_text(slurm.size.memory_mib) : "");
    field(lines, "account", slurm.account);
    field(lines, "QOS", slurm.qos);
    field(lines, "script", slurm.files.script);
    field(lines, "directory", slurm.files.work_dir);
    field(lines, "output", files_text(slurm));
    field(lines, "comment", slurm.comment);
    return lines;
}

Json::Members plain_document(const RunStatus& job, Time now,
                             const std::optional<StartForecast>& forecast)
{
    const Job& slurm = *job.plain;
    return {{"run", run_json(job, now, forecast)},
            {"account", known(slurm.account)},
            {"qos", known(slurm.qos)},
            {"cpus", slurm.size.cpus > 0 ? Json(slurm.size.cpus) : Json()},
            {"memory_mib", slurm.size.memory_mib > 0 ? Json(slurm.size.memory_mib) : Json()},
            {"node_list", known(slurm.nodes)},
            {"script", known(slurm.files.script)},
            {"work_dir", known(slurm.files.work_dir)},
            {"output", known(slurm.files.output)},
            {"error_output", known(slurm.files.error)},
            {"comment", known(slurm.comment)}};
}

Result<int> show_plain(Invocation& invocation, const RunStatus& job,
                       const std::optional<StartForecast>& forecast)
{
    Services& services = invocation.services;
    const Time now = services.clock().now();
    RunStatus whole = job;
    if (!job.plain->partition.empty()) { // otherwise it is from accounting
        TRY_ASSIGN(Cluster* const cluster, services.cluster());
        auto asked = cluster->job(job.job->job);
        if (asked && asked->id == job.job->job) {
            whole = plain_status({*std::move(asked), {}, job.estimate}, job.job->cluster, now);
        }
    }
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(plain_document(whole, now, forecast))));
        return 0;
    }
    for (const std::string& line : plain_lines(whole, now)) {
        TRY(print_line(line));
    }
    return 0;
}

} // namespace gpuq::cli
