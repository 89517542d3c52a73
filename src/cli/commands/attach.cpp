// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/log_output.h"
#include "cli/base/message.h"
#include "cli/base/signals.h"
#include "cli/base/status_sources.h"
#include "cli/client/follow.h"
#include "cli/client/waiting.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "core/layout.h"
#include "report/ending_text.h"
#include "runs/find.h"
#include "runs/query_status.h"
#include "runs/records/link_log.h"
#include "runs/records/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <thread>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "take", "", "detach all other clients"},
    // For gpuq --host after a session was lost: it knows which output it has shown.
    Option{0, "shown", "LINK,OUT,ERR", "", Option::State::hidden}};

/// The most of a log to show if no record states how much was shown before.
constexpr std::uint64_t k_most_of_the_past = 64 << 10;
/// Pause before reading files of a log again that are not consistent yet (NFS).
constexpr std::chrono::milliseconds k_pause{50};

/// One use of `gpuq attach`.
class AttachVerb {
public:
    AttachVerb(Invocation& invocation, Store& store, RunStatus status, std::optional<Shown> from)
        : m_services(invocation.services)
        , m_globals(invocation.globals)
        , m_take(invocation.options.has("take"))
        , m_from(from)
        , m_store(store)
        , m_status(std::move(status))
        , m_terminal(on_a_terminal())
    {
    }

    Result<int> run()
    {
        const Run& run = *m_status.run;
        SessionOptions options;
        TRY_ASSIGN(const Settings settings, m_services.settings());
        options.detach_key = settings.detach_key.value_or(DetachKey{});
        options.terminal = m_terminal;
        options.quiet = m_globals.quiet;
        options.part = SessionOptions::Part::visitor;
        options.take = m_take;
        options.over = m_status.state == RunState::ended;
        options.link = m_status.link;
        options.shown = run.request.pty ? std::nullopt : std::optional(first_unshown());
        const std::optional<Shown> earlier = run.request.pty ? std::nullopt : shown_of_earlier();
        if (run.request.pty && !options.over) {
            TRY(check_stdin());
        }
        TRY_ASSIGN(const Waited waited, wait());
        if (waited.leave) {
            return *waited.leave;
        }
        print_where(run, options);
        if (const auto leave =
                earlier ? show_links_since(*earlier, options.printed) : std::nullopt) {
            return *leave;
        }
        return follow_run(m_services, m_signals, run, m_status.job->job, options, std::nullopt);
    }

private:
    static Result<void> check_stdin()
    {
        if (kind_of_stdin() == Input::terminal) {
            return {};
        }
        return fail(Error::Kind::usage, "the run has a terminal, but standard input is not one: "
                                        "gpuq logs -f prints its output");
    }

    Result<Waited> wait()
    {
        if (m_status.state != RunState::waiting) {
            return Waited{};
        }
        WaitingOptions waiting;
        waiting.terminal = m_terminal;
        waiting.quiet = m_globals.quiet;
        waiting.visitor = true;
        waiting.link = m_status.link;
        return wait_for_start(m_services, m_signals, *m_status.run, m_status.job->job, waiting);
    }

    /// The position at which the last client stopped.
    std::optional<Shown> last_shown() const
    {
        if (m_from) {
            return m_from;
        }
        const auto text = m_store.read(layout::shown_json(m_status.key));
        const auto shown = text ? shown_from_json(*text) : Result<Shown>(text.error());
        return shown ? std::optional(*shown) : std::nullopt;
    }

    std::optional<Shown> shown_of_earlier() const
    {
        const auto shown = last_shown();
        return shown && shown->link < m_status.link ? shown : std::nullopt;
    }

    /// Shows the rest of the links that have ended since. Returns gpuq's exit status if a signal
    /// interrupts it.
    std::optional<int> show_links_since(Shown shown, std::array<std::uint64_t, 2>& printed)
    {
        LogOutput output;
        for (; shown.link < m_status.link; shown = Shown{0, 0, LinkNumber{shown.link.value + 1}}) {
            LinkLog log(m_store, m_status.key, shown.link);
            std::array<std::uint64_t, 2> known{shown.out, shown.err};
            while (true) {
                const auto item = log.next(Writer::gone, std::chrono::steady_clock::now());
                if (!item) {
                    print_message(fmt::format("a part of link {} is not shown: {}",
                                              shown.link.value, item.error().text));
                }
                if (!item || std::holds_alternative<log::End>(*item)) {
                    break;
                }
                if (const auto number = m_signals.next()) {
                    return 128 + *number;
                }
                if (std::holds_alternative<log::Wait>(*item)) {
                    std::this_thread::sleep_for(k_pause);
                } else if (const auto* gap = std::get_if<log::Gap>(&*item)) {
                    auto& skip = known[static_cast<std::size_t>(gap->stream)];
                    skip -= std::min(skip, gap->bytes);
                } else if (const auto* bytes = std::get_if<log::Output>(&*item)) {
                    auto& skip = known[static_cast<std::size_t>(bytes->stream)];
                    const std::size_t from = std::min<std::size_t>(skip, bytes->bytes.size());
                    skip -= from;
                    if (output.write(bytes->stream, std::string_view(bytes->bytes).substr(from)) !=
                        0) {
                        return std::nullopt; // following the run meets the same error
                    }
                    printed[static_cast<std::size_t>(bytes->stream)] += bytes->bytes.size() - from;
                }
            }
        }
        return std::nullopt;
    }

