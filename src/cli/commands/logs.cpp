// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/log_output.h"
#include "cli/base/message.h"
#include "cli/base/printable.h"
#include "cli/base/status_sources.h"
#include "cli/client/log_copy.h"
#include "cli/client/plain_log.h"
#include "cli/client/timed_lines.h"
#include "cli/queries/plain_target.h"
#include "cli/render/run_table.h"
#include "cli/start/show_sweep.h"
#include "core/layout.h"
#include "core/pending_reason.h"
#include "remote/verb_process.h"
#include "report/ending_text.h"
#include "runs/find.h"
#include "runs/log_reader.h"
#include "telemetry/crc32c.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <unistd.h>

// Reads only the log on disk, so following a run needs no connection to it. The status is checked
// when the journal grows, and periodically; Slurm is queried only if the disk does not show the
// state.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock::time_point;

constexpr std::array k_options = {
    Option{'f', "follow", "", "follow the log until the run has ended; exit with its status"},
    Option{0, "to", "FILE", "write to FILE, appending the part of the log that it lacks"},
    Option{0, "after", "MARK", "print only the part after a mark (for --to over ssh)"},
    Option{'T', "timestamps", "", "put the time at which it began in front of each line"},
    Option{0, "printable", "", "show control characters except colours as text, for a pager"},
    // For gpuq --host after a session was lost: it knows which output it has shown.
    Option{0, "shown", "OUT,ERR", "", Option::State::hidden}};

constexpr auto k_shortest_pause = 100ms;
constexpr auto k_longest_pause = 1000ms;
/// How often to check on disk whether the run has ended, besides whenever the journal has grown.
constexpr auto k_query_period = 5s;
/// How often to query Slurm if the disk does not show the state: often at first and while a run
/// waits, less often later.
constexpr auto k_ask_period = 10s;
constexpr auto k_ask_seldom = 60s;
constexpr auto k_impatient = 60s;
/// How long to wait for the exit status of a run that has ended.
constexpr auto k_ending_patience = 15s;
/// NFS reports the size of a file with a delay of up to a minute (nfs(5), acregmax).
constexpr auto k_file_patience = 90s;

/// The arguments of --to and --after: both streams go to one place, from a mark on.
struct Copying {
    LogMark mark;
    std::string path;
    std::optional<LogCopy> file; ///< unset: standard output
};

/// One use of `gpuq logs`.
class LogsVerb {
public:
    LogsVerb(Invocation& invocation, Store& store, const RunKey& key,
             std::optional<Copying> copying, std::array<std::uint64_t, 2> shown)
        : m_all_services(invocation.services)
        , m_quiet(invocation.globals.quiet)
        , m_follow(invocation.options.has("follow"))
        , m_clock(invocation.services.clock())
        , m_store(store)
        , m_services(status_sources(invocation.services, store))
        , m_key(key)
        , m_reader(store, key)
        , m_copying(std::move(copying))
        , m_shown(shown)
        , m_status{key}
    {
        if (invocation.options.has("printable")) {
            m_printable.emplace();
        }
        if (invocation.options.has("timestamps")) {
            m_timed.emplace(store, key);
        }
        if (m_copying) {
            m_check.left = m_copying->mark.checked;
            m_reader.pass_over(m_copying->mark.bytes - m_check.left);
        }
        m_services.cluster = [this, &services = invocation.services] {
            m_queries.sent = true;
            return services.cluster();
        };
    }

    Result<int> run()
    {
        query();
        send_to_serve();
        while (!m_left) {
            TRY_ASSIGN(const log::Item item, m_reader.next(writer(), m_clock.steady()));
            if (!std::holds_alternative<log::Gap>(item)) {
                report_lost();
            }
            std::visit([this](const auto& one) { on(one); }, item);
            if (m_check.failed) {
                return fail(Error::Kind::usage,
                            fmt::format("the file holds {} bytes that are not the beginning of the "
                                        "log of run {}; nothing was changed. Name another file",
                                        m_copying->mark.bytes, run_title(m_status)));
            }
        }
        if (m_timed) {
            print_last_lines();
        }
        for (const Stream stream : {Stream::out, Stream::err}) {
            if (m_printable) {
                (void)m_output.write(stream, (*m_printable)[of(stream)].end());
            }
        }
        if (m_copying && m_copying->file) {
            written(m_copying->file->sync());
            print_note(fmt::format("{} holds {} bytes of the log", sanitised(m_copying->path),
                                   m_copying->file->size()));
        }
        return *m_left;
    }

private:
    Writer writer() const
    {
        return m_status.state == RunState::ended ? Writer::gone : Writer::alive;
    }

