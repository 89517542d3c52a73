// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/sweep_start.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/queries/site_context.h"
#include "cli/queries/sweep_query.h"
#include "cli/start/run.h"
#include "core/layout.h"
#include "core/number.h"
#include "core/split_arguments.h"
#include "ports/cluster.h"
#include "runs/records/record.h"
#include "sweeps/tries_table.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr std::size_t k_most_by_default = 16;
constexpr std::size_t k_most_workers = 1000;
constexpr std::size_t k_largest_table = 64 << 20;

Result<std::optional<std::size_t>> count_in(const Options& options, std::string_view name,
                                            std::size_t most)
{
    const auto text = options.value(name);
    if (!text) {
        return std::optional<std::size_t>();
    }
    const auto number = whole_number(*text);
    if (!number || *number == 0 || *number > most) {
        return fail(Error::Kind::usage,
                    fmt::format("--{}: '{}' is not a number from 1 to {}", name, *text, most));
    }
    return std::optional<std::size_t>(*number);
}

Result<std::string> standard_input()
{
    std::string text;
    while (text.size() <= k_largest_table) {
        const std::size_t size = text.size();
        constexpr std::size_t k_piece = 64 << 10;
        text.resize(size + k_piece);
        const ssize_t count = ::read(STDIN_FILENO, text.data() + size, k_piece);
        text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (count == 0) {
            return text;
        }
        if (count < 0 && errno != EINTR) {
            return fail(Error::Kind::io, fmt::format("--from -: standard input can't be read: {}",
                                                     std::generic_category().message(errno)));
        }
    }
    return fail(Error::Kind::usage, fmt::format("--from -: standard input is larger than {} MiB",
                                                k_largest_table >> 20));
}

Result<std::string> table_text(Services& services, const std::string& path)
{
    if (path == "-") {
        return standard_input();
    }
    TRY_ASSIGN(TextFile file, services.text_file(path, k_largest_table));
    return std::move(file.text);
}

Result<GivenTries> tries_of_table(Services& services, const std::string& path)
{
    TRY_ASSIGN(const std::string text, table_text(services, path));
    if (const auto at = first_not_utf8(text)) {
        return fail(Error::Kind::usage, fmt::format("{}: byte {} is not UTF-8", path, *at));
    }
    TRY_ASSIGN(sweeps::TriesTable table, sweeps::parse_tries(text, path));
    return GivenTries{std::move(table.names), std::move(table.tries), std::nullopt};
}

Result<std::vector<sweeps::Parameter>> parameters_in(const Options& options)
{
    std::vector<sweeps::Parameter> parameters;
    for (const std::string& text : options.values("over")) {
        if (first_not_utf8(text)) {
            return fail(Error::Kind::usage, "--over: a value is not UTF-8");
        }
        TRY_ASSIGN(sweeps::Parameter parameter, sweeps::parse_parameter(text));
        const auto is_same = [&](const auto& other) { return other.name == parameter.name; };
        if (std::any_of(parameters.begin(), parameters.end(), is_same)) {
            return fail(Error::Kind::usage,
                        fmt::format("--over: '{}' is there twice", parameter.name));
        }
        parameters.push_back(std::move(parameter));
    }
    return parameters;
}

/// The free GPUs of the nodes that accept jobs, all of those whose use is not known; nothing if
/// Slurm does not respond.
std::optional<std::size_t> free_gpus(Services& services)
{
    const auto cluster = services.cluster();
    const auto nodes = cluster ? (*cluster)->nodes() : Result<std::vector<Node>>(cluster.error());
    if (!nodes) {
        return std::nullopt;
    }
    std::size_t count = 0;
    for (const Node& node : *nodes) {
        for (const NodeGpus& gpus : node.gpus) {
            const int free = gpus.total - gpus.in_use.value_or(0);
            count += node.up ? static_cast<std::size_t>(std::max(free, 0)) : 0;
        }
    }
    return count;
}

