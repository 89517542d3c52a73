// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/commands/completion_scripts.h"

#include <cstdio>

namespace gpuq::cli {
namespace {

struct Shell {
    std::string_view name;
    std::string (*script)();
};
constexpr Shell k_shells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

Result<int> run(Invocation& invocation)
{
    for (const Shell& shell : k_shells) {
        if (invocation.arguments.size() == 1 && invocation.arguments[0] == shell.name) {
            std::fputs(shell.script().c_str(), stdout);
            return 0;
        }
    }
    return fail(Error::Kind::usage, "completion: expected one of bash, zsh, fish");
}

} // namespace

const Verb k_completion_verb{"completion", "gpuq completion bash|zsh|fish",
                             "print the completion script for a shell", run};

} // namespace gpuq::cli
