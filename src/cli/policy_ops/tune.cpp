// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_ops/tune.h"

#include "cli/base/message.h"
#include "cli/base/output_file.h"
#include "cli/base/signals.h"
#include "cli/base/table_output.h"
#include "cli/policy_ops/file.h"
#include "cli/policy_ops/plan_simulation.h"
#include "cli/policy_ops/tuning_journal.h"
#include "cli/policy_ops/tuning_text.h"
#include "cli/render/simulation_text.h"
#include "core/number.h"
#include "core/walltime.h"
#include "ports/clock.h"
#include "report/ending_text.h"
#include "term/sanitise.h"
#include "tune/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <unistd.h>

// The simulations run in threads, one per processor (tune/parallel.h). This thread shows the
// progress, reads signals and, after each batch of simulations, appends the results to the journal:
// a search that is killed loses one batch. Nothing but the journal and --output is written.

namespace gpuq::cli {
namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t k_default_simulations = 400;
constexpr std::size_t k_most_simulations = 1'000'000;
constexpr int k_missed_target = 11; ///< as for plan
constexpr auto k_heartbeat = 60s;
constexpr std::size_t k_bar = 20;        ///< cells
constexpr std::size_t k_line_width = 78; ///< of the progress line

/// The search that the options describe.
struct Request {
    std::vector<tune::Goal> targets;
    std::vector<tune::Goal> keeps;
    tune::Selection selection;
    std::uint64_t seed = 1;
    std::size_t most = k_default_simulations;
    std::optional<std::chrono::seconds> time;
    std::optional<std::size_t> choice; ///< from 1
};

Result<std::optional<std::uint64_t>> number_in(const Options& options, const char* name,
                                               std::uint64_t most)
{
    const auto text = options.value(name);
    const auto number = text ? whole_number(*text) : std::nullopt;
    if (text && (!number || *number == 0 || *number > most)) {
        return fail(Error::Kind::usage, fmt::format("--{}: a number from 1 to {}", name, most));
    }
    return number;
}

Result<Request> request_in(const Options& options)
{
    Request request;
    for (const std::string& text : options.values("target")) {
        TRY_ASSIGN(const auto goals, tune::parse_targets(text));
        request.targets.insert(request.targets.end(), goals.begin(), goals.end());
    }
    for (const std::string& text : options.values("keep")) {
        TRY_ASSIGN(tune::Goal goal, tune::parse_keep(text));
        request.keeps.push_back(std::move(goal));
    }
    request.selection = {options.values("vary"), options.values("fix")};
    TRY_ASSIGN(const auto seed, number_in(options, "seed", 1'000'000'000));
    TRY_ASSIGN(const auto most, number_in(options, "simulations", k_most_simulations));
    TRY_ASSIGN(const auto choice, number_in(options, "choice", k_most_simulations));
    request.seed = seed.value_or(request.seed);
    request.choice = choice;
    if (const auto text = options.value("for")) {
        TRY_ASSIGN(request.time, parse_duration(*text));
        request.most = k_most_simulations;
    }
    request.most = most.value_or(request.most);
    return request;
}

/// Shows how far the search has come: on a terminal in one line, else once a minute.
class ProgressLine {
public:
    ProgressLine(const tune::Problem& problem, const Request& request, bool is_quiet)
        : m_problem(problem)
        , m_request(request)
        , m_is_quiet(is_quiet)
        , m_is_terminal(::isatty(STDERR_FILENO) == 1)
    {
    }
    ~ProgressLine()
    {
        if (m_is_open) {
            write_own("\r\033[K");
        }
    }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(const tune::Progress& progress)
    {
        const auto now = Steady::now();
        if (m_is_quiet || (!m_is_terminal && now - m_shown_at < k_heartbeat)) {
            return;
        }
        m_shown_at = now;
        if (!m_is_terminal) {
            return print_message(text(progress));
        }
        const double part = part_of(progress);
        const auto full = static_cast<std::size_t>(part * k_bar);
        const std::string bar = std::string(full, '#') + std::string(k_bar - full, '.');
        write_own("\r\033[K" + clipped(fmt::format("[{}] {}", bar, text(progress)), k_line_width));
        m_is_open = true;
    }

    std::chrono::seconds spent() const
    {
        return std::chrono::duration_cast<std::chrono::seconds>(Steady::now() - m_begin);
    }

private:
    double part_of(const tune::Progress& progress) const
    {
        const double by_number =
            static_cast<double>(progress.simulations) / static_cast<double>(progress.most);
        const double by_time = m_request.time && m_request.time->count() > 0
                                   ? static_cast<double>(spent().count()) /
                                         static_cast<double>(m_request.time->count())
                                   : 0;
        return std::clamp(std::max(by_number, by_time), 0.0, 1.0);
    }

    std::string text(const tune::Progress& progress) const
    {
        const std::string number =
            m_request.most == k_most_simulations
                ? counted(progress.simulations, "simulation")
                : fmt::format("{} of {} simulations", progress.simulations, progress.most);
        return progress.best ? fmt::format("{}, best: {}", number,
                                           waits_text(m_problem.goals, *progress.best))
                             : number;
    }

    const tune::Problem& m_problem;
    const Request& m_request;
    bool m_is_quiet;
    bool m_is_terminal;
    bool m_is_open = false;
    Steady::time_point m_begin = Steady::now();
    Steady::time_point m_shown_at = m_begin;
};

/// A search that a signal ends; a second signal ends the process, which has saved its results.
class Interrupts {
public:
    bool seen()
    {
        while (m_signals.next()) {
            if (std::exchange(m_seen, true)) {
                ::_exit(static_cast<int>(ExitStatus::interrupted));
            }
        }
        return m_seen;
    }

private:
    Signals m_signals;
    bool m_seen = false;
};

Result<tune::Tuning> searched(Invocation& invocation, const tune::Problem& problem,
                              const tune::Jobs& jobs, const Request& request,
                              Interrupts& interrupts)
{
    const bool is_quiet = invocation.globals.quiet;
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TuningJournal journal(*store, tune::problem_hash(problem, jobs),
                          invocation.services.clock().now());
    if (!journal.known().empty()) {
        print_note(is_quiet, fmt::format("{} known from an earlier search",
                                         counted(journal.known().size(), "simulation")));
    }
    ProgressLine line(problem, request, is_quiet);
    tune::Effort effort;
    effort.seed = request.seed;
    effort.most = request.most;
    effort.record = [&](std::uint64_t hash, const std::vector<tune::Seconds>& waits) {
        if (const auto added = journal.add(hash, waits); !added) {
            print_note(is_quiet,
                       fmt::format("this search can not be continued: {}", added.error().text));
        }
    };
    effort.show = [&](const tune::Progress& progress) { line.show(progress); };
    effort.is_over = [&] {
        return interrupts.seen() || (request.time && line.spent() >= *request.time);
    };
    return tune::tune(problem, journal.known(), effort);
}

/// The targets that no policy can hold.
Result<std::vector<tune::Impossible>> impossible_in(const tune::Problem& problem,
                                                    const tune::Jobs& jobs)
{
    const policy::Rules rules(problem.file.policy);
    std::vector<std::size_t> missed; // only a target that is missed now can be one
    for (std::size_t i = 0; i < problem.goals.size(); ++i) {
        const bool is_missed = problem.searched.waits[i] > problem.searched.limits[i] ||
                               problem.unseen.waits[i] > problem.unseen.limits[i];
        if (problem.goals[i].is_target() && is_missed) {
            missed.push_back(i);
        }
    }
    std::vector<Result<std::optional<tune::Impossible>>> found(missed.size(),
                                                               std::optional<tune::Impossible>{});
    tune::in_parallel(
        missed.size(),
        [&](std::size_t i) {
            found[i] = impossible(rules, jobs, problem.goals[missed[i]],
                                  problem.groups[problem.group_of[missed[i]]]);
        },
        [] {});
    std::vector<tune::Impossible> all;
    for (auto& one : found) {
        TRY(one);
        if (*one) {
            all.push_back(**std::move(one));
        }
    }
    return all;
}

Result<void> print_report(Invocation& invocation, const TuningReport& report)
{
    if (invocation.globals.json) {
        return print_text(report::json_document(tuning_document(report)));
    }
    TRY(print_text(effort_text(report)));
    TRY(print_text(left_out_text(report.trace, report.left_out) + "\n"));
    TRY(print_table(demand_table(report), invocation.globals, invocation.services));
    TRY(print_text("\n"));
    TRY(print_table(choices_table(report), invocation.globals, invocation.services));
    for (const std::string& text :
         {other_choices_text(report), diff_text(report), impossible_text(report)}) {
        TRY(print_text(text.empty() ? text : "\n" + text));
    }
    return print_text("\n" + verdict_text(report));
}

/// Writes the choice to the file for --output, unless it is only the first one and not recommended.
Result<void> write_choice(const Invocation& invocation, const Request& request,
                          const TuningReport& report, const OutputFile& file)
{
    const std::string path = *invocation.options.value("output");
    const auto& choices = report.tuning.choices;
    if (!request.choice && report.tuning.recommended() == nullptr) {
        print_message(fmt::format("{} not written: no choice is recommended{}", path,
                                  choices.empty() ? "" : "; --choice N writes another one"));
        return {};
    }
    TRY(file.write(choices[report.chosen].text));
    print_note(invocation.globals.quiet,
               fmt::format("wrote choice {} to {}", report.chosen + 1, path));
    return {};
}

Result<std::optional<OutputFile>> output_in(const Options& options)
{
    const auto path = options.value("output");
    if (!path) {
        return std::optional<OutputFile>{};
    }
    TRY_ASSIGN(OutputFile file, new_policy_file(*path));
    return std::optional(std::move(file));
}

bool has_goal(const tune::Problem& problem, const std::string& group)
{
    return std::any_of(problem.goals.begin(), problem.goals.end(),
                       [&](const tune::Goal& goal) { return goal.group == group; });
}

} // namespace

Result<int> policy_tune(Invocation& invocation)
{
    TRY_ASSIGN(const Request request, request_in(invocation.options));
    TRY_ASSIGN(const auto output, output_in(invocation.options));
    TRY_ASSIGN(const auto path, named_policy(invocation));
    TRY_ASSIGN(LoadedPolicy loaded, load_valid_policy(invocation.services, path));
    TRY_ASSIGN(Workload workload, workload_in(invocation));
    note_assumed_date(invocation, loaded.reading.policy, workload);
    Interrupts interrupts;
    TuningReport report;
    report.trace = workload.name;
    report.left_out = workload.left_out();
    const tune::Jobs jobs{workload.name, std::move(workload.trace), workload.user_model};
    TRY_ASSIGN(const tune::Problem problem,
               tune::problem_of({loaded.path, loaded.text, std::move(loaded.reading.policy)}, jobs,
                                request.targets, request.keeps, request.selection));
    report.problem = &problem;
    report.demands = demands_of(problem.file.policy, jobs.trace, problem.groups);
    std::erase_if(report.demands, [&](const tune::Demand& demand) {
        return !demand.group.empty() && !demand.of_pools && !has_goal(problem, demand.group);
    });
    TRY_ASSIGN(report.impossible, impossible_in(problem, jobs));
    TRY_ASSIGN(report.tuning, searched(invocation, problem, jobs, request, interrupts));
    report.chosen = request.choice.value_or(1) - 1;
    if (request.choice && report.chosen >= report.tuning.choices.size()) {
        return fail(Error::Kind::usage,
                    fmt::format("--choice {}: there are {}", *request.choice,
                                counted(report.tuning.choices.size(), "choice")));
    }
    TRY(print_report(invocation, report));
    if (output) {
        TRY(write_choice(invocation, request, report, *output));
    }
    if (interrupts.seen()) {
        return static_cast<int>(ExitStatus::interrupted);
    }
    return holds_unseen(report) ? 0 : k_missed_target;
}

} // namespace gpuq::cli
