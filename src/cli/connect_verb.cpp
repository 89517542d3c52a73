// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/connect_verb.h"

#include "cli/look_doors.h"
#include "cli/run_table.h"
#include "cli/say.h"
#include "cli/ssh_config.h"
#include "cli/surroundings.h"
#include "cli/tunnel.h"
#include "report/words.h"
#include "runs/connect_keys.h"
#include "runs/find.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{0, "config", "", "print the lines for ~/.ssh/config, and leave"}};

Error has_ended(const RunStatus& run)
{
    return fail(Error::Kind::missing,
                fmt::format("run {} has ended{}", run_title(run),
                            run.ending && run.run
                                ? ": it " + ending_in_words(*run.ending, run.run->request)
                                : ""));
}

Result<int> print_config(Invocation& invocation, Store& store, const RunStatus& run,
                         const std::string& word)
{
    TRY_ASSIGN(const std::string program, invocation.doors.program());
    std::vector<std::string> command{program};
    if (!invocation.globals.cluster.empty()) {
        command.insert(command.end(), {"--cluster", invocation.globals.cluster});
    }
    command.insert(command.end(), {"connect", run.key.text()});
    TRY_ASSIGN(const std::string text, ssh_config({run.key,
                                                   run_title(run),
                                                   {run_id(run), word},
                                                   user_name(),
                                                   std::move(command),
                                                   store.root()}));
    std::fputs(text.c_str(), stdout);
    return 0;
}

Result<void> check_running(const RunStatus& run)
{
    switch (run.state) {
    case RunState::running:
        return run.job ? Result<void>()
                       : fail(Error::Kind::busy,
                              fmt::format("run {} has no job yet: try again", run_title(run)));
    case RunState::ended:
        return has_ended(run);
    case RunState::unknown:
        return fail(Error::Kind::unreachable, fmt::format("whether run {} runs is not known: {}",
                                                          run_title(run), run.why_unknown));
    case RunState::submitting:
    case RunState::waiting:
        break;
    }
    return fail(Error::Kind::missing, fmt::format("run {} has no node yet, it waits: gpuq ls tells "
                                                  "when it runs",
                                                  run_title(run)));
}

/// Lines of the node's sshd, or why there is none.
void say_lines(std::string_view text)
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
            say(line);
        }
    }
}

Result<int> tunnel_to(Doors& doors, Store& store, const RunStatus& run)
{
    TRY_ASSIGN(const std::string supervisor, doors.supervisor());
    TRY_ASSIGN(Cluster* const cluster, doors.cluster());
    TRY_ASSIGN(const StepProcess step,
               cluster->start_step(run.job->job,
                                   {supervisor, "connect", store.root(), run.key.text(),
                                    fmt::format("{}", run.link.value)},
                                   /*with_input=*/true));
    const TunnelEnd end = carry(step, STDIN_FILENO, STDOUT_FILENO);
    say_lines(end.errors);
    if (!end.connected) {
        return fail(Error::Kind::io,
                    fmt::format("no connection to run {}: nothing answered on its node{}",
                                run_title(run), run.host.empty() ? "" : ", " + run.host));
    }
    return 0;
}

Result<int> connect(Invocation& invocation)
{
    const bool config = invocation.options.has("config");
    if (invocation.words.size() != 1) {
        return fail(Error::Kind::usage,
                    invocation.words.empty()
                        ? "connect to which run? gpuq connect --config last says how; gpuq ls "
                          "lists them"
                        : "one run at a time: gpuq connect RUN");
    }
    const std::string& word = invocation.words.front();
    if (!config && ::isatty(STDIN_FILENO) == 1) {
        return fail(Error::Kind::usage,
                    fmt::format("gpuq connect is for ssh to call: `gpuq connect --config {} >> "
                                "~/.ssh/config`, then `ssh gpuq-{}`",
                                word, word));
    }
    TRY_ASSIGN(Store* const store, invocation.doors.store());
    TRY_ASSIGN(const RunKey key, find_run(*store, word));
    const RunStatus run = look_at(look_doors(invocation.doors, *store), key);
    if (run.state == RunState::ended) {
        forget_connect_keys(*store, key);
        return has_ended(run);
    }
    if (!config) {
        TRY(check_running(run));
    }
    TRY(prepare_connect(*store, key, [&] { return invocation.doors.new_ssh_key(); }));
    return config ? print_config(invocation, *store, run, word)
                  : tunnel_to(invocation.doors, *store, run);
}

} // namespace

const Verb k_connect_verb{"connect", "gpuq connect [--config] RUN",
                          "let ssh, scp, rsync and editors into a run", connect, k_options};

} // namespace gpuq::cli
