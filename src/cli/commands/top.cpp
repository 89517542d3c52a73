// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/notices.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/client/plain_log.h"
#include "cli/commands/completions.h"
#include "cli/commands/top_commands.h"
#include "cli/commands/top_sweeps.h"
#include "cli/queries/find_training.h"
#include "cli/queries/machine_names.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/shared_overview_file.h"
#include "cli/queries/top_runs.h"
#include "cli/render/listed_runs.h"
#include "cli/render/run_table.h"
#include "cli/render/top_comparison.h"
#include "cli/render/top_picture.h"
#include "cli/render/top_text.h"
#include "core/layout.h"
#include "core/user_name.h"
#include "ports/cluster.h"
#include "runs/evidence.h"
#include "runs/insight/comparison.h"
#include "runs/insight/link_records.h"
#include "runs/insight/log_tail.h"
#include "runs/insight/own_gpus.h"
#include "runs/insight/plain_jobs.h"
#include "runs/records/journal.h"
#include "term/sanitise.h"
#include "tui/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::array k_options = {
    Option{0, "once", "", "print once, as text, and exit"},
    Option{'a', "all", "", "every run that is on disk, not only active and recent ones"}};

/// The period shown in the curves of GPUs.
constexpr std::chrono::minutes k_shown{10};
/// How often to look up runs whose state neither the disk nor the overview shows.
constexpr auto k_lost_again = 60s;
/// Runs whose GPUs are shown with their use: each costs reading a few KiB.
constexpr int k_most_measured = 64;

/// A note for the title of a log.
const char* note_of(LogTail::News::Why why)
{
    using Why = LogTail::News::Why;
    return why == Why::cut         ? "the file was truncated"
           : why == Why::replaced  ? "the file was replaced"
           : why == Why::next_link ? "the next link"
                                   : "";
}

/// The state shared by the threads of the view. Each interface is used by only one of them, except
/// for the stores, the clock and the host, which keep no state between calls that could conflict.
class Top {
public:
    Top(Services& services, Store& store, bool want_all, TopRuns::Old old)
        : m_services(services)
        , m_store(store)
        , m_clock(services.clock())
        , m_host(services.host())
        , m_commands(services)
        , m_want_all(want_all)
        , m_runs(old)
        , m_sweeps(store, want_all)
        , m_recent(store, k_shown)
        , m_recent_of_others(store, k_shown)
        , m_began(services.clock().now())
    {
    }

    /// The name of the cluster, without a query: the first picture then has Slurm's last response.
    /// Call it before there are other threads: it sets SLURM_CONF.
    void find_cluster()
    {
        const auto cluster = m_services.cluster();
        const auto name = cluster ? (*cluster)->name() : Result<std::string>(cluster.error());
        m_shared.cluster_name = name ? *name : "";
    }

    /// From the disk alone.
    TopFound found()
    {
        TopFound found;
        {
            const std::lock_guard lock(m_mutex);
            found.overview.cluster = m_shared.cluster_name;
            found.trouble = m_shared.trouble;
        }
        if (!found.overview.cluster.empty()) {
            found.overview = m_kept.read(m_store, found.overview.cluster);
        }
        const Time now = m_clock.now();
        const auto keys = m_listed.read(m_store, m_want_all, now);
        if (!keys) {
            found.unlisted = keys.error();
            return found;
        }
        auto read = m_runs.read(status_sources(m_services, m_store), *keys, found.overview, now);
        found.runs = std::move(read.runs);
        found.old = std::move(read.old);
        std::erase_if(found.runs, is_nothing);
        for (RunStatus& run : found.runs) {
            complete(run, found.overview);
        }
        note(found.runs);
        // Combines the last response from Slurm with the current state on disk.
        found.overview = with_own_runs(std::move(found.overview), found.runs);
        const auto plain =
            plain_statuses(m_store, found.overview.jobs, found.overview.cluster, now);
        found.runs = merged(std::move(found.runs), plain);
        found.sweeps = m_sweeps.read(found.runs, now);
        add_samples(found);
        add_users(found);
        const std::lock_guard lock(m_mutex);
        m_shared.plain.clear();
        for (const RunStatus& job : plain) {
            m_shared.plain.emplace(lasting_key(job), job);
        }
        m_shared.sweeps = found.sweeps;
        m_shared.run_ids.clear();
        for (const RunStatus& run : found.runs) {
            m_shared.run_ids.push_back(run_id(run));
        }
        for (const auto& row : found.old) {
            m_shared.run_ids.push_back(row->id);
        }
        m_shared.queues.clear();
        for (const Partition& queue : found.overview.queues) {
            m_shared.queues.push_back(queue.name);
        }
        return found;
    }

