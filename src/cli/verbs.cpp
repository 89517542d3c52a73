// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/verbs.h"

#include "cli/attach_verb.h"
#include "cli/clean_verb.h"
#include "cli/cluster_verb.h"
#include "cli/completion_verb.h"
#include "cli/connect_verb.h"
#include "cli/doctor_verb.h"
#include "cli/exempt_verb.h"
#include "cli/extend_verb.h"
#include "cli/free_verb.h"
#include "cli/help_verb.h"
#include "cli/keepalive_verb.h"
#include "cli/logs_verb.h"
#include "cli/ls_verb.h"
#include "cli/policy_verb.h"
#include "cli/profile_verb.h"
#include "cli/rehearse_verb.h"
#include "cli/report_verb.h"
#include "cli/resume_verb.h"
#include "cli/run_verb.h"
#include "cli/save_verb.h"
#include "cli/serve_verb.h"
#include "cli/shell_verb.h"
#include "cli/show_verb.h"
#include "cli/stop_verb.h"
#include "cli/top_verb.h"
#include "cli/usage_verb.h"
#include "cli/why_verb.h"
#include "core/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpuq::cli {
namespace {

constexpr std::array k_verbs = {
    &k_run_verb,    &k_shell_verb,  &k_attach_verb,    &k_logs_verb,     &k_ls_verb,
    &k_top_verb,    &k_free_verb,   &k_why_verb,       &k_show_verb,     &k_profile_verb,
    &k_usage_verb,  &k_stop_verb,   &k_resume_verb,    &k_rehearse_verb, &k_extend_verb,
    &k_save_verb,   &k_exempt_verb, &k_keepalive_verb, &k_clean_verb,    &k_connect_verb,
    &k_doctor_verb, &k_report_verb, &k_policy_verb,    &k_cluster_verb,  &k_completion_verb,
    &k_help_verb,
};

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
    Option{'h', "help", "", "print help for the verb and exit"},
};

constexpr std::array<std::string_view, 3> k_reserved_verbs = {"notebook", "reserve", "data"};

/// Called by programs only: not in help or completion.
constexpr std::array k_hidden_verbs = {&k_serve_verb};

} // namespace

std::span<const Verb* const> verbs()
{
    return k_verbs;
}

std::span<const Option> global_options()
{
    return k_global_options;
}

std::span<const std::string_view> reserved_verbs()
{
    return k_reserved_verbs;
}

const Verb* find_verb(std::string_view name)
{
    const auto is_it = [&](const Verb* row) { return row->name == name; };
    const auto verb = std::find_if(k_verbs.begin(), k_verbs.end(), is_it);
    if (verb != k_verbs.end()) {
        return *verb;
    }
    const auto hidden = std::find_if(k_hidden_verbs.begin(), k_hidden_verbs.end(), is_it);
    return hidden == k_hidden_verbs.end() ? nullptr : *hidden;
}

Error no_such_verb(std::string_view name)
{
    const auto reserved = reserved_verbs();
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
        return fail(Error::Kind::usage,
                    fmt::format("'{}' is not in this version; gpuq help lists the verbs", name));
    }
    std::vector<std::string> known;
    for (const Verb* verb : verbs()) {
        known.emplace_back(verb->name);
    }
    return fail(Error::Kind::usage, fmt::format("no verb '{}'{}; gpuq help lists them", name,
                                                did_you_mean(name, known)));
}

std::vector<Option> all_options(const Verb& verb)
{
    std::vector<Option> table(verb.options.begin(), verb.options.end());
    table.insert(table.end(), k_global_options.begin(), k_global_options.end());
    return table;
}

} // namespace gpuq::cli
