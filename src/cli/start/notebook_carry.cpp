// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/notebook_carry.h"

#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/base/status_sources.h"
#include "cli/client/waiting.h"
#include "cli/host/notebook_carrier.h"
#include "cli/queries/site_context.h"
#include "cli/render/run_table.h"
#include "cli/start/run.h"
#include "core/fnv.h"
#include "core/layout.h"
#include "core/walltime.h"
#include "report/ending_text.h"
#include "runs/evidence.h"
#include "runs/notebook.h"
#include "runs/query_status.h"
#include "runs/queues/queues.h"
#include "runs/records/journal.h"
#include "term/sanitise.h"
#include "wire/remote_frame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace gpuq::cli {
namespace {

constexpr std::chrono::seconds k_idle = std::chrono::minutes{30};
constexpr std::chrono::seconds k_shortest_idle{2};
/// Between attempts to take a lock.
constexpr std::chrono::milliseconds k_turn_period{50};
/// Between checks of a run whose records do not show its end.
constexpr std::chrono::seconds k_query_period{15};
constexpr std::chrono::seconds k_journal_period{2};

NotebookPage page_of(const Options& options)
{
    if (options.has("lab")) {
        return NotebookPage::lab;
    }
    return options.has("classic") ? NotebookPage::classic : NotebookPage::usual;
}

class NotebookCarry {
public:
    NotebookCarry(Invocation& invocation, Store& store)
        : m_invocation(invocation)
        , m_services(invocation.services)
        , m_store(store)
        , m_sources(status_sources(invocation.services, store))
    {
    }

    Result<int> run()
    {
        if (::isatty(STDIN_FILENO) == 1) {
            return fail(Error::Kind::usage, "--carry is for gpuq notebook only");
        }
        TRY_ASSIGN(const std::optional<int> left, find_or_start());
        if (left) {
            return *left;
        }
        TRY_ASSIGN(const Waited waited, wait());
        if (waited.leave) {
            return *waited.leave;
        }
        TRY_ASSIGN(const int status, carry());
        if (status == static_cast<int>(ExitStatus::interrupted)) {
            print_note(
                m_invocation.globals.quiet,
                fmt::format("detached: Jupyter is starting in run {0}; end it: gpuq stop {0}",
                            m_job.value));
        }
        return status;
    }

private:
    /// One process at a time starts a notebook of a directory; the others wait and then find it.
    /// The lock, or a status to leave with. Without the lock if the file system has none.
    using Turn = std::variant<Descriptor, int>;
    Turn take_turn(const std::string& directory)
    {
        const auto byte = static_cast<std::uint32_t>(fnv1a(directory));
        Signals signals;
        for (bool is_first = true;; is_first = false) {
            auto lock = m_store.try_lock(layout::notebooks(), byte);
            if (lock || lock.error().kind != Error::Kind::busy) {
                return lock ? Turn(*std::move(lock)) : Turn();
            }
            if (is_first) {
                print_note(
                    m_invocation.globals.quiet,
                    fmt::format("another gpuq is starting the notebook of {}; waiting for it",
                                directory));
            }
            std::array<pollfd, 2> ends{{{signals.descriptor(), POLLIN, 0}, {STDIN_FILENO, 0, 0}}};
            (void)::poll(ends.data(), ends.size(), static_cast<int>(k_turn_period.count()));
            const auto signal = signals.next();
            if (signal || ends[1].revents != 0) { // the terminal's gpuq has ended
                return Turn(static_cast<int>(signal == SIGINT ? ExitStatus::interrupted
                                                              : ExitStatus::detached));
            }
        }
    }