    /// Data of one run that must be read from its files.
    tui::Detail detail(const std::string& text, tui::Depth depth)
    {
        if (const auto name = parse_try_name(text)) {
            return detail_of_try(m_store, sweeps(), *name);
        }
        const auto key = RunKey::parse(text);
        if (!key) {
            return no_detail(text);
        }
        TopCloser closer{query_run(status_sources(m_services, m_store), *key, SlurmQuery::never),
                         {},
                         {},
                         {},
                         {},
                         {}};
        closer.training =
            find_training(m_services, m_store, closer.run, Apart::no, &m_earlier_curves);
        closer.newest = newest_samples(m_store, *key, closer.run.link);
        if (depth == tui::Depth::list) {
            closer.samples = m_recent_of_others.of(*key, closer.run.link, closer.newest);
            return top_detail(closer, m_clock.now());
        }
        closer.idle = idle_records(m_store, *key, closer.run.link);
        closer.credentials = credential_records(m_store, m_services.secret_files(), *key,
                                                closer.run.link, m_clock.now());
        closer.samples = m_recent.of(*key, closer.run.link, closer.newest);
        closer.saved_at = newest_checkpoint_at(closer.run);
        closer.links = link_records(m_store, *key, closer.run.link);
        return top_detail(closer, m_clock.now());
    }

    /// From the disk alone.
    tui::Comparison compare(const std::vector<std::string>& keys)
    {
        tui::Comparison refused;
        refused.keys = keys;
        if (keys.size() > Comparison::k_most_runs) {
            refused.trouble = fmt::format("at most {} can be compared", Comparison::k_most_runs);
            return refused;
        }
        const Time now = m_clock.now();
        if (!keys.empty() && parse_try_name(keys.front())) {
            return compare_tries(m_store, sweeps(), keys, now);
        }
        Overview overview;
        {
            const std::lock_guard lock(m_mutex);
            overview.cluster = m_shared.cluster_name;
        }
        overview = kept_overview(m_store, overview.cluster);
        std::vector<RunToCompare> runs;
        for (const std::string& text : keys) {
            if (const auto key = RunKey::parse(text)) {
                RunStatus status =
                    query_run(status_sources(m_services, m_store), *key, SlurmQuery::never);
                complete(status, overview);
                const GpuTime used = gpu_time_so_far(m_store, status, now);
                Training training = find_training(m_services, m_store, status, Apart::no).training;
                runs.push_back({std::move(status), used, std::move(training)});
            }
        }
        return top_comparison(gpuq::compare(runs, now), now);
    }

    /// On the thread that may query Slurm.
    void ask(Wish::Anew anew)
    {
        const auto cluster = m_services.cluster();
        const auto name = cluster ? (*cluster)->name() : Result<std::string>(cluster.error());
        {
            const std::lock_guard lock(m_mutex);
            m_shared.trouble = name ? "" : name.error().text;
            m_shared.cluster_name = name ? *name : "";
        }
        if (!name) {
            return;
        }
        Time changed;
        {
            const std::lock_guard lock(m_mutex);
            changed = m_shared.changed;
        }
        refresh_overview(m_store, **cluster, m_host, m_clock, ::getuid(),
                         {m_began, anew, changed, shared_overview(m_services, *name)},
                         m_kept_to_ask);
        find_lost(anew == Wish::Anew::always);
    }

    /// For output that is printed only once: no second query follows, so if the cache has no
    /// complete response, this process can't leave the query to another.
    void query_once()
    {
        const auto cluster = m_services.cluster();
        const auto name = cluster ? (*cluster)->name() : Result<std::string>(cluster.error());
        const Overview known = name ? kept_overview(m_store, *name) : Overview{};
        const bool lacks_all =
            !known.whole_at || due(known, ::getuid(), m_clock.now()) == Due::first;
        ask(lacks_all ? Wish::Anew::unless_shared : Wish::Anew::no);
    }

    std::optional<tui::LogBytes> read(const tui::OpenLog& log, bool begin)
    {
        const auto name = parse_try_name(log.key);
        const auto key = RunKey::parse(name ? name->sweep : log.key);
        if (!key) {
            return read_plain(log, begin);
        }
        if ((begin || !m_tail) && name) {
            m_tail.emplace(m_store, layout::try_log(*key, name->number));
        } else if (begin || !m_tail) {
            m_tail.emplace(m_store, *key, log.stream);
        }
        const auto news = m_tail->next();
        tui::LogBytes bytes{log.key, log.stream, "", false, 0, "", ""};
        if (!news) {
            bytes.trouble = news.error().text;
        } else if (*news) {
            bytes.bytes = (*news)->bytes;
            bytes.anew = (*news)->anew;
            bytes.skipped = (*news)->skipped;
            bytes.note = (*news)->anew ? note_of((*news)->why) : "";
            for (const LogTimes::Mark& mark : (*news)->times) {
                bytes.times.push_back({mark.size, mark.at});
            }
        } else if (!m_log_troubled) {
            return std::nullopt;
        }
        m_log_troubled = !bytes.trouble.empty(); // the end of a trouble is news
        return bytes;
    }