/// No more than can start now, but one: the sweep grows, and more of them would wait before other
/// jobs.
std::size_t workers_by_default(Services& services, const SweepStatus& status)
{
    const auto per_gpu = static_cast<std::size_t>(status.sweep.per_gpu);
    std::size_t left = status.tally.waiting + status.tally.running;
    if (status.is_open) {
        left +=
            status.sweep.propose->most - std::min(status.sweep.propose->most, status.tries.size());
    }
    std::size_t count = std::min((left + per_gpu - 1) / per_gpu, k_most_by_default);
    const int gpus = status.sweep.run.request.gpus.count;
    const auto free = gpus > 0 ? free_gpus(services) : std::nullopt;
    if (free) {
        const auto working = static_cast<std::size_t>(
            std::count_if(status.workers.begin(), status.workers.end(),
                          [](const RunStatus& run) { return run.state == RunState::running; }));
        count = std::min(count, working + *free / static_cast<std::size_t>(gpus));
    }
    return std::max<std::size_t>(count, 1);
}

/// Whether a worker of a changed sweep ends without looking for tries again: it has been withdrawn,
/// or may have found the sweep stopped or without a try for it. One that holds no try may also wait
/// for proposals.
bool is_leaving(Store& store, const RunStatus& worker, const SweepStatus& status,
                const sweeps::Board* before)
{
    if (store.size(layout::inbox(worker.key) + "/" + layout::k_stop_request)) {
        return true;
    }
    if (before == nullptr) {
        return false;
    }
    if (before->is_stopped()) {
        return true;
    }
    const bool is_open = status.sweep.propose && !before->is_closed();
    if (worker.state != RunState::running || is_open ||
        sweeps::tally_of(before->tries()).waiting > 0) {
        return false;
    }
    return std::none_of(status.tries.begin(), status.tries.end(), [&](const sweeps::Try& entry) {
        return entry.state == sweeps::Try::State::running && entry.claimant &&
               entry.claimant->worker == worker.key;
    });
}

void request_stop(Services& services, Store& store, const RunKey& worker)
{
    const StopRequest request{fmt::format("{}@{}", user_name(), host_name()),
                              services.clock().now()};
    (void)store.write_once(layout::inbox(worker) + "/" + layout::k_stop_request, to_json(request));
}

Result<std::optional<sweeps::Proposals>> given_proposals(const Options& options)
{
    TRY_ASSIGN(const auto most, count_in(options, "tries", sweeps::k_most_tries));
    const auto command = options.value("propose");
    if (!command) {
        return most ? fail(Error::Kind::usage, "--tries: only with --propose COMMAND")
                    : Result<std::optional<sweeps::Proposals>>(std::nullopt);
    }
    auto arguments = split_arguments(*command);
    if (!arguments || arguments->empty()) {
        return fail(Error::Kind::usage,
                    "--propose: " + (arguments ? "no command given" : arguments.error().text));
    }
    return std::optional(sweeps::Proposals{*std::move(arguments), options.values("over"),
                                           most.value_or(sweeps::k_most_tries)});
}

} // namespace

