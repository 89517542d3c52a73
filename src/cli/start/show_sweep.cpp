// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/show_sweep.h"

#include "cli/base/log_output.h"
#include "cli/base/message.h"
#include "cli/base/page_output.h"
#include "cli/base/table_output.h"
#include "cli/client/timed_lines.h"
#include "cli/queries/code_snapshot.h"
#include "cli/start/sweep_follow.h"
#include "cli/start/sweep_start.h"
#include "core/layout.h"
#include "core/pending_reason.h"
#include "core/quote.h"
#include "ports/clock.h"
#include "report/ending_text.h"
#include "sweeps/arguments.h"
#include "sweeps/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace gpuq::cli {
namespace {

using namespace std::chrono_literals;
using sweeps::Try;

constexpr std::size_t k_most_lines = 50;
constexpr std::size_t k_piece = 1 << 20;
constexpr auto k_pause = 250ms;
constexpr auto k_query_period = 20s;

std::string command_of(const SweepStatus& status, const Try& entry)
{
    std::vector<std::string> arguments = sweeps::arguments_of_try(
        status.sweep.run.request.program, status.sweep.parameters, entry.values);
    std::transform(arguments.begin(), arguments.end(), arguments.begin(),
                   [](const std::string& word) { return shell_quoted(word); });
    return fmt::format("{}", fmt::join(arguments, " "));
}

Result<void> show_try(const SweepStatus& status, std::size_t number, const std::string& root,
                      Time now)
{
    const Try& entry = status.tries[number - 1];
    std::vector<std::pair<std::string, std::string>> rows{
        {"try", fmt::format("{}/{}", status.sweep.name, number)},
        {"values", sweeps::values_text(status.sweep.parameters, entry.values)},
        {"program", command_of(status, entry)},
        {"attempts", std::to_string(entry.attempt)}};
    if (entry.began_at) {
        rows.emplace_back("began", clock_text(*entry.began_at, now));
    }
    if (entry.state == Try::State::ended) {
        rows.emplace_back("ended",
                          fmt::format("{}: {}, exit status {}", clock_text(entry.end->at, now),
                                      sweeps::text_of(entry.end->end), entry.end->status));
    } else {
        rows.emplace_back("state",
                          entry.state == Try::State::running ? "running" : "waiting for a worker");
    }
    if (entry.state == Try::State::ended && entry.end->evidence) {
        rows.emplace_back("compared", evidence_text(*entry.end->evidence, status.sweep));
    }
    if (entry.reached.best) {
        rows.emplace_back("best " + name_of(status.sweep.metric),
                          fmt::format("{:.6g}{}", *entry.reached.best,
                                      entry.reached.best_step
                                          ? fmt::format(" at step {}", *entry.reached.best_step)
                                          : ""));
    }
    if (entry.claimant) {
        rows.emplace_back("worker", fmt::format("{}, link {}", entry.claimant->worker.text(),
                                                entry.claimant->link.value));
    }
    rows.emplace_back("files",
                      fmt::format("{}/{}", root, layout::try_dir(status.sweep.run.key, number)));
    for (const auto& [name, value] : rows) {
        TRY(print_line(fmt::format("{:<12} {}", name, value)));
    }
    return {};
}

/// Prints the new bytes of a log.
class TryLog {
public:
    TryLog(Store& store, std::string path, bool with_times)
        : m_store(store)
        , m_path(std::move(path))
    {
        if (with_times) {
            m_timed.emplace();
        }
    }

    /// 0, or why it can't be written.
    Result<int> print()
    {
        while (true) {
            const auto bytes = m_store.read_at(m_path, m_offset, k_piece);
            if (!bytes && bytes.error().kind != Error::Kind::missing) {
                return bytes.error();
            }
            if (!bytes || bytes->empty()) {
                return 0;
            }
            const int error = m_timed ? print_lines(*bytes) : m_output.write(Stream::out, *bytes);
            if (error != 0) {
                return error;
            }
            m_offset += bytes->size();
        }
    }

    /// The last line, if it is incomplete. 0, or why it can't be written.
    int print_rest() { return m_timed ? print(m_timed->take_rest()) : 0; }

private:
    int print_lines(std::string_view bytes)
    {
        m_timed->add({}, Stream::out, m_offset, bytes, {});
        return print(m_timed->take({}));
    }

    int print(const std::vector<TimedLines::Text>& texts)
    {
        std::string lines;
        for (const auto& text : texts) {
            lines += text.bytes;
        }
        return m_output.write(Stream::out, lines);
    }

    Store& m_store;
    std::string m_path;
    LogOutput m_output;
    std::optional<TimedLines> m_timed; ///< the times of tries are not recorded
    std::uint64_t m_offset = 0;
};

Result<void> print_tries(const Invocation& invocation, const SweepStatus& status,
                         const std::optional<CodeFacts>& code, Time now)
{
    TRY(print_line(fmt::format("sweep {} ({}): {}", status.sweep.name, word(status.state),
                               sweep_summary(status))));
    if (const RunStatus* worker = next_worker(status);
        worker != nullptr && worker->state == RunState::waiting) {
        TRY(print_line(fmt::format("waiting for a worker: {}; gpuq why {}",
                                   pending_reason_text(worker->reason, gpus_asked(*worker)),
                                   shell_quoted(status.sweep.name))));
    }
    if (!status.proposal_failure.empty()) {
        TRY(print_line(fmt::format("no more proposals: {}", status.proposal_failure)));
    }
    if (const std::string missing = missing_metric_text(status); !missing.empty()) {
        TRY(print_line(missing));
    }
    if (code) {
        TRY(print_line(fmt::format("code: {}", fmt::join(code_lines(*code), "; "))));
    }
    TRY(print_table(tries_table(status, k_most_lines, now), invocation.globals,
                    invocation.services));
    if (status.tries.size() > k_most_lines) {
        TRY(print_line(fmt::format("... {} more: gpuq sweep export {}",
                                   status.tries.size() - k_most_lines,
                                   shell_quoted(status.sweep.name))));
    }
    return {};
}

} // namespace

