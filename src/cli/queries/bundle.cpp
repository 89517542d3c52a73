// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/bundle.h"

#include "cli/base/findings_output.h"
#include "cli/queries/checks.h"
#include "cli/render/run_table.h"
#include "core/layout.h"
#include "core/redact.h"
#include "core/timestamp.h"
#include "ports/accounting.h"
#include "ports/cluster.h"
#include "report/json.h"
#include "runs/evidence.h"
#include "runs/records/record.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace gpuq::cli {
namespace {

using report::Json;

constexpr int k_last_lines = 200;
/// Only the end of a log is included, and its lines may be long.
constexpr std::uint64_t k_most_bytes = 512ULL << 10U;

/// The last complete lines, `k_most_bytes` at most. A line that is cut at its beginning is left
/// out: the redactor would not recognise half a secret.
std::string last_lines(Store& store, const std::string& path)
{
    const auto size = store.size(path);
    const std::uint64_t begin = size && *size > k_most_bytes ? *size - k_most_bytes : 0;
    auto bytes =
        size ? store.read_at(path, begin, k_most_bytes) : Result<std::string>(size.error());
    if (!bytes) {
        return fmt::format("({})\n", bytes.error().text);
    }
    if (begin > 0) {
        const std::size_t line = bytes->find('\n');
        bytes->erase(0, line == std::string::npos ? bytes->size() : line + 1);
    }
    std::size_t at = bytes->size();
    for (int lines = 0; lines <= k_last_lines && at != std::string::npos && at > 0; ++lines) {
        at = bytes->rfind('\n', at - 1);
    }
    return at == std::string::npos || at == 0 ? *bytes : bytes->substr(at + 1);
}

class Bundle {
public:
    Bundle(Services& services, Store& store, const RunStatus& status)
        : m_services(services)
        , m_store(store)
        , m_status(status)
        , m_directory(fmt::format("gpuq-report-{}/", run_id(status)))
    {
        m_redactor.learn_environment(services.environment());
        if (status.run) {
            m_redactor.learn_environment(status.run->environment);
            std::vector<std::string> given;
            for (const auto& [name, value] : status.run->request.setup.env) {
                given.push_back(name + "=" + value);
            }
            m_redactor.learn_environment(given);
        }
    }

    std::vector<report::ArchiveFile> files(Logs logs)
    {
        add_text("README.txt", readme(logs));
        if (m_status.run) {
            add_document("run.json", to_json(without_secrets(*m_status.run)));
        }
        add_records();
        for (LinkNumber link{1}; link.value <= m_status.link.value; ++link.value) {
            add_link(link, logs);
        }
        add_document("state.json", state());
        add_document("slurm.json", slurm());
        add_document("doctor.json",
                     report::json_document(findings_list(examine(m_services, NodeQueries::no))));
        return std::move(m_files);
    }

private:
    void add_text(const std::string& name, const std::string& text)
    {
        m_files.push_back({m_directory + name, m_redactor.text(text)});
    }

    void add_document(const std::string& name, const std::string& text)
    {
        m_files.push_back({m_directory + name, m_redactor.document(text)});
    }

    std::string readme(Logs logs) const
    {
        return fmt::format(
            "Run {}, as gpuq {} saw it at {}.\n\n"
            "run.json          the request, without values of variables that may be secret\n"
            "state.json        its state and how it ended\n"
            "slurm.json        its job in Slurm and in the accounting\n"
            "doctor.json       output of gpuq doctor on the host that created this report\n"
            "link-N            journal, heartbeat, supervisor.log (gpuq's own){}\n\n"
            "Replaced by {}: values of variables that look secret, in all files; tokens of "
            "well-known services; passwords in URLs and after password=, token: and the like; "
            "private keys. The program's output may contain other secrets: check it.\n",
            run_title(m_status), m_status.run ? m_status.run->version : "?",
            to_iso8601(m_services.clock().now()),
            logs == Logs::left_out
                ? " (without logs: --no-logs)"
                : fmt::format(" and the last {} lines of each log", k_last_lines),
            k_removed_secret);
    }

    Run without_secrets(Run run) const
    {
        run.environment = m_redactor.environment(run.environment);
        for (auto& [name, value] : run.request.setup.env) {
            const auto shown = m_redactor.environment({name + "=" + value}).front();
            value = shown.substr(name.size() + 1);
        }
        run.request.program = m_redactor.redact_arguments(run.request.program);
        run.request.setup.container_command =
            m_redactor.redact_arguments(run.request.setup.container_command);
        run.request.name = m_redactor.text(run.request.name);
        if (run.request.slurm_options) {
            run.request.slurm_options = m_redactor.text(*run.request.slurm_options);
        }
        return run;
    }

