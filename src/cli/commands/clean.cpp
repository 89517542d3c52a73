// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/confirm.h"
#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/code_snapshot.h"
#include "cli/render/run_table.h"
#include "core/size.h"
#include "report/ending_text.h"
#include "runs/credentials.h"
#include "runs/evidence.h"
#include "runs/insight/cleaning.h"
#include "snapshots/take.h"
#include "sweeps/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace gpuq::cli {
namespace {

using report::Column;
using report::Json;

constexpr std::array k_options = {
    Option{'n', "dry-run", "", "list the runs that would be removed, remove nothing"},
    Option{0, "keep", "WHAT", "runs to keep: 30d, 5G or 30d,5G; default: the setting `keep`"},
    Option{'y', "yes", "", "do not ask"},
};

/// The default, if neither the site nor the user has set another.
constexpr Retention k_usual{std::chrono::days(30), 5ULL << 30U};

/// A run to be removed, and its status.
struct Doomed {
    RunOnShelf run;
    const RunStatus* status = nullptr;
};

std::uint64_t bytes_of(const std::vector<Doomed>& runs)
{
    std::uint64_t sum = 0;
    for (const Doomed& one : runs) {
        sum += one.run.bytes;
    }
    return sum;
}

std::string runs_text(const std::vector<Doomed>& runs)
{
    return fmt::format("{} {}, {}", runs.size(), runs.size() == 1 ? "run" : "runs",
                       bytes_text(bytes_of(runs)));
}

report::Table table_of(const std::vector<Doomed>& runs, Time now)
{
    report::Table table;
    table.columns = {{"id", "ID", Column::Align::right},
                     {.name = "name",
                      .title = "NAME",
                      .shrink = Column::Shrink::yes,
                      .cut = Column::Cut::middle},
                     {"ended", "ENDED"},
                     {"size", "SIZE", Column::Align::right},
                     {"key", "KEY"}};
    for (const Doomed& one : runs) {
        table.rows.push_back(
            {run_id(*one.status), one.status->run ? one.status->run->request.name : "?",
             clock_text(*one.run.ended_at, now), bytes_text(one.run.bytes), one.run.key.text()});
    }
    return table;
}

Json json_of(const Doomed& one)
{
    return Json::object({{"key", one.run.key.text()},
                         {"job", one.status->job ? Json(one.status->job->job) : Json()},
                         {"name", one.status->run ? Json(one.status->run->request.name) : Json()},
                         {"ended_at", one.run.ended_at},
                         {"bytes", one.run.bytes}});
}

/// One use of `gpuq clean`.
class CleanVerb {
public:
    CleanVerb(Invocation& invocation, Store& store)
        : m_invocation(invocation)
        , m_store(store)
        , m_now(invocation.services.clock().now())
        , m_dry(invocation.options.has("dry-run"))
    {
    }

    Result<int> run()
    {
        TRY_ASSIGN(const Retention retention, keep());
        TRY_ASSIGN(const std::vector<RunKey> keys, all_runs(m_store));
        const RunStatuses statuses =
            query_status(status_sources(m_invocation.services, m_store), keys);
        if (!statuses.slurm_silent.empty()) {
            print_message(statuses.slurm_silent + "; runs that may be active are kept");
        }
        if (!m_dry) {
            forget_tickets(statuses);
        }
        const auto doomed = choose(statuses, retention);
        TRY(show(doomed));
        if (doomed.empty() && !m_dry) {
            sweeps::forget_outdated(m_store, m_now);
            remove_snapshots();
        }
        if (m_dry || doomed.empty()) {
            print_note(m_dry ? fmt::format("would remove {}; kept: {}", runs_text(doomed),
                                           to_text(retention))
                             : fmt::format("nothing to remove; kept: {}", to_text(retention)));
            return 0;
        }
        TRY_ASSIGN(const bool wanted, agreed(doomed));
        return wanted ? remove(doomed) : 0;
    }

private:
    Result<Retention> keep()
    {
        if (const auto text = m_invocation.options.value("keep")) {
            return parse_retention(*text);
        }
        TRY_ASSIGN(const Settings settings, m_invocation.services.settings());
        return settings.keep.value_or(k_usual);
    }

