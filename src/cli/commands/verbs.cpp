// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "core/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpuq::cli {
namespace {

constexpr std::array k_verbs = {
    &k_run_verb,
    &k_again_verb,
    &k_sweep_verb,
    &k_shell_verb,
    &k_notebook_verb,
    &k_attach_verb,
    &k_logs_verb,
    &k_ls_verb,
    &k_top_verb,
    &k_free_verb,
    &k_reserve_verb,
    &k_why_verb,
    &k_show_verb,
    &k_diff_verb,
    &k_profile_verb,
    &k_usage_verb,
    &k_site_verb,
    &k_stop_verb,
    &k_wait_verb,
    &k_resume_verb,
    &k_rehearse_verb,
    &k_extend_verb,
    &k_save_verb,
    &k_exempt_verb,
    &k_keepalive_verb,
    &k_clean_verb,
    &k_connect_verb,
    &k_code_verb,
    &k_forward_verb,
    &k_tensorboard_verb,
    &k_doctor_verb,
    &k_report_verb,
    &k_policy_verb,
    &k_cluster_verb,
    &k_completion_verb,
    &k_help_verb,
    // Called by programs only:
    &k_serve_verb,
};
constexpr std::size_t k_hidden = 1;

constexpr std::array<std::string_view, 1> k_reserved_verbs = {"data"};

} // namespace

Verbs verbs()
{
    return every_verb().first(k_verbs.size() - k_hidden);
}

Verbs every_verb()
{
    return k_verbs;
}

std::span<const std::string_view> reserved_verbs()
{
    return k_reserved_verbs;
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

} // namespace gpuq::cli