    void add_records()
    {
        for (const auto& path :
             {layout::ended_json(m_status.key), layout::walltime_json(m_status.key),
              layout::inbox(m_status.key) + "/" + layout::k_stop_request}) {
            if (const auto text = m_store.read(path)) {
                add_text(path.substr(path.rfind('/') + 1), *text);
            }
        }
    }

    void add_link(LinkNumber link, Logs logs)
    {
        const RunKey& key = m_status.key;
        const std::string directory = fmt::format("link-{}/", link.value);
        for (const auto& path : {layout::job_json(key, link), layout::heartbeat(key, link),
                                 layout::journal(key, link)}) {
            if (m_store.size(path)) {
                add_text(directory + path.substr(path.rfind('/') + 1), without_output(path, logs));
            }
        }
        const std::string own = layout::supervisor_log(key, link);
        for (const auto& path : {own + ".1", own}) {
            if (m_store.size(path)) {
                add_text(directory + path.substr(path.rfind('/') + 1), last_lines(m_store, path));
            }
        }
        if (logs == Logs::left_out) {
            return;
        }
        for (const auto& path :
             {layout::log(key, link, Stream::out), layout::log(key, link, Stream::err),
              layout::slurm_log(key, link)}) {
            if (m_store.size(path)) {
                add_text(directory + path.substr(path.rfind('/') + 1), last_lines(m_store, path));
            }
        }
    }

    /// Removes output from a journal, whose last event contains the last lines of output.
    std::string without_output(const std::string& path, Logs logs) const
    {
        const auto text = m_store.read(path);
        if (!text) {
            return last_lines(m_store, path);
        }
        if (logs == Logs::last_lines || !path.ends_with(".jsonl")) {
            return *text;
        }
        std::string lines;
        for (Event& event : parse_journal(*text)) {
            event.tail.reset();
            lines += to_line(event);
        }
        return lines;
    }

    std::string state() const
    {
        RunStatuses statuses;
        statuses.runs = {m_status};
        if (m_status.run) {
            statuses.runs.front().run = without_secrets(*m_status.run);
        }
        return report::json_document(run_list(statuses, {}, m_services.clock().now()));
    }

    std::string slurm() const
    {
        if (!m_status.job) {
            return report::json_document({{"job", Json()}});
        }
        const JobId id = m_status.job->job;
        const auto cluster = m_services.cluster();
        const auto job = cluster ? (*cluster)->job(id) : Result<Job>(cluster.error());
        const auto accounting = m_services.accounting();
        const auto past =
            accounting ? (*accounting)->past_job(id) : Result<PastJob>(accounting.error());
        return report::json_document(
            {{"job", job ? json_of(*job) : Json(job.error().text)},
             {"accounting", past ? json_of(*past) : Json(past.error().text)}});
    }

    Json json_of(const Job& job) const
    {
        return Json::object({{"id", job.id},
                             {"name", m_redactor.text(job.name)},
                             {"partition", job.partition},
                             {"comment", job.comment},
                             {"state", state_word(job.state)},
                             {"reason", job.reason},
                             {"exit", job.exit_status},
                             {"submitted_at", job.submitted_at},
                             {"started_at", job.started_at},
                             {"ends_at", job.ends_at},
                             {"time_limit", job.walltime},
                             {"nodes", job.nodes},
                             {"batch_host", job.batch_host},
                             {"gpus", job.gpus},
                             {"batch", job.batch},
                             {"uid", job.uid}});
    }

    static Json json_of(const PastJob& job)
    {
        return Json::object({{"id", job.id},
                             {"comment", job.comment},
                             {"state", state_word(job.state)},
                             {"exit", job.exit_status},
                             {"cancelled_by", job.cancelled_by},
                             {"started_at", job.started_at},
                             {"ended_at", job.ended_at}});
    }

    static Json state_word(JobState state)
    {
        constexpr std::array k_keywords = {"pending",   "running",   "suspended",     "completing",
                                           "completed", "failed",    "cancelled",     "timeout",
                                           "node_fail", "preempted", "out_of_memory", "boot_fail",
                                           "deadline"};
        const auto place = static_cast<std::size_t>(state);
        return place < k_keywords.size() ? Json(k_keywords[place]) : Json();
    }

    Services& m_services;
    Store& m_store;
    const RunStatus& m_status;
    std::string m_directory;
    Redactor m_redactor;
    std::vector<report::ArchiveFile> m_files;
};

} // namespace

std::vector<report::ArchiveFile> bundle_of(Services& services, Store& store,
                                           const RunStatus& status, Logs logs)
{
    return Bundle(services, store, status).files(logs);
}

} // namespace gpuq::cli