    /// A status to leave with, if none has started.
    Result<std::optional<int>> find_or_start()
    {
        const Options& options = m_invocation.options;
        if (const auto only = options.value("only")) {
            TRY_ASSIGN(const RunKey key, RunKey::parse(*only));
            TRY(take_run(key));
            return std::optional<int>{};
        }
        TRY_ASSIGN(const std::string directory, find_directory());
        const Turn turn = options.has("new") ? Turn() : take_turn(directory);
        if (const int* const status = std::get_if<int>(&turn)) {
            return std::optional(*status);
        }
        TRY_ASSIGN(const NotebooksOf found, find_notebooks(m_store, directory));
        for (const RunKey& key : options.has("new") ? std::vector<RunKey>() : found.active) {
            if (query_run(m_sources, key).state != RunState::ended) {
                TRY(take_run(key));
                print_note(
                    m_invocation.globals.quiet,
                    fmt::format("the notebook of {} is run {}{}; --new starts another one",
                                directory, m_job.value,
                                has_options_of_a_run() ? ", whose options do not change" : ""));
                return std::optional<int>{};
            }
        }
        TRY_ASSIGN(const auto left, start(directory));
        if (!left && (found.ended || !found.active.empty())) {
            print_lost(found.ended ? *found.ended : found.active.front());
        }
        return left;
    }

    /// True if options are given that a running notebook can't follow.
    bool has_options_of_a_run() const
    {
        constexpr std::array k_of_this_process = {"port", "browser", "carry"};
        const auto table = notebook_option_table();
        return std::any_of(table.begin(), table.end(), [&](const Option& row) {
            return m_invocation.options.has(row.name) &&
                   std::find(k_of_this_process.begin(), k_of_this_process.end(), row.name) ==
                       k_of_this_process.end();
        });
    }

    /// Absolute, without symbolic links, so that the same directory has one name.
    Result<std::string> find_directory()
    {
        TRY_ASSIGN(const SiteContext here, site_context(m_services));
        const auto& given = m_invocation.arguments;
        std::error_code error;
        const std::filesystem::path path =
            std::filesystem::canonical(given.empty() ? here.work_dir : given.front(), error);
        if (!error && !std::filesystem::is_directory(path, error) && !error) {
            error = std::make_error_code(std::errc::not_a_directory);
        }
        if (error) {
            return fail(Error::Kind::usage,
                        fmt::format("{}: {}", sanitised(given.empty() ? "." : given.front()),
                                    error.message()));
        }
        return path.string();
    }

    Result<void> take_run(const RunKey& key)
    {
        TRY_ASSIGN(m_run, read_run(m_store, key));
        const RunStatus status = query_run(m_sources, key);
        if (status.state == RunState::ended) {
            return has_ended(status);
        }
        if (!status.job) {
            return fail(Error::Kind::unreachable,
                        fmt::format("the state of run {} is unknown: {}", run_title(status),
                                    status.why_unknown));
        }
        m_job = status.first_job.value_or(status.job->job);
        if (auto note = m_store.read(notebook_note_json(key))) {
            m_note = *std::move(note); // an old one
        }
        TRY_ASSIGN(m_token, m_store.read(layout::connect_file(key, k_notebook_token)));
        return {};
    }

    static Error has_ended(const RunStatus& status)
    {
        return fail(Error::Kind::missing, fmt::format("run {} has ended", run_title(status)));
    }

    Result<std::optional<int>> start(const std::string& directory)
    {
        const NotebookPage page = page_of(m_invocation.options);
        TRY_ASSIGN(const std::string supervisor, m_services.supervisor());
        const std::string program = page == NotebookPage::lab ? "jupyter-lab" : "jupyter-notebook";
        TRY_ASSIGN(RunOptions options, run_options(m_invocation.options, {program}));
        if (!options.parameters.name) {
            options.parameters.name = "notebook";
        }
        options.snapshot = SnapshotPolicy::never; // its files are edited
        options.awaited = true;
        options.prepare = [&](Run& run, const UnusedRules& rules) -> Result<void> {
            TRY_ASSIGN(const std::chrono::seconds idle, idle_in(run.request.queue, rules));
            const Notebook notebook{directory, page, idle, supervisor};
            run.request.program = notebook_program(
                m_store.root(), run.key, page,
                run.request.setup.container ? NotebookPlace::container : NotebookPlace::node);
            m_token = random_digits(m_services, k_notebook_token_digits);
            return write_notebook(m_store, run.key, notebook, m_token);
        };
        auto started = start_detached(m_invocation, std::move(options));
        if (!started) {
            return started.error().kind == Error::Kind::not_found
                       ? fail(Error::Kind::not_found, no_jupyter(program))
                       : started.error();
        }
        if (started->status != 0 || !started->run) {
            return std::optional(started->status);
        }
        m_run = std::move(started->run);
        m_job = started->job;
        return std::optional<int>{};
    }

