// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/notices.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/sweep_query.h"
#include "cli/render/run_table.h"
#include "cli/start/sweep_follow.h"
#include "report/ending_text.h"
#include "report/json.h"
#include "runs/evidence.h"
#include "runs/find.h"
#include "runs/insight/plain_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <poll.h>
#include <utility>
#include <vector>

// Reads the records on disk once a second. Slurm is queried only for a run whose state they do not
// show, such as one in the queue, and for plain jobs; rarely, and once for all of them.

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock::time_point;

constexpr std::array k_options = {
    Option{0, "any", "", "return when the first of them has ended, with its status"}};

constexpr auto k_pause = 1s;
/// Between queries to Slurm: often at first, less often later.
constexpr auto k_ask_period = 10s;
constexpr auto k_ask_seldom = 60s;
constexpr auto k_impatient = 60s;
/// For the exit status of a run that has ended.
constexpr auto k_ending_patience = 15s;

/// One use of `gpuq wait`.
class WaitVerb {
public:
    WaitVerb(Invocation& invocation, Store& store)
        : m_invocation(invocation)
        , m_services(invocation.services)
        , m_store(store)
        , m_sources(status_sources(invocation.services, store))
        , m_clock(invocation.services.clock())
        , m_any(invocation.options.has("any"))
        , m_begun(m_clock.steady())
        , m_notices(invocation.services)
    {
    }

    Result<int> run()
    {
        TRY(find_all());
        while (true) {
            query();
            TRY(check_sweeps());
            notice_changes();
            if (is_enough()) {
                break;
            }
            ::poll(nullptr, 0, static_cast<int>(std::chrono::milliseconds(k_pause).count()));
        }
        if (m_invocation.globals.json) {
            report::Json::Elements runs;
            for (const Awaited& one : m_awaited) {
                runs.push_back(run_json(one.status, m_clock.now()));
            }
            report::Json::Elements sweeps;
            for (const AwaitedSweep& one : m_sweeps) {
                sweeps.push_back(report::Json::object(one.wait->document()));
            }
            TRY(print_text(
                report::json_document({{"runs", report::Json::array(std::move(runs))},
                                       {"sweeps", report::Json::array(std::move(sweeps))}})));
        }
        return status();
    }

private:
    struct Awaited {
        RunStatus status;
        std::size_t argument = 0; ///< its index
        std::optional<Steady> end_seen;
        std::optional<int> exit;      ///< once it has ended
        std::optional<RunState> seen; ///< by notice_changes
    };
    struct AwaitedSweep {
        std::unique_ptr<SweepWait> wait;
        std::size_t argument = 0;
        std::optional<int> exit;
    };

    template <typename One>
    static bool are_over(const std::vector<One>& all)
    {
        return std::all_of(all.begin(), all.end(),
                           [](const One& one) { return one.exit.has_value(); });
    }

    bool is_enough() const
    {
        return m_any ? m_first.has_value() || (m_awaited.empty() && m_sweeps.empty())
                     : are_over(m_awaited) && are_over(m_sweeps);
    }

    Result<void> find_all()
    {
        if (m_invocation.arguments.empty()) {
            TRY_ASSIGN(const auto keys, active_runs(m_store));
            for (RunStatus& run : query_status(m_sources, keys).runs) {
                if (run.state != RunState::ended) {
                    m_awaited.push_back({std::move(run)});
                }
            }
            return {};
        }
        for (std::size_t i = 0; i < m_invocation.arguments.size(); ++i) {
            TRY(find(m_invocation.arguments[i], i));
        }
        return {};
    }

    Result<void> find(const std::string& argument, std::size_t index)
    {
        TRY_ASSIGN(auto sweep, find_sweep_target(m_store, argument));
        if (sweep) {
            m_sweeps.push_back(
                {std::make_unique<SweepWait>(m_invocation, m_store, *std::move(sweep)), index, {}});
            return {};
        }
        const auto target = find_target(m_services, m_store, argument);
        if (const auto* const key = target ? std::get_if<RunKey>(&*target) : nullptr) {
            m_awaited.push_back({RunStatus{*key}, index});
            return {};
        }
        const auto* const plain = target ? std::get_if<RunStatus>(&*target) : nullptr;
        const bool is_array =
            spells_a_job(argument) && argument.find('_') == std::string::npos &&
            (plain == nullptr || plain->plain->called.find('_') != std::string::npos);
        if (plain != nullptr && !is_array) {
            m_awaited.push_back({*plain, index});
            return {};
        }
        if (!target && (target.error().kind != Error::Kind::usage || !is_array)) {
            return target.error();
        }
        m_arrays.emplace_back(argument, index);
        return add_parts(m_arrays.back());
    }

    /// A job id has the meaning it has in Slurm: also that of a whole array, whose waiting parts
    /// get ids of their own when they start.
    Result<void> add_parts(const std::pair<std::string, std::size_t>& array)
    {
        TRY_ASSIGN(const auto parts, plain_jobs_meant(m_services, m_store, array.first));
        for (const RunStatus& part : parts) {
            const auto known =
                std::find_if(m_awaited.begin(), m_awaited.end(), [&](const Awaited& one) {
                    return one.status.plain && one.status.job->job == part.job->job;
                });
            if (known == m_awaited.end()) {
                m_awaited.push_back({part, array.second});
            }
        }
        return {};
    }