    TopCommands& commands() { return m_commands; }

    /// The words that the last argument of a command may become.
    std::vector<std::string> completions_of(const std::vector<std::string>& arguments)
    {
        std::vector<std::string> runs, queues;
        {
            const std::lock_guard lock(m_mutex);
            runs = m_shared.run_ids;
            queues = m_shared.queues;
        }
        return completions(arguments, {[&] { return runs; }, [&] { return queues; },
                                       [](const std::string& beginning) {
                                           return paths_beginning_with(beginning);
                                       },
                                       [this] { return conda_environments(m_services); },
                                       [this] { return environment_modules(m_services); }});
    }

private:
    static tui::Detail no_detail(const std::string& key)
    {
        tui::Detail detail;
        detail.key = key;
        return detail;
    }

    /// As last read.
    std::vector<TopSweep> sweeps()
    {
        const std::lock_guard lock(m_mutex);
        return m_shared.sweeps;
    }

    /// The newest measurements of the user's own GPUs.
    void add_samples(TopFound& found)
    {
        int count = 0;
        for (const RunStatus& run : found.runs) {
            if (run.state == RunState::running && !run.plain && ++count <= k_most_measured) {
                found.newest.emplace(run.key.text(), newest_samples(m_store, run.key, run.link));
            }
        }
    }

    /// Asks the name service once for each user.
    void add_users(TopFound& found)
    {
        for (const Holding& holding : found.overview.holdings) {
            if (holding.uid != found.overview.uid && !m_users.contains(holding.uid)) {
                const std::string name = user_name(holding.uid);
                m_users.emplace(holding.uid, name.substr(0, name.find(" (")));
            }
        }
        found.users = m_users;
    }

    std::optional<tui::LogBytes> read_plain(const tui::OpenLog& log, bool begin)
    {
        if (begin || !m_plain_tail) {
            const std::lock_guard lock(m_mutex);
            const auto job = m_shared.plain.find(log.key);
            if (job == m_shared.plain.end()) {
                return std::nullopt;
            }
            m_plain_tail.emplace(m_services.program_files(), job->second, log.stream);
        }
        return m_plain_tail->next(log);
    }

    /// For a chain: from the journal of the last link that has a checkpoint.
    std::optional<Time> newest_checkpoint_at(const RunStatus& run) const
    {
        const auto saved = std::find_if(run.links.rbegin(), run.links.rend(),
                                        [](const LinkPast& link) { return link.saved(); });
        if (!run.run || !run.run->request.chain || saved == run.links.rend()) {
            return std::nullopt;
        }
        const auto bytes = m_store.read(layout::journal(run.key, saved->link));
        std::optional<Time> at;
        for (const Event& event : bytes ? parse_journal(*bytes) : std::vector<Event>{}) {
            at = event.kind == Event::Kind::checkpoint ? std::optional(event.at) : at;
        }
        return at;
    }

    /// For the thread that queries Slurm.
    void note(const std::vector<RunStatus>& runs)
    {
        const std::lock_guard lock(m_mutex);
        m_shared.lost.clear();
        for (const RunStatus& run : runs) {
            if (run.state == RunState::unknown) {
                m_shared.lost.push_back(run.key);
            }
            m_shared.changed = std::max(m_shared.changed, run.started_at.value_or(Time()));
            m_shared.changed = std::max(m_shared.changed, run.ending ? run.ending->at : Time());
        }
    }

    void find_lost(bool anew)
    {
        std::vector<RunKey> lost;
        {
            const std::lock_guard lock(m_mutex);
            lost = m_shared.lost;
        }
        const auto now = m_clock.steady();
        if (lost.empty() || (!anew && m_found_at && now - *m_found_at < k_lost_again)) {
            return;
        }
        m_found_at = now;
        (void)query_status(status_sources(m_services, m_store), lost); // records the results
    }

