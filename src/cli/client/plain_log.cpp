// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/client/plain_log.h"

#include "cli/base/log_output.h"
#include "cli/base/message.h"
#include "cli/base/printable.h"
#include "cli/client/timed_lines.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/render/run_table.h"
#include "core/pending_reason.h"
#include "ports/files.h"
#include "report/ending_text.h"
#include "runs/insight/plain_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <poll.h>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock::time_point;

constexpr std::size_t k_piece = 64 << 10;
constexpr std::uint64_t k_window = 256 << 10;
constexpr auto k_shortest_pause = 100ms;
constexpr auto k_longest_pause = 1000ms;
/// How often to query Slurm for the user's own jobs; all processes of a user share the response.
constexpr auto k_ask_period = 5s;
/// NFS shows data written on a node with a delay.
constexpr auto k_file_patience = 3s;

/// Directory and name, as Files takes them.
std::pair<std::string, std::string> split_path(const std::string& path)
{
    const std::size_t slash = path.rfind('/');
    return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// Empty if both streams go to one file.
std::string error_file(const JobFiles& files)
{
    return files.error == files.output ? "" : files.error;
}

/// Why there is nothing to read, for a job that is known to have no output files.
std::optional<Error> no_files(const RunStatus& job)
{
    const Job& plain = *job.plain;
    const std::string title = run_title(job);
    if (plain.files.output.empty() && plain.batch) {
        return fail(Error::Kind::missing,
                    fmt::format("Slurm does not show where the output of job {} is", title));
    }
    if (plain.files.output.empty() && plain.partition.empty()) { // from accounting
        return fail(
            Error::Kind::missing,
            fmt::format("the output file of job {} is no longer known to Slurm: sacct -j {} "
                        "--format=WorkDir%100 shows its working directory, where sbatch writes "
                        "slurm-{}.out unless -o names another file",
                        title, job.job->job.value, job.job->job.value));
    }
    if (plain.files.output.empty()) {
        return fail(Error::Kind::missing,
                    fmt::format("job {} was started by srun or salloc: its output is on the "
                                "terminal that started it, and Slurm keeps no copy",
                                title));
    }
    if (plain.files.output == "/dev/null") {
        return fail(Error::Kind::missing,
                    fmt::format("job {} writes its output to /dev/null: nothing is kept", title));
    }
    return std::nullopt;
}

Error not_here(const RunStatus& job, const std::string& path)
{
    const std::string node = job.host.empty() ? "its node" : job.host;
    const std::string where =
        job.state == RunState::running
            ? fmt::format("it may be on a disk of {}: srun --overlap --jobid={} cat FILE", node,
                          job.job->job.value)
            : fmt::format("it was removed, or is on a disk of {}", node);
    return fail(Error::Kind::missing, fmt::format("{} of job {} is not on this host ({}): {}", path,
                                                  run_title(job), host_name(), where));
}

/// One use of `gpuq logs` for a plain job.
class PlainLogs {
public:
    PlainLogs(Invocation& invocation, Store& store, RunStatus job)
        : m_services(invocation.services)
        , m_files(invocation.services.program_files())
        , m_store(store)
        , m_job(std::move(job))
        , m_follow(invocation.options.has("follow"))
        , m_quiet(invocation.globals.quiet)
    {
        m_streams[0].path = m_job.plain->files.output;
        m_streams[1].path = error_file(m_job.plain->files);
        if (invocation.options.has("printable")) {
            m_printable.emplace();
        }
        if (invocation.options.has("timestamps")) {
            m_timed.emplace();
        }
    }

    Result<int> run()
    {
        while (true) {
            // Before reading, so that everything the job wrote before its end is read.
            const bool over = m_job.state == RunState::ended;
            TRY_ASSIGN(const bool news, read_all());
            if (m_left) {
                return *m_left;
            }
            if (!news && (over || !m_follow)) {
                return leave();
            }
            if (!news) {
                wait();
            }
        }
    }

private:
    struct File {
        std::string path;
        std::uint64_t at = 0;
        bool found = false;
    };

    Result<bool> read_all()
    {
        bool news = false;
        for (const Stream stream : {Stream::out, Stream::err}) {
            File& file = m_streams[static_cast<std::size_t>(stream)];
            if (file.path.empty() || file.path == "/dev/null") {
                continue;
            }
            const auto [directory, name] = split_path(file.path);
            auto bytes = m_files.read_at(directory, name, file.at, k_piece);
            if (bytes && bytes->empty() && was_truncated(directory, name, file)) {
                file.at = 0;
                print_note(fmt::format("{} was truncated: its new content follows", file.path));
                bytes = m_files.read_at(directory, name, 0, k_piece);
            }
            if (!bytes && bytes.error().kind != Error::Kind::missing) {
                return fail(Error::Kind::io, fmt::format("{}: {}", directory, bytes.error().text));
            }
            if (bytes) {
                file.found = true;
                file.at += bytes->size();
                news = news || !bytes->empty();
                write(stream, *bytes);
            }
        }
        return news;
    }

    /// As Slurm does when it starts a requeued job again.
    bool was_truncated(const std::string& directory, const std::string& name,
                       const File& file) const
    {
        const auto size = m_files.size(directory, name);
        return size && *size < file.at;
    }

    void write(Stream stream, const std::string& bytes)
    {
        if (!m_timed) {
            return print(stream, bytes);
        }
        m_timed->add({}, stream, 0, bytes, {});
        for (const auto& line : m_timed->take({})) {
            print(line.stream, line.bytes);
        }
    }

    void print(Stream stream, const std::string& bytes)
    {
        auto* const printable =
            m_printable ? &(*m_printable)[static_cast<std::size_t>(stream)] : nullptr;
        written(m_output.write(stream, printable == nullptr ? bytes : printable->feed(bytes)));
    }

    void written(int error)
    {
        if (error != 0) {
            m_left = status_of_failed_write(error, m_follow);
        }
    }

    bool is_any_present() const { return m_streams[0].found || m_streams[1].found; }

    void wait()
    {
        const Steady now = m_services.clock().steady();
        report_state(now);
        ::poll(nullptr, 0, static_cast<int>(m_pause.count()));
        m_pause = std::min<std::chrono::milliseconds>(m_pause * 3 / 2, k_longest_pause);
        if (now >= m_ask_at) {
            m_ask_at = now + k_ask_period;
            ask();
        }
    }

    void report_state(Steady now)
    {
        if (m_job.state == RunState::waiting && !std::exchange(m_reported_waiting, true)) {
            print_note(fmt::format("job {} waits: {}", run_title(m_job),
                                   pending_reason_text(m_job.reason, gpus_asked(m_job))));
        }
        if (m_job.state != RunState::running || is_any_present()) {
            return;
        }
        m_missing_since = m_missing_since.value_or(now);
        if (now - *m_missing_since >= k_file_patience && !std::exchange(m_reported_missing, true)) {
            print_note(not_here(m_job, m_streams[0].path).text);
        }
    }

    void ask()
    {
        auto job = plain_job_now(m_services, m_store, m_job);
        if (job) {
            m_job = *std::move(job);
        } else if (!std::exchange(m_reported_silent, true)) {
            print_note(fmt::format("{}; following the log on disk", job.error().text));
        }
    }

    Result<int> leave()
    {
        for (const auto& line : m_timed ? m_timed->take_rest() : std::vector<TimedLines::Text>{}) {
            print(line.stream, line.bytes);
        }
        for (const Stream stream : {Stream::out, Stream::err}) {
            if (m_printable) {
                written(
                    m_output.write(stream, (*m_printable)[static_cast<std::size_t>(stream)].end()));
            }
        }
        const bool waits = m_job.state == RunState::waiting;
        if (!is_any_present() && !waits && !m_follow) {
            return not_here(m_job, m_streams[0].path);
        }
        if (!is_any_present() && !waits && !m_reported_missing) {
            print_note(not_here(m_job, m_streams[0].path).text);
        }
        if (m_streams[0].at + m_streams[1].at == 0 && !m_follow) {
            print_note(m_job.state == RunState::ended
                           ? fmt::format("job {} has printed nothing", run_title(m_job))
                           : "no output yet");
        }
        if (!m_follow) {
            return 0;
        }
        if (!m_job.ending) {
            print_note(
                fmt::format("job {} has ended; Slurm's accounting does not report its exit status",
                            run_title(m_job)));
            return static_cast<int>(ExitStatus::lost);
        }
        if (m_job.ending->status != 0) {
            print_note(fmt::format("job {} {}", run_title(m_job),
                                   ending_text(*m_job.ending, m_job.run->request)));
        }
        return m_job.ending->status;
    }

    void print_note(const std::string& text) const
    {
        if (!m_quiet) {
            print_message(text, m_output.at_line_start() ? Cursor::line_start : Cursor::middle);
        }
    }

    Services& m_services;
    Files& m_files;
    Store& m_store;
    RunStatus m_job;
    bool m_follow;
    bool m_quiet;
    std::array<File, 2> m_streams;
    std::optional<TimedLines> m_timed; ///< Slurm records no times
    std::optional<std::array<Printable, 2>> m_printable;
    LogOutput m_output;
    std::chrono::milliseconds m_pause = k_shortest_pause;
    Steady m_ask_at = {};
    std::optional<Steady> m_missing_since;
    bool m_reported_waiting = false;
    bool m_reported_missing = false;
    bool m_reported_silent = false;
    std::optional<int> m_left;
};

} // namespace