    void query()
    {
        const Steady now = m_clock.steady();
        const bool may_ask = now >= m_ask_at;
        if (may_ask) {
            m_ask_at = now + (now - m_begun < k_impatient ? k_ask_period : k_ask_seldom);
        }
        query_runs(may_ask ? SlurmQuery::if_needed : SlurmQuery::never);
        for (const auto& array : m_arrays) {
            if (may_ask) {
                (void)add_parts(array); // Slurm may have forgotten it by now
            }
        }
        for (Awaited& one : m_awaited) {
            if (one.status.plain && !one.exit && may_ask) {
                query_plain(one);
            }
            note_end(one, now);
        }
    }

    Result<void> check_sweeps()
    {
        for (AwaitedSweep& one : m_sweeps) {
            if (!one.exit) {
                TRY_ASSIGN(one.exit, one.wait->check());
                m_first = m_first ? m_first : one.exit;
            }
        }
        return {};
    }

    void query_runs(SlurmQuery slurm)
    {
        std::vector<RunKey> keys;
        for (const Awaited& one : m_awaited) {
            if (!one.status.plain && !one.exit) {
                keys.push_back(one.status.key);
            }
        }
        RunStatuses statuses = query_status(m_sources, keys, slurm);
        report_silence(statuses.slurm_silent);
        auto next = statuses.runs.begin();
        for (Awaited& one : m_awaited) {
            if (!one.status.plain && !one.exit) {
                // Without Slurm some states are unknown.
                if (slurm == SlurmQuery::if_needed || next->state != RunState::unknown) {
                    one.status = std::move(*next);
                }
                ++next;
            }
        }
    }

    void query_plain(Awaited& one)
    {
        auto job = plain_job_now(m_services, m_store, one.status);
        if (job) {
            one.status = *std::move(job);
        } else {
            report_silence(job.error().text);
        }
    }

    void note_end(Awaited& one, Steady now)
    {
        if (one.exit || one.status.state != RunState::ended) {
            return;
        }
        one.end_seen = one.end_seen.value_or(now);
        if (!one.status.ending && now - *one.end_seen < k_ending_patience) {
            return; // it may still become known
        }
        one.exit =
            one.status.ending ? one.status.ending->status : static_cast<int>(ExitStatus::lost);
        m_first = m_first.value_or(*one.exit);
        if (m_invocation.globals.quiet || m_invocation.globals.json) {
            return;
        }
        print_message(fmt::format("{} {} {}", noun(one.status), run_title(one.status),
                                  how_ended(one.status)));
    }

    /// Starts and ends since the last call.
    void notice_changes()
    {
        for (Awaited& one : m_awaited) {
            const RunState now = one.exit ? RunState::ended : one.status.state;
            const auto before = std::exchange(one.seen, now);
            if (!before || before == now || before == RunState::ended) {
                continue;
            }
            if (one.exit || (before == RunState::waiting && now == RunState::running)) {
                m_notices.give(notice_of(one));
            }
        }
    }

    static RunNotice notice_of(const Awaited& one)
    {
        const RunStatus& status = one.status;
        const auto about = [&](RunNotice::Event event, const std::string& what) {
            return RunNotice{event, status.plain ? run_id(status) : status.key.text(),
                             run_id(status),
                             fmt::format("{} {} {}", noun(status), run_title(status), what)};
        };
        if (!one.exit) {
            return about(RunNotice::Event::start, "has started");
        }
        const bool failed = status.ending ? is_failure(*status.ending) : *one.exit != 0;
        return about(failed ? RunNotice::Event::failure : RunNotice::Event::end, how_ended(status));
    }

    static std::string how_ended(const RunStatus& status)
    {
        return status.ending && status.run ? ending_text(*status.ending, status.run->request)
                                           : "has ended; exit status unknown";
    }

    /// That of the first argument that has failed; without arguments, of the first run.
    int status() const
    {
        if (m_any) {
            return m_first.value_or(0);
        }
        std::pair<std::size_t, int> first{std::numeric_limits<std::size_t>::max(), 0};
        const auto take = [&](const auto& all) {
            for (const auto& one : all) {
                if (*one.exit != 0 && one.argument < first.first) {
                    first = {one.argument, *one.exit};
                }
            }
        };
        take(m_awaited);
        take(m_sweeps);
        return first.second;
    }

    void report_silence(const std::string& why)
    {
        if (!why.empty() && !m_invocation.globals.quiet && !std::exchange(m_silent, true)) {
            print_message(fmt::format("{}; still waiting", why));
        }
    }

    Invocation& m_invocation;
    Services& m_services;
    Store& m_store;
    StatusSources m_sources;
    Clock& m_clock;
    bool m_any;
    Steady m_begun;
    Steady m_ask_at = {};
    std::vector<Awaited> m_awaited;                            ///< in the order of the arguments
    std::vector<AwaitedSweep> m_sweeps;                        ///< likewise
    std::vector<std::pair<std::string, std::size_t>> m_arrays; ///< and their arguments
    std::optional<int> m_first; ///< exit status of the run or sweep that has ended first
    bool m_silent = false;
    Notices m_notices;
};

Result<int> wait(Invocation& invocation)
{
    TRY_ASSIGN(Store* const store, invocation.services.store());
    if (invocation.arguments.size() == 1) {
        TRY_ASSIGN(auto target, find_sweep_target(*store, invocation.arguments.front()));
        if (target && target->number) {
            return wait_for_try(invocation, *store, *std::move(target));
        }
        if (target) {
            return follow_sweep(invocation, *store, std::move(target->sweep),
                                SweepFollowing::observer);
        }
    }
    return WaitVerb(invocation, *store).run();
}

} // namespace

const Verb k_wait_verb{"wait", "gpuq wait [--any] [RUN...]",
                       "wait until runs have ended; exit with their status", wait, k_options};

} // namespace gpuq::cli
