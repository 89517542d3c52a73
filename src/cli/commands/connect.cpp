// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/table_output.h"
#include "cli/commands/connect_target.h"
#include "cli/host/tunnel.h"
#include "cli/render/run_table.h"
#include "ports/cluster.h"
#include "remote/forward.h"
#include "runs/connect_keys.h"
#include "runs/notebook.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "config", "", "print the lines for ~/.ssh/config and exit"},
    Option{0, "as-target", "", "for gpuq --host: data for its --config, as a frame",
           Option::State::hidden},
    Option{0, "dial", "", "for gpuq serve: connect to HOST:PORT... over the standard streams",
           Option::State::hidden},
    Option{0, "greet", "", "for gpuq forward: first print the key of the run",
           Option::State::hidden}};

/// Prints messages of the node's sshd, or why there is none.
void print_lines(std::string_view text)
{
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.starts_with("gpuq: ")) {
            line.remove_prefix(6);
        }
        while (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (!line.empty()) {
            print_message(line);
        }
    }
}

/// `arguments`: the supervisor's arguments in the step, its subcommand first.
Result<int> tunnel_to(Services& services, Store& store, const RunStatus& run,
                      std::vector<std::string> arguments)
{
    TRY_ASSIGN(const std::string supervisor, services.supervisor());
    TRY_ASSIGN(Cluster* const cluster, services.cluster());
    const std::string task = std::exchange(arguments.front(), run.key.text());
    arguments.insert(arguments.begin(), {supervisor, task, store.root()});
    arguments.insert(arguments.begin() + 4, fmt::format("{}", run.link.value));
    TRY_ASSIGN(const StepProcess step,
               cluster->start_step(run.job->job, arguments, /*with_input=*/true));
    const TunnelEnd end = carry(step, STDIN_FILENO, STDOUT_FILENO);
    print_lines(end.errors);
    if (!end.connected) {
        return fail(Error::Kind::io,
                    fmt::format("no connection to run {}: nothing answered on its node{}",
                                run_title(run), run.host.empty() ? "" : ", " + run.host));
    }
    return 0;
}

/// Connects to HOST:PORT..., as seen from the run's node.
Result<int> forward_to(Invocation& invocation, Store& store, const RunStatus& run)
{
    std::vector<std::string> arguments{"forward"};
    for (std::size_t i = 1; i < invocation.arguments.size(); ++i) {
        const bool is_notebook = invocation.arguments[i] == k_notebook_destination;
        if (!is_notebook && !remote::is_destination(invocation.arguments[i])) {
            return fail(Error::Kind::usage,
                        fmt::format("'{}' is not HOST:PORT", sanitised(invocation.arguments[i])));
        }
        arguments.push_back(invocation.arguments[i]);
    }
    return tunnel_to(invocation.services, store, run, std::move(arguments));
}

Result<int> connect(Invocation& invocation)
{
    const bool config = invocation.options.has("config");
    const bool dial = invocation.options.has("dial");
    if (invocation.arguments.size() != 1 && !(dial && invocation.arguments.size() > 1)) {
        return fail(Error::Kind::usage,
                    invocation.arguments.empty()
                        ? "connect: missing run; try gpuq connect --config last (gpuq ls "
                          "lists runs)"
                        : "one run at a time: gpuq connect RUN");
    }
    const std::string& word = invocation.arguments.front();
    if (!config && !dial && ::isatty(STDIN_FILENO) == 1) {
        return fail(Error::Kind::usage,
                    fmt::format("gpuq connect is run by ssh: use `gpuq connect --config {} >> "
                                "~/.ssh/config`, then `ssh gpuq-{}`",
                                word, word));
    }
    TRY_ASSIGN(Store* const store, invocation.services.store());
    TRY_ASSIGN(const RunStatus run, find_connectable(invocation, *store, word, "connect"));
    if (!config) {
        TRY(check_running(run));
    }
    if (invocation.options.has("greet")) {
        TRY(print_text(line_of_run(run.key)));
    }
    if (dial) {
        return forward_to(invocation, *store, run);
    }
    TRY(prepare_connect(*store, run.key, [&] { return invocation.services.new_ssh_key(); }));
    if (invocation.options.has("as-target")) {
        return print_target(invocation.services, run);
    }
    if (config) {
        TRY_ASSIGN(const SshHost host, host_of(invocation, *store, run, {run_id(run), word}));
        TRY_ASSIGN(const std::string text, ssh_config(host));
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    return tunnel_to(invocation.services, *store, run, {"connect"});
}

} // namespace

const Verb k_connect_verb{"connect", "gpuq connect [--config] RUN",
                          "give ssh, scp, rsync and editors access to a run", connect, k_options};

} // namespace gpuq::cli