    Result<std::chrono::seconds> idle_in(const std::string& queues, UnusedRules rules) const
    {
        std::erase_if(rules.notebooks,
                      [&](const NotebookIdle& rule) { return !names_queue(queues, rule.queue); });
        return notebook_idle(m_invocation.options, rules.notebooks);
    }

    static std::string no_jupyter(const std::string& program)
    {
        const bool is_lab = program == "jupyter-lab"; // Debian 12 has no package of it
        return fmt::format(
            "{}: not found: choose an environment that has Jupyter with --conda, --venv, --module "
            "or --container, or install it: `pip install {}` in a virtual environment{}",
            program, is_lab ? "jupyterlab" : "notebook",
            is_lab ? "" : ", or Debian's package jupyter-notebook");
    }

    /// The kernels of the notebook that has ended.
    void print_lost(const RunKey& key) const
    {
        const auto text = m_store.read(kernels_json(key));
        const auto kernels = text ? kernels_from_json(*text) : std::vector<NotebookKernel>();
        if (kernels.empty()) {
            return;
        }
        std::vector<std::string> names;
        for (const NotebookKernel& each : kernels) {
            names.push_back(fmt::format("{} ({})", each.path, each.name));
        }
        print_note(
            m_invocation.globals.quiet,
            fmt::format("kernels that ended with the last notebook, with their variables: {}",
                        fmt::join(names, ", ")));
    }

    Result<Waited> wait()
    {
        const RunStatus status = query_run(m_sources, m_run->key, SlurmQuery::never);
        if (status.state == RunState::running) {
            return Waited{};
        }
        Signals signals;
        WaitingOptions waiting;
        waiting.terminal = ::isatty(STDERR_FILENO) == 1;
        waiting.quiet = m_invocation.globals.quiet;
        return wait_for_start(m_services, signals, *m_run, m_job, waiting);
    }

    Result<int> carry()
    {
        const auto record = read_notebook(m_store, m_run->key);
        TRY_ASSIGN(std::string program, m_services.program());
        CarrierOptions options;
        options.session = random_digits(m_services, wire::remote::k_session_digits);
        options.command = {std::move(program)};
        if (!m_invocation.globals.cluster.empty()) {
            options.command.insert(options.command.end(),
                                   {"--cluster", m_invocation.globals.cluster});
        }
        options.command.insert(options.command.end(), {"connect", "--dial", "--", m_run->key.text(),
                                                       k_notebook_destination});
        options.connected = [&] {
            m_has_connected = true;
            const auto page = record ? record->page : NotebookPage::usual;
            return line_of(NotebookAddress{m_run->key.text(), m_job.value, m_token,
                                           std::string(path_of(page))});
        };
        options.ended = [this] { return status_at_end(); };
        Signals signals;
        options.signals = &signals;
        return carry_notebook(std::move(options));
    }

    /// Prints the warnings of the run's supervisor since this process started: of the time limit,
    /// and of idle GPUs that a policy takes back.
    void print_events()
    {
        const auto now = std::chrono::steady_clock::now();
        if (m_journal_read_at && now - *m_journal_read_at < k_journal_period) {
            return;
        }
        const bool is_first = !std::exchange(m_journal_read_at, now);
        const auto text =
            m_store.read(layout::journal(m_run->key, newest_link(m_store, m_run->key)));
        for (const Event& event : text ? parse_journal(*text) : std::vector<Event>()) {
            if (event.kind == Event::Kind::warned && event.at > m_warned_at) {
                m_warned_at = event.at;
                if (!is_first && event.detail) {
                    print_note(m_invocation.globals.quiet,
                               fmt::format("run {}: {}", m_job.value, sanitised(*event.detail)));
                }
            }
        }
    }