Result<GivenTries> given_tries(Services& services, const Globals& globals, const Options& options)
{
    TRY_ASSIGN(const auto random, count_in(options, "random", sweeps::k_most_tries));
    GivenTries given;
    TRY_ASSIGN(given.propose, given_proposals(options));
    if (const auto path = options.value("from")) {
        if (options.has("over") || random) {
            return fail(Error::Kind::usage, "--from: the table has all tries: leave out --over and "
                                            "--random");
        }
        TRY_ASSIGN(GivenTries table, tries_of_table(services, *path));
        table.propose = std::move(given.propose);
        return table;
    }
    TRY_ASSIGN(const auto parameters, parameters_in(options));
    if (parameters.empty()) {
        return fail(
            Error::Kind::usage,
            "which values? --over NAME=VALUES, such as --over lr=1e-4,1e-3, or --from FILE");
    }
    for (const auto& parameter : parameters) {
        given.names.push_back(parameter.name);
    }
    if (options.has("seed") && !random) {
        return fail(Error::Kind::usage, "--seed: only with --random N");
    }
    if (!random && given.propose) {
        return given;
    }
    if (!random) {
        TRY_ASSIGN(given.tries, sweeps::grid(parameters));
        return given;
    }
    const auto text = options.value("seed");
    given.seed = text ? whole_number(*text) : std::bit_cast<std::uint64_t>(services.random());
    if (!given.seed) {
        return fail(Error::Kind::usage, fmt::format("--seed: '{}' is not a number", *text));
    }
    given.tries = sweeps::sample(parameters, *random, *given.seed);
    if (given.tries.size() < *random && !globals.quiet) {
        print_message(given.tries.size() == 1 ? "only 1 different try is possible"
                                              : fmt::format("only {} different tries are possible",
                                                            given.tries.size()));
    }
    return given;
}

Result<std::optional<std::size_t>> given_workers(const Options& options)
{
    return count_in(options, "workers", k_most_workers);
}

Result<void> start_workers(Invocation& invocation, Store& store, const sweeps::Sweep& sweep,
                           const RunOptions& options, std::optional<std::size_t> wanted,
                           const sweeps::Board* before)
{
    const std::string grows = layout::sweep_grows(sweep.run.key);
    TRY(wanted ? store.remove(grows) : store.write(grows, ""));
    TRY_ASSIGN(SweepStatus status, query_sweep(invocation.services, store, sweep));
    std::erase_if(status.workers, [&](const RunStatus& worker) {
        const bool leaves = is_leaving(store, worker, status, before);
        if (leaves && before != nullptr && before->is_stopped()) {
            request_stop(invocation.services, store, worker.key); // it may not have noticed yet
        }
        return leaves;
    });
    const std::size_t count = wanted ? *wanted : workers_by_default(invocation.services, status);
    const auto earlier = store.list(layout::sweep_runs(sweep.run.key));
    int number = earlier ? static_cast<int>(earlier->size()) : 0;
    const bool is_quiet = std::exchange(invocation.globals.quiet, true);
    std::size_t started = 0;
    Result<void> outcome;
    for (std::size_t i = status.workers.size(); i < count && outcome; ++i) {
        RunOptions one = options;
        one.worker = SweepWorker{sweep.run.key, ++number};
        one.parameters.name = fmt::format("{}-w{}", sweep.name, number);
        const auto run = start_detached(invocation, std::move(one));
        if (!run) {
            outcome = run.error();
        } else if (run->status != 0) {
            outcome = fail(Error::Kind::unreachable, "Slurm does not respond");
        } else {
            ++started;
        }
    }
    invocation.globals.quiet = is_quiet;
    const std::size_t active = status.workers.size() + started;
    if (!outcome && active == 0) {
        return outcome;
    }
    print_note(is_quiet,
               fmt::format("sweep {}: {}, {}{}", sweep.name,
                           status.tries.size() == 1 ? "1 try"
                                                    : fmt::format("{} tries", status.tries.size()),
                           counted(active, "worker"),
                           outcome ? "" : "; no more: " + outcome.error().text));
    return {};
}

void withdraw_waiting(Services& services, Store& store, const std::vector<RunStatus>& workers)
{
    std::vector<RunKey> withdrawn;
    for (const RunStatus& worker : workers) {
        if (worker.state != RunState::waiting || !worker.job) {
            continue;
        }
        // First the request on disk: it also ends a job that Slurm starts in this moment.
        request_stop(services, store, worker.key);
        const auto cluster = services.cluster();
        if (cluster && (*cluster)->cancel(worker.job->job)) {
            withdrawn.push_back(worker.key);
        }
    }
    if (!withdrawn.empty()) {
        (void)query_status(status_sources(services, store), withdrawn); // records their ends
    }
}

} // namespace gpuq::cli