    void on(const log::Output& output)
    {
        m_pause = k_shortest_pause;
        m_printed = true;
        if (!m_copying) {
            auto& shown = m_shown[static_cast<std::size_t>(output.stream)];
            const std::size_t known = std::min<std::uint64_t>(shown, output.bytes.size());
            shown -= known;
            const auto bytes = std::string_view(output.bytes).substr(known);
            if (m_timed) {
                m_timed->add(m_reader.link(), output.stream,
                             m_reader.offset(output.stream) - bytes.size(), bytes,
                             m_clock.steady());
                print_lines(m_timed->take(m_clock.steady()));
            } else {
                print_bytes(output.stream, bytes);
            }
            return;
        }
        const std::string_view bytes = behind_the_mark(output.bytes);
        if (!m_check.failed) {
            written(m_copying->file ? m_copying->file->write(bytes)
                                    : m_output.write(Stream::out, bytes));
        }
    }

    void print_bytes(Stream stream, std::string_view bytes)
    {
        auto* const printable = m_printable ? &(*m_printable)[of(stream)] : nullptr;
        written(m_output.write(stream, printable == nullptr ? bytes : printable->feed(bytes)));
    }

    void print_lines(const std::vector<TimedLines::Text>& lines)
    {
        for (const auto& [stream, bytes] : lines) {
            print_bytes(stream, bytes);
        }
    }

    /// The times of the last lines may follow.
    void print_last_lines()
    {
        const auto pieces = k_timed_line_patience / k_shortest_pause;
        for (int i = 0; i < pieces && m_timed->waits() && writer() == Writer::alive; ++i) {
            sleep(k_shortest_pause);
            print_lines(m_timed->take(m_clock.steady()));
        }
        print_lines(m_timed->take_rest());
    }

    /// Reports to serve the position at which this output begins, in case another session must
    /// continue it. Link 0: the position is in the log of the whole run. Lines with times have no
    /// such position.
    void send_to_serve() const
    {
        if (m_timed) {
            return;
        }
        const std::uint64_t out = m_copying ? m_copying->mark.bytes : m_shown[0];
        m_all_services.send_to_serve(remote::line_of(
            {m_key.text(), m_status.job ? m_status.job->job.value : 0, 0, out, m_shown[1]}));
    }

    /// The part of these bytes after the mark; checks the part before it.
    std::string_view behind_the_mark(std::string_view bytes)
    {
        const std::string_view known = bytes.substr(0, m_check.left);
        m_check.crc = telemetry::crc32c(known, m_check.crc);
        m_check.left -= known.size();
        if (!known.empty() && m_check.left == 0) {
            m_check.failed = m_check.crc != m_copying->mark.crc;
        }
        return bytes.substr(known.size());
    }

    bool is_behind_the_mark() const { return m_check.left == 0 && m_reader.to_pass() == 0; }

    void written(int error)
    {
        if (error != 0) {
            m_left = status_of_failed_write(error, m_follow);
        }
    }

    void on(const log::Gap& gap) { m_lost[static_cast<std::size_t>(gap.stream)] += gap.bytes; }

    void on(const log::Cut& cut)
    {
        print_note(fmt::format("the log of {} was truncated or replaced", name(cut.stream)));
    }

    void on(const log::Wait& wait)
    {
        if (!m_follow && !wait.held_back) {
            m_check.failed = !is_behind_the_mark();
            if (!m_check.failed) {
                leave(0);
            }
            return;
        }
        if (!is_behind_the_mark() && !wait.held_back) {
            m_check.short_since = m_check.short_since.value_or(m_clock.steady());
            m_check.failed = m_clock.steady() - *m_check.short_since >= k_file_patience;
        }
        if (m_timed) {
            print_lines(m_timed->take(m_clock.steady()));
        }
        sleep(wait.held_back ? k_shortest_pause : m_pause);
        m_pause = std::min<std::chrono::milliseconds>(m_pause * 3 / 2, k_longest_pause);
        if (m_follow) {
            query_when_due();
        }
    }

    void on(const log::End&)
    {
        if (!is_behind_the_mark()) {
            m_check.failed = true;
            return;
        }
        if (!m_follow || m_status.ending) {
            leave(m_follow ? m_status.ending->status : 0);
            return;
        }
        // The run has ended; its exit status may still become known.
        m_end_seen = m_end_seen.value_or(m_clock.steady());
        if (m_clock.steady() - *m_end_seen >= k_ending_patience) {
            print_note(fmt::format("run {} has ended; exit status unknown", run_title(m_status)));
            m_left = static_cast<int>(ExitStatus::lost);
            return;
        }
        sleep(k_longest_pause);
        query();
    }