    /// Prints a new warning of the notebook.
    void print_warning()
    {
        auto note = m_store.read(notebook_note_json(m_run->key));
        if (!note || *note == m_note) {
            return;
        }
        m_note = *std::move(note);
        const std::string text = notebook_note_from_json(m_note);
        if (!text.empty()) {
            print_note(m_invocation.globals.quiet, "notebook: " + sanitised(text));
        }
    }

    /// The exit status, once the run has ended.
    std::optional<int> status_at_end()
    {
        print_events();
        print_warning();
        auto ending = read_ending(m_store, m_run->key);
        const auto now = std::chrono::steady_clock::now();
        std::string last_lines;
        if (!ending && now - m_queried_at < k_query_period) {
            return std::nullopt;
        }
        m_queried_at = now;
        const RunStatus status = query_run(m_sources, m_run->key);
        if (status.state != RunState::ended) {
            return std::nullopt;
        }
        print_warning(); // the last one may have come meanwhile
        ending = status.ending;
        if (!m_has_connected) {
            return never_listened(ending, status.last_lines);
        }
        print_note(m_invocation.globals.quiet,
                   fmt::format("the notebook has ended{}",
                               ending ? ": it " + ending_text(*ending, m_run->request) : ""));
        return 0;
    }

    int never_listened(const std::optional<Ending>& ending, const std::string& last_lines) const
    {
        const int status =
            ending && ending->status != 0 ? ending->status : static_cast<int>(ExitStatus::internal);
        if (status == static_cast<int>(ExitStatus::not_found)) {
            print_message(no_jupyter(jupyter_in(m_run->request.program)));
            return status;
        }
        print_message(
            fmt::format("Jupyter has ended before it listened{}; its output: gpuq logs {}",
                        ending ? ": it " + ending_text(*ending, m_run->request) : "", m_job.value));
        if (!last_lines.empty()) {
            print_message(last_lines);
        }
        return status;
    }

    Invocation& m_invocation;
    Services& m_services;
    Store& m_store;
    StatusSources m_sources;
    std::optional<Run> m_run;
    JobId m_job;
    std::string m_token;
    std::string m_note; ///< content of notebook_note.json
    std::optional<std::chrono::steady_clock::time_point> m_journal_read_at;
    Time m_warned_at; ///< of the last warning in the journal
    bool m_has_connected = false;
    std::chrono::steady_clock::time_point m_queried_at = std::chrono::steady_clock::now();
};

} // namespace

Result<std::chrono::seconds> notebook_idle(const Options& options,
                                           const std::vector<NotebookIdle>& rules)
{
    const auto rule = std::min_element(
        rules.begin(), rules.end(),
        [](const NotebookIdle& one, const NotebookIdle& other) { return one.most < other.most; });
    const std::string text = options.value("idle").value_or("");
    if (text.empty()) {
        return rule == rules.end() ? k_idle : rule->most;
    }
    const bool is_never = text == "never";
    const auto idle = is_never ? std::chrono::seconds{0} : parse_duration(text);
    if (!idle || (!is_never && *idle < k_shortest_idle)) {
        return fail(Error::Kind::usage,
                    fmt::format("--idle: {}", idle ? "too short" : idle.error().text));
    }
    if (rule != rules.end() && (is_never || *idle > rule->most)) {
        return fail(Error::Kind::denied,
                    fmt::format("--idle {}: queue {} ends notebooks that are unused for {}", text,
                                rule->queue, rule->text));
    }
    return *idle;
}

Result<int> carry_notebook_of(Invocation& invocation)
{
    TRY_ASSIGN(Store* const store, invocation.services.store());
    return NotebookCarry(invocation, *store).run();
}

} // namespace gpuq::cli
