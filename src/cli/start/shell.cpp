// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/start/verbs.h"

#include "cli/start/run.h"

#include <pwd.h>
#include <unistd.h>

namespace gpuq::cli {
namespace {

/// $SHELL, else the shell in the password database, else /bin/sh.
std::string shell_of_user(Services& services)
{
    if (const auto shell = services.variable("SHELL"); shell && shell->starts_with('/')) {
        return *shell;
    }
    const passwd* const entry = ::getpwuid(::getuid());
    const bool has_one = entry != nullptr && entry->pw_shell != nullptr && *entry->pw_shell != '\0';
    return has_one ? entry->pw_shell : "/bin/sh";
}

Result<int> shell(Invocation& invocation)
{
    if (!invocation.arguments.empty()) {
        return fail(Error::Kind::usage,
                    "gpuq shell takes no program: gpuq run --pty PROGRAM runs one on a terminal");
    }
    TRY_ASSIGN(RunOptions options,
               run_options(invocation.options, {shell_of_user(invocation.services), "-l"}));
    options.pty = true;
    if (options.parameters.nodes.value_or(1) > 1) {
        return fail(Error::Kind::usage, "-N: a shell runs on one node");
    }
    if (!options.parameters.name) {
        options.parameters.name = "shell";
    }
    return run_with(invocation, std::move(options), /*shell=*/true);
}

} // namespace

const Verb k_shell_verb{"shell", "gpuq shell [options]",
                        "a shell on a GPU that survives a lost connection", shell,
                        shell_option_table()};

} // namespace gpuq::cli
