// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/connect_target.h"

#include "cli/base/status_sources.h"
#include "cli/base/verb.h"
#include "cli/queries/plain_target.h"
#include "cli/queries/site_context.h"
#include "cli/render/run_table.h"
#include "remote/verb_process.h"
#include "report/ending_text.h"
#include "runs/connect_keys.h"
#include "runs/find.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::cli {
namespace {

Error has_ended(const RunStatus& run)
{
    return fail(Error::Kind::missing,
                fmt::format("run {} has ended{}", run_title(run),
                            run.ending && run.run
                                ? ": it " + ending_text(*run.ending, run.run->request)
                                : ""));
}

} // namespace

Result<RunStatus> find_connectable(Invocation& invocation, Store& store, const std::string& name,
                                   std::string_view verb)
{
    TRY_ASSIGN(const RunKey key,
               find_supervised(invocation.services, store, name, verb,
                               "srun --overlap --jobid={0} --pty bash opens a shell in it"));
    RunStatus run = query_run(status_sources(invocation.services, store), key);
    if (run.state == RunState::ended) {
        forget_connect_keys(store, key);
        return has_ended(run);
    }
    return run;
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
        return fail(Error::Kind::unreachable, fmt::format("the state of run {} is unknown: {}",
                                                          run_title(run), run.why_unknown));
    case RunState::submitting:
    case RunState::waiting:
        break;
    }
    return fail(Error::Kind::busy,
                fmt::format("run {} has no node yet: it is waiting; see gpuq ls", run_title(run)));
}

namespace {

constexpr std::string_view k_run_line = "gpuq-run ";

} // namespace

std::string line_of_run(const RunKey& key)
{
    return fmt::format("{}{}\n", k_run_line, key.text());
}

std::optional<RunKey> run_in_line(std::string_view line)
{
    const auto key = line.starts_with(k_run_line)
                         ? RunKey::parse(std::string(line.substr(k_run_line.size())))
                         : Result<RunKey>(fail(Error::Kind::missing, "no key"));
    return key ? std::optional(*key) : std::nullopt;
}

Result<SshHost> host_of(Invocation& invocation, Store& store, const RunStatus& run,
                        std::vector<std::string> names)
{
    TRY_ASSIGN(std::string program, invocation.services.program());
    std::vector<std::string> command{std::move(program)};
    if (!invocation.globals.cluster.empty()) {
        command.insert(command.end(), {"--cluster", invocation.globals.cluster});
    }
    command.insert(command.end(), {"connect", run.key.text()});
    return SshHost{run.key,     run_title(run),     std::move(names),
                   user_name(), std::move(command), store.root()};
}

Result<int> print_target(const Services& services, const RunStatus& run)
{
    JobId job{0};
    if (run.first_job) {
        job = *run.first_job;
    } else if (run.job) {
        job = run.job->job;
    }
    const wire::remote::SshTarget target{run.key.text(), job.value, user_name()};
    const std::string line = remote::line_of(target);
    if (!remote::ssh_target_from(std::string_view(line).substr(0, line.size() - 1))) {
        return fail(Error::Kind::usage, fmt::format("ssh_config can't hold the user name '{}'",
                                                    sanitised(target.user)));
    }
    services.send_to_serve(line);
    return 0;
}

} // namespace gpuq::cli