    static std::size_t of(Stream stream) { return static_cast<std::size_t>(stream); }

    void leave(int status)
    {
        if (!m_follow && !m_printed) {
            print_note(m_status.state != RunState::ended ? "no output yet" : no_output());
        }
        if (m_follow && m_status.run && m_status.ending &&
            (status != 0 || !m_status.ending->detail.empty())) {
            print_note(fmt::format("run {} {}", run_title(m_status),
                                   ending_text(*m_status.ending, m_status.run->request)));
        }
        const bool there = exists();
        m_left = status == 0 && !there ? static_cast<int>(ExitStatus::internal) : status;
    }

    std::string no_output() const
    {
        const std::string run = fmt::format("run {}", run_title(m_status));
        return m_status.ending && m_status.run
                   ? fmt::format("{} has printed nothing; it {}", run,
                                 ending_text(*m_status.ending, m_status.run->request))
                   : fmt::format("{} has printed nothing", run);
    }

    /// A supervisor creates both files with its journal: a missing one was removed.
    bool exists()
    {
        bool all = true;
        for (const Stream stream : {Stream::out, Stream::err}) {
            const std::string path = layout::log(m_key, m_status.link, stream);
            const auto size = m_store.size(path);
            if (m_journal_size > 0 && !size && size.error().kind == Error::Kind::missing) {
                print_message(fmt::format("the log is gone: {}/{}", m_store.root(), path));
                all = false;
            }
        }
        return all;
    }

    void query_when_due()
    {
        const auto size = m_store.size(layout::journal(m_key, m_status.link));
        const bool news = size && *size != m_journal_size;
        if (news || m_clock.steady() - m_checked_at >= k_query_period) {
            query();
        }
    }

    void query()
    {
        const Steady now = m_clock.steady();
        const auto size = m_store.size(layout::journal(m_key, m_status.link));
        m_journal_size = size ? *size : 0;
        m_checked_at = now;
        const bool may_ask = m_follow && now >= m_queries.next;
        m_queries.sent = false;
        RunStatuses statuses = gpuq::query_status(
            m_services, {m_key}, may_ask ? SlurmQuery::if_needed : SlurmQuery::never);
        if (may_ask || statuses.runs.front().state != RunState::unknown) {
            m_status = std::move(statuses.runs.front());
        }
        if (m_queries.sent) {
            plan_next_question(now);
        } else if (may_ask) {
            m_queries.first.reset(); // the run shows signs of life
        }
        report_waiting();
        report_silence(statuses.slurm_silent);
    }

    void plan_next_question(Steady now)
    {
        m_queries.first = m_queries.first.value_or(now);
        const bool often =
            m_status.state == RunState::waiting || now - *m_queries.first < k_impatient;
        m_queries.next = now + (often ? k_ask_period : k_ask_seldom);
    }

    void report_waiting()
    {
        if (m_status.state != RunState::waiting || m_reported_waiting) {
            return;
        }
        m_reported_waiting = true;
        const Time now = m_clock.now();
        std::string text = fmt::format("run {} waits: {}", run_title(m_status),
                                       pending_reason_text(m_status.reason, gpus_asked(m_status)));
        if (const auto start = start_of(m_status); start && *start > now) {
            text += "; " + start_text(m_status, now);
        }
        print_note(text);
    }

    void report_silence(const std::string& why)
    {
        if (!why.empty() && !m_reported_silent) {
            m_reported_silent = true;
            print_note(fmt::format("{}; following the log on disk", why));
        }
    }

    void report_lost()
    {
        for (const Stream stream : {Stream::out, Stream::err}) {
            auto& bytes = m_lost[static_cast<std::size_t>(stream)];
            if (bytes > 0) {
                print_note(fmt::format("{} bytes of {} are not in the log", bytes, name(stream)));
                bytes = 0;
            }
        }
    }

    static const char* name(Stream stream) { return stream == Stream::out ? "stdout" : "stderr"; }

    static void sleep(std::chrono::milliseconds time)
    {
        ::poll(nullptr, 0, static_cast<int>(time.count()));
    }

    void print_note(const std::string& text) const
    {
        if (!m_quiet) {
            print_message(text, m_output.at_line_start() ? Cursor::line_start : Cursor::middle);
        }
    }