Result<int> show_sweep(Invocation& invocation, Store& store, SweepTarget target,
                       const SweepPage& page)
{
    TRY_ASSIGN(const PageOutput output, PageOutput::of(invocation));
    const auto number = target.number;
    std::optional<sweeps::Metric> metric;
    if (const auto text = invocation.options.value("metric")) {
        TRY_ASSIGN(metric, sweeps::parse_metric(*text));
    }
    TRY_ASSIGN(SweepStatus status,
               query_sweep(invocation.services, store, std::move(target.sweep)));
    if (metric) {
        compare_by(store, status, *metric);
    }
    const Time now = invocation.services.clock().now();
    const auto code = code_facts(store, layout::sweep_snapshot(status.sweep.run.key));
    std::vector<std::string> warnings;
    if (!status.slurm_silent.empty()) {
        warnings.push_back(status.slurm_silent);
    }
    return output.write({[&] { return page(status, now); },
                         [&] { return sweep_document(status, number, code, now); },
                         [&] {
                             return number ? show_try(status, *number, store.root(), now)
                                           : print_tries(invocation, status, code, now);
                         },
                         warnings});
}

Result<int> try_logs(Invocation& invocation, Store& store, const SweepTarget& target)
{
    if (!target.number) {
        return fail(Error::Kind::usage,
                    fmt::format("which try? gpuq logs {}/1; gpuq show {} lists them",
                                shell_quoted(target.sweep.name), shell_quoted(target.sweep.name)));
    }
    for (const char* name : {"to", "after", "printable"}) {
        if (invocation.options.has(name)) {
            return fail(Error::Kind::usage,
                        fmt::format("--{}: not for the log of a try, which is one file: {}/{}",
                                    name, store.root(),
                                    layout::try_log(target.sweep.run.key, *target.number)));
        }
    }
    TryLog log(store, layout::try_log(target.sweep.run.key, *target.number),
               invocation.options.has("timestamps"));
    sweeps::Board board(store, target.sweep.run.key);
    Clock& clock = invocation.services.clock();
    std::chrono::steady_clock::time_point query_at;
    while (true) {
        TRY(board.refresh()); // before reading: nothing follows an end
        const Try& entry = board.tries()[*target.number - 1];
        TRY_ASSIGN(int error, log.print());
        const bool follows = invocation.options.has("follow");
        const bool is_over = entry.state == Try::State::ended;
        if (error == 0 && (!follows || is_over)) {
            error = log.print_rest();
        }
        if (error != 0) {
            return status_of_failed_write(error, follows);
        }
        if (!follows) {
            return 0;
        }
        if (is_over) {
            return entry.end->status;
        }
        if (board.is_stopped() && entry.state == Try::State::waiting) {
            return static_cast<int>(ExitStatus::stopped); // no worker will take it
        }
        if (clock.steady() >= query_at) {
            TRY_ASSIGN(const SweepStatus status,
                       query_sweep(invocation.services, store, target.sweep));
            query_at = clock.steady() + k_query_period;
            if (const auto left = outcome_without_worker(status, *target.number)) {
                return *left;
            }
        }
        std::this_thread::sleep_for(k_pause);
    }
}

Result<bool> stop_sweep(Invocation& invocation, Store& store, SweepTarget target)
{
    if (invocation.options.has("checkpoint")) {
        return fail(Error::Kind::usage, "--checkpoint: not for a sweep: its tries are ended by "
                                        "TERM, and continue from the checkpoints they have");
    }
    const RunKey key = target.sweep.run.key;
    const std::string name =
        target.number ? fmt::format("{}/{}", target.sweep.name, *target.number) : target.sweep.name;
    const std::string_view kind = target.number ? "try" : "sweep";
    const bool stops = !has_ended_on_disk(store, target);
    if (stops && target.number) {
        TRY(sweeps::stop_try(store, key, *target.number));
    } else if (stops) {
        TRY(sweeps::stop_sweep(store, key));
        TRY_ASSIGN(const SweepStatus status,
                   query_sweep(invocation.services, store, std::move(target.sweep)));
        withdraw_waiting(invocation.services, store, status.workers);
    }
    if (!invocation.globals.quiet && !invocation.globals.json) {
        const std::string again =
            target.number ? ""
                          : fmt::format("; gpuq sweep retry {} continues it", shell_quoted(name));
        print_message(stops ? fmt::format("stopping {} {}{}", kind, name, again)
                            : fmt::format("{} {} has ended already", kind, name));
    }
    return stops;
}

} // namespace gpuq::cli