Result<int> plain_logs(Invocation& invocation, Store& store, const RunStatus& job)
{
    for (const char* option : {"to", "after"}) {
        if (invocation.options.has(option)) {
            return fail(
                Error::Kind::usage,
                fmt::format("--{} is for runs of gpuq; the output of job {} is in {}", option,
                            run_title(job),
                            job.plain->files.output.empty() ? "no file" : job.plain->files.output));
        }
    }
    if (const auto why = no_files(job)) {
        return *why;
    }
    return PlainLogs(invocation, store, job).run();
}

PlainTail::PlainTail(Files& files, RunStatus job, Stream stream)
    : m_files(files)
    , m_job(std::move(job))
    , m_stream(stream)
{
}

std::optional<tui::LogBytes> PlainTail::next(const tui::OpenLog& log)
{
    tui::LogBytes bytes{log.key, log.stream, "", false, 0, "", ""};
    const JobFiles& files = m_job.plain->files;
    const std::string path = m_stream == Stream::out ? files.output : error_file(files);
    if (const auto why = no_files(m_job)) {
        bytes.trouble = why->text;
        return bytes;
    }
    if (path.empty()) {
        bytes.trouble = "its standard error goes to the same file as its standard output";
        return bytes;
    }
    const auto [directory, name] = split_path(path);
    const auto size = m_files.size(directory, name);
    if (!size) {
        const bool waits = m_job.state == RunState::waiting;
        bytes.trouble = size.error().kind != Error::Kind::missing ? size.error().text
                        : waits                                   ? ""
                                                                  : not_here(m_job, path).text;
        return bytes;
    }
    const bool was_cut = m_at && *size < *m_at;
    if (!m_at || was_cut || *size - *m_at > k_window) {
        bytes.anew = true;
        bytes.note = was_cut ? "the file was truncated" : "";
        bytes.skipped = *size > k_window ? *size - k_window : 0;
        m_at = bytes.skipped;
    }
    auto news = m_files.read_at(directory, name, *m_at, k_window);
    if (!news) {
        bytes.trouble = news.error().text;
        return bytes;
    }
    if (news->empty() && !bytes.anew) {
        return std::nullopt;
    }
    *m_at += news->size();
    bytes.bytes = *std::move(news);
    return bytes;
}

} // namespace gpuq::cli