    const Services& m_all_services;
    bool m_quiet;
    bool m_follow;
    Clock& m_clock;
    Store& m_store;
    StatusSources m_services;
    RunKey m_key;
    LogReader m_reader;
    std::optional<Copying> m_copying;
    std::optional<std::array<Printable, 2>> m_printable; ///< for standard output and error
    std::optional<TimedLines> m_timed;
    std::array<std::uint64_t, 2> m_shown; ///< bytes shown by another session, not to
                                          ///< be printed
    /// The comparison of the log with the mark.
    struct Check {
        std::uint64_t left = 0; ///< bytes that are still to be checked
        std::uint32_t crc = 0;
        std::optional<Steady> short_since; ///< when the log was first found to end before the mark
        bool failed = false;               ///< the log is not the mark's
    };
    Check m_check;
    LogOutput m_output;
    RunStatus m_status;
    std::array<std::uint64_t, 2> m_lost{0, 0};
    std::chrono::milliseconds m_pause = k_shortest_pause;
    std::uint64_t m_journal_size = 0;
    Steady m_checked_at = {};
    /// The queries of Slurm.
    struct Queries {
        Steady next = {};
        std::optional<Steady> first; ///< since the run last showed signs of life
        bool sent = false;           ///< by the last query()
    };
    Queries m_queries;
    std::optional<Steady> m_end_seen;
    bool m_printed = false;
    bool m_reported_waiting = false;
    bool m_reported_silent = false;
    std::optional<int> m_left;
};

Result<std::optional<Copying>> copying(const Options& options)
{
    const auto path = options.value("to");
    const auto after = options.value("after");
    if (options.has("printable") && (path || after)) {
        return fail(Error::Kind::usage, "--printable can't be combined with --to or --after");
    }
    if (options.has("timestamps") && (path || after)) {
        return fail(Error::Kind::usage, "--timestamps can't be combined with --to or --after");
    }
    if (path && after) {
        return fail(Error::Kind::usage, "--to can't be combined with --after");
    }
    if (after) {
        const auto mark = parse_log_mark(*after);
        if (!mark) {
            return fail(Error::Kind::usage, "--after takes BYTES:CHECKED:CRC");
        }
        return std::optional(Copying{*mark, {}, {}});
    }
    if (!path) {
        return std::optional<Copying>();
    }
    TRY_ASSIGN(LogCopy file, LogCopy::at(*path));
    TRY_ASSIGN(const LogMark mark, file.mark());
    return std::optional(Copying{mark, *path, std::move(file)});
}

/// Parses `OUT,ERR`.
Result<std::array<std::uint64_t, 2>> shown_elsewhere(const Options& options)
{
    std::array<std::uint64_t, 2> shown{};
    const std::string text = options.value("shown").value_or("0,0");
    const char* const end = text.data() + text.size();
    const auto [comma, first] = std::from_chars(text.data(), end, shown[0]);
    if (first == std::errc{} && comma != end && *comma == ',') {
        const auto [last, second] = std::from_chars(comma + 1, end, shown[1]);
        if (second == std::errc{} && last == end) {
            return shown;
        }
    }
    return fail(Error::Kind::usage, "--shown: two numbers, OUT,ERR");
}

/// Ctrl-C ends following, not the run. Nothing is buffered, so exiting at once loses nothing.
void leave_on_interrupt()
{
    struct sigaction action = {};
    if (::sigaction(SIGINT, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
        std::signal(SIGINT, [](int) { ::_exit(static_cast<int>(ExitStatus::interrupted)); });
    }
}

Result<int> logs(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage,
                    invocation.arguments.empty()
                        ? "logs: missing run; gpuq logs last shows the newest, gpuq ls lists runs"
                        : "one run at a time: gpuq logs RUN");
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const auto sweep, find_sweep_target(*store, invocation.arguments.front()));
    if (sweep) {
        leave_on_interrupt();
        return try_logs(invocation, *store, *sweep);
    }
    TRY_ASSIGN(const Target target,
               find_target(invocation.services, *store, invocation.arguments.front()));
    if (const auto* plain = std::get_if<RunStatus>(&target)) {
        leave_on_interrupt();
        return plain_logs(invocation, *store, *plain);
    }
    const RunKey& key = std::get<RunKey>(target);
    TRY_ASSIGN(auto copy, copying(invocation.options));
    TRY_ASSIGN(const auto shown, shown_elsewhere(invocation.options));
    leave_on_interrupt();
    return LogsVerb(invocation, *store, key, std::move(copy), shown).run();
}

} // namespace

const Verb k_logs_verb{"logs", "gpuq logs [-f] [-T] [--to FILE] RUN",
                       "print the whole log of a run; -f follows it", logs, k_options};

} // namespace gpuq::cli