    /// Removes remaining credentials of runs whose end no process could handle.
    void forget_tickets(const RunStatuses& statuses)
    {
        for (const RunStatus& status : statuses.runs) {
            if (status.state == RunState::ended) {
                forget_credentials(m_store, m_invocation.services.secret_files(), status.key);
            }
        }
    }

    std::vector<Doomed> choose(const RunStatuses& statuses, const Retention& retention)
    {
        std::vector<RunOnShelf> shelf;
        for (const RunStatus& status : statuses.runs) {
            shelf.push_back(on_shelf(m_store, status));
        }
        add_sweeps(m_store, statuses.runs, shelf);
        std::vector<Doomed> doomed;
        for (RunOnShelf& run : outdated(std::move(shelf), retention, m_now)) {
            const auto status =
                std::find_if(statuses.runs.begin(), statuses.runs.end(),
                             [&](const RunStatus& row) { return row.key == run.key; });
            doomed.push_back({std::move(run), &*status});
        }
        return doomed;
    }

    Result<void> show(const std::vector<Doomed>& doomed)
    {
        const report::Table table = table_of(doomed, m_now);
        TRY_ASSIGN([[maybe_unused]] const auto checked,
                   report::only(table, m_invocation.globals.columns));
        if (!m_invocation.globals.json) {
            return doomed.empty() ? Result<void>()
                                  : print_table(table, m_invocation.globals, m_invocation.services);
        }
        return m_dry || doomed.empty() ? print_json(doomed) : Result<void>();
    }

    /// `removed`: with --dry-run, the runs that would be removed.
    Result<void> print_json(const std::vector<Doomed>& removed) const
    {
        Json::Elements runs;
        for (const Doomed& one : removed) {
            runs.push_back(json_of(one));
        }
        return print_text(report::json_document({{"removed", Json::array(std::move(runs))},
                                                 {"bytes", bytes_of(removed)},
                                                 {"dry_run", m_dry}}));
    }

    /// Asks for confirmation. A script can't be asked: without a terminal --yes is required.
    Result<bool> agreed(const std::vector<Doomed>& doomed)
    {
        if (m_invocation.options.has("yes")) {
            return true;
        }
        return confirmed(fmt::format("remove {}", runs_text(doomed)),
                         fmt::format("removing {} can't be undone: --yes does it without asking",
                                     runs_text(doomed)));
    }

    Result<int> remove(const std::vector<Doomed>& doomed)
    {
        std::vector<Doomed> removed;
        int status = 0;
        for (const Doomed& one : doomed) {
            const auto done = remove_run(m_store, one.run.key);
            if (done) {
                removed.push_back(one);
            } else {
                print_message(done.error().text);
                status = static_cast<int>(exit_status_of(done.error().kind));
            }
        }
        sweeps::forget_outdated(m_store, m_now);
        remove_snapshots();
        if (m_invocation.globals.json) {
            TRY(print_json(removed));
        }
        print_note("removed " + runs_text(removed));
        return status;
    }

    /// Those that no run needs any more.
    void remove_snapshots()
    {
        const auto used = used_snapshots(m_store);
        const auto removed = used ? snapshots::remove_unused(m_store, *used, m_now)
                                  : Result<std::uint64_t>(used.error());
        if (!removed) {
            print_message("snapshots are kept: " + removed.error().text);
        }
    }

    void print_note(const std::string& text) const
    {
        if (!m_invocation.globals.quiet && !m_invocation.globals.json) {
            print_message(text);
        }
    }

    Invocation& m_invocation;
    Store& m_store;
    Time m_now;
    bool m_dry;
};

Result<int> clean(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    fmt::format("clean: unexpected argument '{}'", invocation.arguments.front()));
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    return CleanVerb(invocation, *store).run();
}

} // namespace

const Verb k_clean_verb{"clean", "gpuq clean [--dry-run] [--keep WHAT] [--yes]",
                        "remove old runs: their logs, records and checkpoints", clean, k_options};

} // namespace gpuq::cli
