// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/commands/help_text.h"

#include <cstdio>

namespace gpuq::cli {
namespace {

Result<int> run(Invocation& invocation)
{
    if (invocation.arguments.size() > 1) {
        return fail(Error::Kind::usage, "help takes one verb: gpuq help [VERB]");
    }
    if (invocation.arguments.empty()) {
        std::fputs(help_text().c_str(), stdout);
        return 0;
    }
    const Verb* verb = find_verb(every_verb(), invocation.arguments[0]);
    if (verb == nullptr) {
        return no_such_verb(invocation.arguments[0]);
    }
    std::fputs(help_text(*verb).c_str(), stdout);
    return 0;
}

} // namespace

const Verb k_help_verb{"help", "gpuq help [VERB]", "show help for gpuq or for one verb", run};

} // namespace gpuq::cli
