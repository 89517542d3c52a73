// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/verb.h"

#include <algorithm>

namespace gpuq::cli {
namespace {

constexpr std::array k_global_options = {
    Option{0, "json", "", "print one JSON document"},
    Option{0, "columns", "NAMES", "columns of a table, comma-separated"},
    Option{0, "no-header", "", "no header above a table"},
    Option{0, "color", "WHEN", "auto, always or never"},
    Option{0, "cluster", "NAME", "which cluster; local: the one of `gpuq cluster up`"},
    Option{0, "host", "NAME", "run on a login host by ssh; NAME:DIR: in that directory"},
    Option{0, "forward", "PORT",
           "with --host: forward this local port to the same one in the run; PORT:PORT, "
           "PORT:HOST:PORT"},
    Option{'Q', "quiet", "", "no messages from gpuq except errors"},
    Option{'v', "verbose", "", "log to standard error; -vv: also each request to Slurm"},
    Option{'h', "help", "", "print help for the verb and exit"},
};

} // namespace

std::span<const Option> global_options()
{
    return k_global_options;
}

std::vector<Option> all_options(const Verb& verb)
{
    std::vector<Option> table(verb.options.begin(), verb.options.end());
    table.insert(table.end(), k_global_options.begin(), k_global_options.end());
    return table;
}

const Verb* find_verb(Verbs verbs, std::string_view name)
{
    const auto row = std::find_if(verbs.begin(), verbs.end(),
                                  [&](const Verb* verb) { return verb->name == name; });
    return row == verbs.end() ? nullptr : *row;
}

} // namespace gpuq::cli