    /// The position at which the last client stopped; else the beginning, or the last part of a
    /// long log.
    Shown first_unshown() const
    {
        const RunKey& key = m_status.key;
        const auto shown = last_shown();
        if (shown) {
            return shown->link == m_status.link ? *shown : Shown{0, 0, m_status.link};
        }
        return {start_of(layout::log(key, m_status.link, Stream::out)),
                start_of(layout::log(key, m_status.link, Stream::err)), m_status.link};
    }

    std::uint64_t start_of(const std::string& log) const
    {
        const auto size = m_store.size(log);
        if (!size || *size <= k_most_of_the_past) {
            return 0;
        }
        const std::uint64_t from = *size - k_most_of_the_past;
        const auto bytes = m_store.read_at(log, from, k_most_of_the_past);
        const std::size_t line = bytes ? bytes->find('\n') : std::string::npos;
        return from + (line == std::string::npos ? 0 : line + 1);
    }

    void print_where(const Run& run, const SessionOptions& options) const
    {
        const std::uint32_t job = m_status.first_job.value_or(m_status.job->job).value;
        if (m_globals.quiet || options.over) {
            return;
        }
        if (run.request.pty && !options.detach_key.off) {
            print_message(fmt::format("run {} ({}); {} detaches", job, run.request.name,
                                      keys_text(options.detach_key)));
        } else if (options.shown && options.shown->out + options.shown->err > 0) {
            print_message(fmt::format(
                "run {} ({}), from the first byte not yet shown; whole log: gpuq logs {}", job,
                run.request.name, job));
        }
    }

    Services& m_services;
    const Globals& m_globals;
    bool m_take;
    std::optional<Shown> m_from; ///< given by --shown
    Store& m_store;
    RunStatus m_status;
    bool m_terminal;
    Signals m_signals;
};

/// Parses `LINK,OUT,ERR`.
Result<std::optional<Shown>> shown_asked(const Options& options)
{
    const auto text = options.value("shown");
    if (!text) {
        return std::optional<Shown>{};
    }
    std::array<std::uint64_t, 3> numbers{};
    const char* at = text->data();
    const char* const end = at + text->size();
    for (std::uint64_t& number : numbers) {
        const auto [next, error] = std::from_chars(at, end, number);
        const bool last = &number == &numbers.back();
        if (error != std::errc{} || (last ? next != end : next == end || *next != ',')) {
            return fail(Error::Kind::usage, "--shown: three numbers, LINK,OUT,ERR");
        }
        at = next + (last ? 0 : 1);
    }
    return std::optional{Shown{numbers[1], numbers[2], LinkNumber{static_cast<int>(numbers[0])}}};
}

/// The run given as operand; by default the newest active run, else the newest of all.
Result<RunKey> run_meant(Services& services, Store& store,
                         const std::vector<std::string>& arguments)
{
    if (arguments.size() > 1) {
        return fail(Error::Kind::usage, "one run at a time: gpuq attach [RUN]");
    }
    return arguments.empty()
               ? find_current_run(store)
               : find_supervised(services, store, arguments.front(), "attach",
                                 "srun --overlap --jobid={0} --pty bash opens a shell in "
                                 "it, gpuq logs -f {0} follows its output");
}

/// Inside the run, attaching would print the run's output into its own output, without end.
Result<void> check_that_we_are_not_in_it(Services& services, const RunStatus& status)
{
    if (status.state == RunState::ended || services.variable("GPUQ_RUN_ID") != status.key.text()) {
        return {};
    }
    return fail(Error::Kind::usage,
                fmt::format("can't attach to run {0} from inside it: its output would loop; use "
                            "gpuq attach {0} in another terminal",
                            status.job->job.value));
}

Result<int> attach(Invocation& invocation)
{
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const RunKey key, run_meant(invocation.services, *store, invocation.arguments));
    RunStatus status = query_run(status_sources(invocation.services, *store), key);
    if (!status.run) {
        return fail(Error::Kind::missing,
                    fmt::format("run {}: its record can't be read; gpuq ls --all lists yours",
                                short_key(key)));
    }
    if (!status.job) {
        return fail(Error::Kind::busy,
                    fmt::format("run {} has no job yet: Slurm has not answered; try again",
                                short_key(key)));
    }
    TRY(check_that_we_are_not_in_it(invocation.services, status));
    TRY_ASSIGN(const auto from, shown_asked(invocation.options));
    return AttachVerb(invocation, *store, std::move(status), from).run();
}

} // namespace

const Verb k_attach_verb{"attach", "gpuq attach [--take] [RUN]",
                         "reconnect to a run, at the first byte not yet shown", attach, k_options};

} // namespace gpuq::cli