    Services& m_services;
    Store& m_store;
    Clock& m_clock;
    Host& m_host;
    TopCommands m_commands;
    bool m_want_all;
    ListedRuns m_listed;                          ///< for the thread of found()
    TopRuns m_runs;                               ///< the same
    std::map<std::uint32_t, std::string> m_users; ///< the same
    TopSweeps m_sweeps;                           ///< the same
    KeptOverview m_kept;                          ///< the same
    KeptOverview m_kept_to_ask;                   ///< for the thread of ask()
    RecentSamples m_recent;           ///< of the selected run; for the thread of detail()
    RecentSamples m_recent_of_others; ///< the same
    EarlierCurves m_earlier_curves;   ///< the same
    Time m_began;
    std::optional<LogTail> m_tail;                                   ///< for the thread of read()
    std::optional<PlainTail> m_plain_tail;                           ///< the same
    bool m_log_troubled = false;                                     ///< the same
    std::optional<std::chrono::steady_clock::time_point> m_found_at; ///< for the thread of ask()
    /// Written by one thread and read by another: only with the mutex locked.
    struct Shared {
        std::string cluster_name;
        std::string trouble; ///< why Slurm was not queried
        Time changed{};      ///< the last start or end of a run
        std::vector<RunKey> lost;
        std::vector<TopSweep> sweeps;           ///< as last read
        std::map<std::string, RunStatus> plain; ///< plain jobs, by lasting_key()
        std::vector<std::string> run_ids;       ///< for completion
        std::vector<std::string> queues;        ///< the same
    };
    std::mutex m_mutex;
    Shared m_shared;
};

RunNotice notice_of(const tui::Notify& event)
{
    using tui::RunMark;
    return {event.mark == RunMark::running     ? RunNotice::Event::start
            : event.mark == RunMark::failed    ? RunNotice::Event::failure
            : event.mark == RunMark::attention ? RunNotice::Event::warning
                                               : RunNotice::Event::end,
            event.key, event.id, event.text};
}

Wish::Anew anew_of(tui::Anew anew)
{
    return anew == tui::Anew::always          ? Wish::Anew::always
           : anew == tui::Anew::unless_shared ? Wish::Anew::unless_shared
                                              : Wish::Anew::no;
}

tui::Colours colours_of(std::optional<ColourTheme> theme)
{
    switch (theme.value_or(ColourTheme::automatic)) {
    case ColourTheme::automatic:
        break;
    case ColourTheme::basic:
        return tui::Colours::basic;
    case ColourTheme::palette:
        return tui::Colours::palette;
    case ColourTheme::direct:
        return tui::Colours::direct;
    }
    return tui::Colours::automatic;
}

/// As in gpuq ls: nothing is cut if the output is not a terminal.
std::optional<std::size_t> columns_of_terminal()
{
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
               ? std::optional<std::size_t>(size.ws_col)
               : std::nullopt;
}

Result<int> print_once(Top& top, const Invocation& invocation)
{
    top.query_once();
    const TopFound found = top.found();
    const Time now = invocation.services.clock().now();
    if (found.unlisted && invocation.globals.json) {
        return *found.unlisted; // unknown runs are not an empty list
    }
    if (invocation.globals.json) {
        TRY(print_text(report::json_document(top_document(found, now))));
        return 0;
    }
    TRY(print_text(top_text(found, now, columns_of_terminal())));
    return 0;
}

Result<int> top(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("top: unexpected argument '{}'", invocation.arguments.front()));
    }
    Services& services = invocation.services;
    TRY_ASSIGN(Store* const store, services.store());
    const bool is_once = invocation.options.has("once") || invocation.globals.json;
    const auto shown =
        std::make_shared<Top>(services, *store, invocation.options.has("all"),
                              is_once ? TopRuns::Old::as_runs : TopRuns::Old::as_rows);
    if (is_once) {
        return print_once(*shown, invocation);
    }
    shown->find_cluster();
    tui::Sources sources;
    for (const Verb* const verb : verbs()) {
        sources.verbs.emplace_back(verb->name);
    }
    sources.now = [&services] { return services.clock().now(); };
    sources.read_picture = [shown, now = sources.now] {
        return top_picture(shown->found(), now());
    };
    sources.read_detail = [shown](const std::string& key, tui::Depth depth) {
        return shown->detail(key, depth);
    };
    sources.ask = [shown](tui::Anew anew) { shown->ask(anew_of(anew)); };
    sources.read = [shown](const tui::OpenLog& log, bool begin) { return shown->read(log, begin); };
    sources.command = [shown](const tui::Command& command) {
        return shown->commands().run(command);
    };
    sources.try_out = [shown](const tui::Try& attempt) {
        return shown->commands().try_out(attempt);
    };
    sources.complete = [shown](const std::vector<std::string>& arguments) {
        return shown->completions_of(arguments);
    };
    sources.compare = [shown](const std::vector<std::string>& keys) {
        return shown->compare(keys);
    };
    sources.notify = [notices = std::make_shared<Notices>(services)](const tui::Notify& event) {
        notices->give(notice_of(event));
    };
    TRY_ASSIGN(const Settings settings, services.settings());
    const bool has_colour = wants_color(invocation.globals, services);
    TRY(tui::run(std::move(sources), has_colour ? colours_of(settings.theme) : tui::Colours::none));
    return 0;
}

} // namespace

const Verb k_top_verb{"top", "gpuq top [--all] [--once]",
                      "GPUs, your runs and their logs on one screen", top, k_options};

} // namespace gpuq::cli
